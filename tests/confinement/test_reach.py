"""A candidate reaches no network, no program and no other process."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys

import psutil
import pytest

from tests.confinement.waiting import wait_until


def run(victim, code, **facts):
    """(verdict, what the attack said)."""
    said = len(victim.said())
    verdict = victim.attack(code, **facts)
    assert wait_until(lambda: victim.said()[said:], 3), "the attack has run"
    return verdict, victim.said()[said:]


@contextlib.contextmanager
def listening(family, kind, address):
    """A socket of the test's, and a function that gives what has arrived."""
    with socket.socket(family, kind) as own:
        own.bind(address)
        if kind == socket.SOCK_STREAM:
            own.listen()
        own.settimeout(0.2)

        def arrived():
            try:
                if kind == socket.SOCK_STREAM:
                    with own.accept()[0] as peer:
                        return peer.recv(100) or b"connected"
                return own.recv(100)
            except TimeoutError:
                return b""

        yield own.getsockname(), arrived


def target_of(name, folder):
    loopback = ("127.0.0.1", 0)
    return {
        "TCP": (socket.AF_INET, socket.SOCK_STREAM, loopback),
        "UDP": (socket.AF_INET, socket.SOCK_DGRAM, loopback),
        "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0test-{os.getpid()}"),
        "abstract datagrams": (socket.AF_UNIX, socket.SOCK_DGRAM, f"\0test-datagrams-{os.getpid()}"),
        "path": (socket.AF_UNIX, socket.SOCK_STREAM, os.path.join(folder, f"{os.getpid()}.sock")),
        "datagrams by a pair": (socket.AF_UNIX, socket.SOCK_DGRAM, os.path.join(folder, f"{os.getpid()}.pair")),
    }[name]


CONNECT = """
family, kind, address = targets[{name!r}]
if "pair" in {name!r}:
    own = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]
else:
    own = socket.socket(family, kind)
if kind == socket.SOCK_STREAM:
    own.connect(address)
    own.send(b"harm")
else:
    own.sendto(b"harm", address)
"""
SOCKETS = ["TCP", "UDP", "abstract", "abstract datagrams", "path", "datagrams by a pair"]


def sent(victim, folder):
    """(the verdict, name → what arrived) where a candidate sends over a socket of every kind."""
    with contextlib.ExitStack() as stack:
        targets, ends = {}, {}
        for name in SOCKETS:
            family, kind, address = target_of(name, str(folder))
            bound, ends[name] = stack.enter_context(listening(family, kind, address))
            targets[name] = (int(family), int(kind), bound)
        verdict, told = victim.attacks({name: CONNECT.format(name=name) for name in SOCKETS}, targets=targets)
        assert all(told.values()), told
        return verdict, {name: arrived() for name, arrived in ends.items()}


def test_nothing_is_sent(victim, tmp_path):
    verdict, arrived = sent(victim, tmp_path)
    assert arrived == dict.fromkeys(SOCKETS, b"")
    assert verdict["status"] == "ok", verdict["reason"]


def test_without_the_layers_it_is(bare, tmp_path):
    _, arrived = sent(bare, tmp_path)
    assert arrived == dict.fromkeys(SOCKETS, b"harm")


def test_no_address_of_this_machine_is_taken(victim):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "s = socket.socket(); s.bind(('127.0.0.1', port)); s.listen(); time.sleep(1)"
    _, told = run(victim, code, port=port)
    assert any("PermissionError" in line for line in told), told


PROGRAMS = {
    "a shell": "subprocess.run(['/bin/sh', '-c', 'echo harm >&2; touch harm'])",
    "a shell by os.system": "tell('status', os.system('echo harm >&2; touch harm'))",
    "Python": "subprocess.run([sys.executable, '-c', 'open(\"harm\", \"w\")'])",
    "a program in place of itself": "os.execv('/bin/sh', ['sh', '-c', 'touch harm'])",
    "a spawned process": "os.posix_spawn('/bin/sh', ['sh', '-c', 'touch harm'], {})",
    "a program from memory": (
        "fd = os.memfd_create('x'); os.write(fd, open('/usr/lib/x86_64-linux-gnu/libc.so.6', 'rb').read());"
        "os.execv(f'/proc/self/fd/{fd}', ['x'])"
    ),
}


def test_no_program_is_started(victim):
    before = {p.pid for p in psutil.process_iter()}
    codes = {name: code + "\ntell('harm', os.path.exists('harm'))" for name, code in PROGRAMS.items()}
    verdict, told = victim.attacks(codes)
    assert all(told.values()) and not any("harm True" in line for lines in told.values() for line in lines), told
    assert verdict["status"] == "ok", verdict["reason"]
    names = {p.name() for p in psutil.process_iter() if p.pid not in before}
    assert "sh" not in names


def test_without_the_layers_a_program_is_started(bare):
    _, told = run(bare, PROGRAMS["a shell"] + "\ntell('harm', os.path.exists('harm'))")
    assert any("harm True" in line for line in told)


SIGNALS = {
    "kill": "os.kill(other, 9)",
    "killpg": "os.killpg(os.getpgid(other), 9)",
    "pidfd": "signal.pidfd_send_signal(os.pidfd_open(other), 9)",
    "stop": "os.kill(other, signal.SIGSTOP)",
    "a limit": "__import__('resource').prlimit(other, __import__('resource').RLIMIT_CPU, (0, 0))",
    "its priority": "os.setpriority(os.PRIO_PROCESS, other, 19)",
}


