"""The same on a GPU: a right kernel is validated and timed as before, and does no more harm than elsewhere."""

from __future__ import annotations

import os
import socket
import time

import psutil
import pytest

from tests.confinement.attacks import KERNEL
from tests.confinement.test_files import WRITES, attacked

pytestmark = pytest.mark.gpu


def attack(victim, code, **facts):
    said = len(victim.said())
    verdict = victim.attack(code, device="cuda", seconds=120, **facts)
    told = victim.said()[said:]
    assert told, "the attack has run"
    return verdict, told


def test_a_right_kernel_is_validated_and_timed(victim):
    victim.attack("pass", device="cuda", seconds=120)
    given = {"path": str(victim.project / "victim.py"), "class_name": "Scale", "source": KERNEL, "device": "cuda"}
    result = victim.worker.call("validate", timeout=200, measure="eager", seconds=180, **given)
    assert result["verdict"]["status"] in ("ok", "slower"), result["verdict"]["reason"]
    (shape,) = result["measurement"]["shapes"]
    assert all(shape[way]["median"] > 0 for way in ("eager", "kernel")), result["measurement"]
    assert "began before it was confined" not in victim.worker.stderr
    print("limits:", result["verdict"]["limits"])


def test_memory_of_the_device_is_shared_with_a_confined_process(victim):
    """What the driver needs open for that is found by trying; nothing of it should be a file or a socket of others."""
    verdict, _ = attack(victim, "pass")
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    assert not any("the GPU's driver needs that" in limit for limit in verdict["limits"]), verdict["limits"]


def test_nothing_of_the_users_is_changed(victim):
    attack(victim, "pass")  # the driver's and triton's caches in the home folder are the referee's
    _, changed = attacked(victim, WRITES, device="cuda", seconds=120)
    assert changed == set()


def test_no_secret_is_read(victim):
    code = "tell(open(os.path.join(home, '.ssh', 'id_test')).read())"
    _, told = attack(victim, code, home=str(victim.home))
    assert not any("secret" in line for line in told)
    _, told = attack(victim, "tell(open('/proc/self/environ').read(), dict(os.environ))")
    assert not any("the token" in line for line in told)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_nothing_is_sent(victim, family):
    address = ("127.0.0.1", 0) if family == socket.AF_INET else f"\0gpu-{os.getpid()}"
    with socket.socket(family, socket.SOCK_DGRAM) as own:
        own.bind(address)
        own.settimeout(0.2)
        code = "socket.socket(family, socket.SOCK_DGRAM).sendto(b'harm', address)"
        attack(victim, code, family=int(family), address=own.getsockname())
        with pytest.raises(TimeoutError):
            own.recv(10)


def test_no_program_but_the_compilers_is_started(victim):
    for program in ("/usr/bin/env", "/bin/cp", "/bin/cat"):  # not a shell: a C compiler may be a script of it
        _, told = attack(victim, f"subprocess.run([{program!r}, '--version']); tell('harm')")
        assert "attack: harm" not in told


def test_the_referee_cannot_be_ended_or_read(victim):
    verdict, _ = attack(victim, "os.kill(os.getppid(), 9)")
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    for file in ("mem", "environ", "maps"):
        _, told = attack(victim, f"open(f'/proc/{{os.getppid()}}/{file}', 'rb').read(1); tell('open')")
        assert "attack: open" not in told


@pytest.mark.parametrize(
    "code",
    ["while True:\n    os.fork()\n    time.sleep(0.05)", "if os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)"],
)
def test_no_process_lives_on(victim, code):
    victim.attack("pass", device="cuda")
    worker = psutil.Process(victim.worker.process.pid)
    own = {p.pid for p in worker.children(recursive=True)}
    victim.attack(code, device="cuda", seconds=15)
    until = time.monotonic() + 5
    while not {p.pid for p in worker.children(recursive=True)} <= own and time.monotonic() < until:
        time.sleep(0.1)
    assert {p.pid for p in worker.children(recursive=True)} <= own
    assert victim.attack("pass", device="cuda", seconds=120)["status"] in ("ok", "slower")