def spent(process):
    return sum(process.cpu_times()[:2])


def test_other_processes_of_the_user_go_on(victim):
    """Each of them works; what is done to one would show in the time that it gets."""
    command = [sys.executable, "-c", "import time\nwhile True:\n    sum(range(1000)); time.sleep(0.001)\n"]
    with contextlib.ExitStack() as stack:
        others = {}
        for name in SIGNALS:
            others[name] = stack.enter_context(subprocess.Popen(command, start_new_session=True))
            stack.callback(others[name].kill)
        processes = {name: psutil.Process(other.pid) for name, other in others.items()}
        nice = {name: process.nice() for name, process in processes.items()}
        codes = {name: f"other = others[{name!r}]\n{code}" for name, code in SIGNALS.items()}
        verdict, told = victim.attacks(codes, others={name: other.pid for name, other in others.items()})
        assert all(told.values()), told
        before = {name: spent(process) for name, process in processes.items()}
        assert {name: process.nice() for name, process in processes.items()} == nice
        for name, process in processes.items():
            assert wait_until(lambda process=process, name=name: spent(process) > before[name], 5), name
            assert others[name].poll() is None, name
    assert verdict["status"] == "ok", verdict["reason"]


def test_the_referee_cannot_be_ended(victim):
    verdict, told = victim.attacks({"its parent": "os.kill(os.getppid(), 9)", "all": "os.kill(-1, 9)"})
    assert all(told.values()) and verdict["status"] == "ok", (told, verdict["reason"])


FORGED = b'{"result": {"verdict": {"status": "ok", "mode": "interpreter", "checks": [], "limits": ["forged"]}}}'

REFEREE = {
    "its memory": "open(f'/proc/{os.getppid()}/mem', 'r+b', 0)",
    "its memory map": "open(f'/proc/{os.getppid()}/maps').read()",
    "its open files": "[open(f'/proc/{os.getppid()}/fd/{n}', 'wb', 0) for n in os.listdir(f'/proc/{os.getppid()}/fd')][0]",
    "tracing": "check(libc.ptrace(16, os.getppid(), 0, 0))",
    "reading across": "check(libc.syscall(310, os.getppid(), ctypes.byref(v), 1, ctypes.byref(v), 1, 0))",
    "writing across": "check(libc.syscall(311, os.getppid(), ctypes.byref(v), 1, ctypes.byref(v), 1, 0))",
    "taking a descriptor": "check(libc.syscall(438, os.pidfd_open(os.getppid()), 1, 0))",
    "its environment": "open(f'/proc/{os.getppid()}/environ').read()",
    "its command line": "open(f'/proc/{os.getppid()}/cmdline').read()",
}
NATIVE = """
libc = ctypes.CDLL(None, use_errno=True)
v = (ctypes.c_ulong * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
"""


def test_the_referee_is_closed(victim):
    verdict, told = victim.attacks({name: NATIVE + f"{code}\ntell('open')" for name, code in REFEREE.items()})
    assert all(told.values()) and not any("open" in lines for lines in told.values()), told
    assert verdict["status"] == "ok", verdict["reason"]


def test_no_descriptor_leads_to_the_worker(victim):
    """Everything that can be written to is written to; the verdict is the referee's all the same."""
    code = f"""
here = []
for fd in os.listdir("/proc/self/fd"):
    try:
        here.append(os.readlink(f"/proc/self/fd/{{fd}}"))
    except OSError:
        pass
if not any("socket" in kind for kind in here):
    raise SystemExit("the compiler's process has a pipe of its own, for its report")
for fd in range(3, 300):
    try:
        kind = os.readlink(f"/proc/self/fd/{{fd}}")
    except OSError:
        continue
    tell("has", kind.split(":")[0], fd)
    if "pipe" in kind:
        os.write(fd, {FORGED!r} + b"\\n")
"""
    verdict, told = run(victim, code)
    assert verdict["status"] == "ok" and "forged" not in verdict["limits"]
    # It attacks in the trial, and again in an unmarked process, which have one each.
    assert len({line for line in told if "has socket" in line}) <= 2 and not any("has pipe" in line for line in told), (
        told
    )


def test_standard_error_stays_blocking_for_the_referee(victim):
    code = "import fcntl\nfcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_NONBLOCK)\ntell('set')"
    verdict, _ = run(victim, code)
    assert verdict["status"] == "ok", verdict["reason"]


KERNEL_CALLS = {
    "a namespace": "check(libc.unshare(0x10000000))",
    "a keyring": "check(libc.syscall(250, 0, 0, 0, 0, 0))",
    "io_uring": "check(libc.syscall(425, 1, 0))",
    "bpf": "check(libc.syscall(321, 0, 0, 0))",
    "mount": "check(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))",
    "shared memory by key": "check(libc.shmget(0x1234, 4096, 0o1666))",
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers in this test are of x86_64")
def test_calls_that_no_kernel_needs_are_refused(victim):
    verdict, told = victim.attacks({name: NATIVE + f"{code}\ntell('open')" for name, code in KERNEL_CALLS.items()})
    for name, lines in told.items():
        assert any("[Errno 1]" in line for line in lines) and "open" not in lines, (name, lines)
    assert verdict["status"] == "ok", verdict["reason"]
