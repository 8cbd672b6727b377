"""Without Landlock a root folder of its own keeps a candidate from the same: made as root, and as any user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernel_lsp.confinement import layers, namespace
from tests.confinement.conftest import Victim
from tests.confinement.namespaces import WAYS, WITHOUT, needs
from tests.confinement.ordinary_user import NOBODY, as_nobody
from tests.confinement.test_files import WRITES, attacked, secrets_in
from tests.confinement.test_reach import NATIVE, REFEREE, SOCKETS, sent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=WAYS)
def victim(request, tmp_path_factory):
    needs(request.param)
    found = Victim(tmp_path_factory.mktemp("without-landlock"), WITHOUT[request.param])
    found.way = request.param
    yield found
    found.close()


def test_it_takes_the_place_of_landlock(victim):
    found = {layer["name"]: layer for layer in victim.worker.call("hello")["confinement"]}
    assert victim.way in found["Landlock (files)"]["found"] and not found["Landlock (files)"]["fix"]
    verdict = victim.attack("pass")
    assert verdict["status"] == "ok" and not any("while it was validated" in limit for limit in verdict["limits"])


def test_nothing_of_the_users_is_changed(victim):
    verdict, changed = attacked(victim, WRITES)
    assert changed == set()
    assert verdict["status"] == "ok", verdict["reason"]


def test_nothing_secret_is_read(victim):
    verdict, found = secrets_in(victim)
    assert not any(found.values()), found
    assert verdict["status"] == "ok", verdict["reason"]


def test_nothing_is_sent(victim, tmp_path):
    verdict, arrived = sent(victim, tmp_path)
    assert arrived == dict.fromkeys(SOCKETS, b"")
    assert verdict["status"] == "ok", verdict["reason"]


def test_the_referee_is_closed(victim):
    verdict, told = victim.attacks({name: NATIVE + f"{code}\ntell('open')" for name, code in REFEREE.items()})
    assert all(told.values()) and not any("open" in lines for lines in told.values()), told
    assert verdict["status"] == "ok", verdict["reason"]


UNDONE = {
    "the root is written to": "open('/planted', 'w')",
    "what is mounted is mounted to be written": "check(libc.mount(None, b'/usr/lib', None, 32 | 4096, None))",
    "what is mounted is taken away": "check(libc.umount2(b'/proc/self', 2))",
    "another namespace": "check(libc.unshare(0x10020000))",
    "the namespace of the parent": "check(libc.setns(os.open(f'/proc/{os.getppid()}/ns/mnt', 0), 0))",
    "another root": "os.chroot('.')",
    "the root of the parent": "os.listdir(f'/proc/{os.getppid()}/root')",
    "its own program is written to": "open('/proc/self/exe', 'r+b')",
    "a device is made": "os.mknod('disk', 0o60600, os.makedev(8, 0))",
    "above the root": "assert os.path.exists('/../../home/..' + notes); tell(open('/../..' + notes).read())",
    "above its folder": "tell(open(os.path.relpath(notes)).read())",
    "its powers": (
        "held = open('/proc/self/status').read().split('CapEff:')[1].split()[0]\n"
        "assert int(held, 16) & ~4 or (os.getuid() and int(held, 16))"
    ),
}


def test_it_cannot_be_undone(victim):
    """Each of these ends with an error."""
    notes = victim.home / "notes.txt"
    notes.write_text("the user's")
    codes = {name: NATIVE + f"{code}\ntell('open')" for name, code in UNDONE.items()}
    verdict, told = victim.attacks(codes, notes=str(notes))
    assert all(told.values()) and not any("open" in lines or "the user's" in lines for lines in told.values()), told
    assert verdict["status"] == "ok", verdict["reason"]


def test_its_root_is_what_the_rules_name(victim):
    said = len(victim.said())
    code = "tell('sees', sorted(os.listdir('/')), os.listdir(home), os.path.isfile('/usr/bin/env'))"
    code += (
        "\ntell('own', sorted(os.listdir('.')), [n for n in os.listdir('/proc') if n.isdigit()] == [str(os.getpid())])"
    )
    assert victim.attack(code, home=str(victim.home))["status"] == "ok"
    told = [line for line in victim.said()[said:] if "sees" in line or "own" in line]
    assert any("'proc'" in line and line.endswith("['work'] False") for line in told), told
    assert any("own" in line and "True" in line and ".tmp" not in line for line in told), told


def test_a_file_that_the_module_has_open_is_read_on_and_not_written(victim):
    """It lies where nothing else is seen, and the descriptor leads to it."""
    data = victim.home / "data.txt"
    data.write_text("first\nsecond\n")
    beside = f"\nDATA = open({str(data)!r}, 'rb', 0)\nDATA.read(6)\n"
    codes = {
        "reads": "tell(DATA.read(6).decode().strip())",
        "again": "tell(open(f'/proc/self/fd/{DATA.fileno()}').readline().strip())",
        "writes": "open(f'/proc/self/fd/{DATA.fileno()}', 'r+').write('harm'); tell('wrote')",
        "writes by its path": "open(DATA.name, 'r+').write('harm'); tell('wrote')",
    }
    verdict, told = victim.attacks(codes, beside=beside)
    assert verdict["status"] == "ok", verdict["reason"]
    assert told["reads"][0] == "second" and told["again"][0] == "first", told
    assert not any("wrote" in lines for lines in told.values()) and data.read_text() == "first\nsecond\n", told


def test_a_module_that_starts_threads_is_validated(victim):
    beside = "\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
    verdict = victim.attack("pass", beside=beside)
    assert verdict["status"] == "ok", verdict["reason"]


#: what a module may do when it is imported, and leave running
RUNNING = {
    "a thread": "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
    "a thread that keeps starting others": """
import _thread

def start():
    while True:
        _thread.start_new_thread(time.sleep, (0.2,))
        time.sleep(0.02)

threading.Thread(target=start, daemon=True).start()
""",
    "a thread that keeps opening folders": """
def look():
    while True:
        held = [os.open("/", os.O_RDONLY) for _ in range(8)]
        time.sleep(0.05)
        for fd in held:
            os.close(fd)

threading.Thread(target=look, daemon=True).start()
""",
    "a thread in a folder": """
HERE = os.getcwd()

def stand():
    os.chdir(os.path.expanduser("~"))
    time.sleep(1000)

threading.Thread(target=stand, daemon=True).start()
time.sleep(0.1)
""",
}
#: every path that leads from a process or thread to a folder, tried for a second; ``told`` is what it found outside
LOOKED_FOR = """
import glob
told, tried, until = set(), set(), time.monotonic() + 1
while time.monotonic() < until:
    for place in glob.glob('/proc/[0-9s]*/') + glob.glob('/proc/[0-9s]*/task/*/'):
        tried.add(place)
        for name in ('root', 'cwd', *glob.glob('fd/*', root_dir=place)):
            top = os.path.join(place, name, *['..'] * 20)
            for way_in in (os.path.join(place, name) + secret, top + secret):
                try:
                    told.add(open(way_in).read())
                    open(way_in + '.new', 'w').write('harm')
                except OSError:
                    pass
tell('tried', len(tried) > 4)
tell('found', sorted(told))
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.corpus] * ("keeps" in name)) for name in RUNNING]
)
def test_no_thread_of_the_module_leads_out(victim, name):
    secret = victim.home / ".ssh" / "id_test"
    beside = "\n" + RUNNING[name] + "\n"
    verdict, told = victim.attacks({"through it": LOOKED_FOR}, beside=beside, secret=str(secret))
    assert told["through it"][:2] == ["tried True", "found []"], told
    assert not secret.with_name("id_test.new").exists()
    assert verdict["status"] == "ok", verdict["reason"]


def test_what_a_thread_of_the_module_does_for_it_is_confined(victim):
    """One that began before has the same root from then on, and so has what it starts."""
    notes = victim.home / "notes.txt"
    notes.write_text("the user's")
    beside = (
        "\nfrom concurrent.futures import ThreadPoolExecutor\nPOOL = ThreadPoolExecutor(1)\nPOOL.submit(int).result()\n"
    )
    codes = {
        "reads": "tell(POOL.submit(lambda: open(notes).read()).result())",
        "writes": "POOL.submit(lambda: open(notes, 'w').write('harm')).result()",
        "plants": "POOL.submit(lambda: open(notes + '.new', 'w').write('harm')).result()",
        "starts a thread": "POOL.submit(lambda: ThreadPoolExecutor(1).submit(open, notes).result()).result()",
        "writes to a library": (
            "place = next(line for line in open('/proc/self/maps') if '.so' in line).split()[0]\n"
            "name = '-'.join(part.lstrip('0') for part in place.split('-'))\n"
            "POOL.submit(open, f'/proc/self/map_files/{name}', 'r+b').result()"
        ),
    }
    verdict, told = victim.attacks(codes, beside=beside, notes=str(notes))
    nothing = ("FileNotFoundError", "OSError [Errno 30]")  # the home folder is there, empty and read-only
    assert all(lines and lines[0].startswith(nothing) for lines in told.values()), told
    assert notes.read_text() == "the user's" and not notes.with_name("notes.txt.new").exists()
    assert verdict["status"] == "ok", verdict["reason"]


def test_a_project_behind_a_link_is_read(victim, monkeypatch):
    (victim.project / "table.txt").write_text("numbers")
    link = victim.home / "elsewhere"
    link.symlink_to(victim.project)
    monkeypatch.setattr(victim, "project", link)
    said = len(victim.said())
    verdict = victim.attack("tell(open(os.path.join(os.path.dirname(__file__), 'table.txt')).read())")
    assert verdict["status"] == "ok" and "attack: numbers" in victim.said()[said:], verdict["reason"]


def test_nothing_stays_mounted(victim):
    victim.attack("pass")
    assert str(victim.scratch) not in Path("/proc/self/mountinfo").read_text()
    assert [path for path in victim.scratch.glob("kernel-lsp-*/*")] == []


def test_without_a_filter_it_has_no_network(fresh, tmp_path):
    needs(namespace.AS_ROOT)
    victim = fresh("landlock,seccomp")
    verdict, arrived = sent(victim, tmp_path)
    assert arrived == dict.fromkeys(SOCKETS, b"")
    assert any("could start processes (no seccomp filter)" in limit for limit in verdict["limits"])


PROGRAM = """
import os, subprocess, sys, tempfile
from kernel_lsp.confinement import capabilities, namespace, paths, syscalls
folder = os.environ["TMPDIR"] = tempfile.mkdtemp(dir=sys.argv[3])
namespace.begin(sys.argv[1])
namespace.enter(paths.rules(folder, [], False, True, False), folder, [], False)
capabilities.drop()
syscalls.prctl(38, 1)
open(folder + "/a.c", "w").write("#include <stdio.h>\\nint main() { return 7; }")
compiler, made = sys.argv[2], folder + "/a.so"
print(subprocess.run([compiler, "-shared", "-fPIC", "-o", made, folder + "/a.c"]).returncode)
print(__import__("ctypes").CDLL(made).main())
try:
    subprocess.run(["/usr/bin/env", "true"])
except FileNotFoundError:
    print("not there")
"""


@pytest.mark.parametrize("way", WITHOUT)
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler here")
def test_the_compiler_works_in_it_under_its_usual_name(way, tmp_path):
    needs(way)
    command = [sys.executable, "-c", PROGRAM, way, shutil.which("cc") or "", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.split("\n")[:3] == ["0", "7", "not there"], done.stderr


LOCKED = """
import ctypes, errno, os, sys, tempfile
from kernel_lsp.confinement import capabilities, namespace, paths
folder = tempfile.mkdtemp(dir=sys.argv[2])
namespace.begin(sys.argv[1])
namespace.enter(paths.rules(folder, [], False, True, False), folder, [], False)
capabilities.drop(0)
libc = ctypes.CDLL(None, use_errno=True)
def say(result):
    print("done" if result == 0 else errno.errorcode[ctypes.get_errno()])
handle = (ctypes.c_uint32 * 34)(128)
assert libc.name_to_handle_at(-100, folder.encode(), handle, ctypes.byref(ctypes.c_int()), 0) == 0
say(min(0, libc.open_by_handle_at(os.open("/usr/lib", os.O_RDONLY), handle, os.O_RDONLY)))
for nested in (False, True):
    if nested:
        assert libc.unshare(0x10020000) == 0, "a namespace in the namespace, with all powers there"
    say(libc.mount(None, b"/usr/lib", None, 32 | 4096, None))
    say(libc.mount(None, b"/", None, 32 | 4096, None))
    say(libc.umount2(f"/proc/{os.getpid()}".encode(), 2))
    say(libc.umount2(b"/", 2))
    try:
        open("/usr/lib/planted", "w")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


@pytest.mark.parametrize("way", WITHOUT)
def test_it_is_locked_by_itself(way, tmp_path):
    """No filter for calls is needed for that, and it holds in a namespace that is made within it."""
    needs(way)
    done = subprocess.run([sys.executable, "-c", LOCKED, way, str(tmp_path)], capture_output=True, text=True)
    plain, nested = ["EPERM"] * 5 + ["EROFS"], ["EPERM", "EPERM", "EINVAL", "EINVAL", "EROFS"]
    assert done.stdout.split() == plain + nested, (done.stdout, done.stderr)


def test_it_is_for_a_process_in_a_mount_namespace_of_its_own(tmp_path):
    """In another one the whole system would get the new root."""
    before = os.readlink("/proc/self/ns/mnt")
    with pytest.raises(OSError, match="not its own"):
        namespace.enter([], str(tmp_path), [], False)
    assert os.readlink("/proc/self/ns/mnt") == before and not list(tmp_path.iterdir())


REFUSED = """
echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$@"
"""
LOOK = """
import json
from kernel_lsp.confinement import layers
found = layers.look()
print(json.dumps([found.namespace, layers.limits(found, False), layers.findings(found)[0].fix]))
"""


def test_a_system_that_refuses_it_is_said_to_and_how_to_get_it():
    """In a user namespace these are settings of its own."""
    needs(namespace.AS_USER)
    command = ["unshare", "-rm", "sh", "-c", REFUSED, "--", sys.executable, "-c", LOOK]
    env = {**os.environ, layers.WITHOUT: "landlock"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    found, limits, fix = json.loads(done.stdout)
    assert found == "" and any("no Landlock, no namespace" in limit for limit in limits)
    assert "sysctl user.max_user_namespaces=15000 user.max_mnt_namespaces=15000" in fix


def test_it_ends_with_its_parent(victim):
    """The signal for the parent's end is forgotten with some changes of a process's user."""
    said = len(victim.said())
    code = "number = ctypes.c_int()\nctypes.CDLL(None).prctl(2, ctypes.byref(number))\ntell('signal', number.value)"
    assert victim.attack(code)["status"] == "ok"
    told = {line for line in victim.said()[said:] if "signal" in line}
    assert told == {"attack: signal 9"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_an_ordinary_user_has_it_too():
    """A worker of a user without any powers; files are that user's own."""
    with tempfile.TemporaryDirectory() as folder:
        needs(namespace.AS_USER)
        os.chmod(folder, 0o777)
        before = os.umask(0)
        try:
            victim = Victim(Path(folder) / "files", "landlock", as_nobody(folder))
        finally:
            os.umask(before)
        try:
            found = {layer["name"]: layer["found"] for layer in victim.worker.call("hello")["confinement"]}
            assert namespace.AS_USER in found["Landlock (files)"], found
            notes = victim.home / "notes.txt"
            notes.write_text("the user's")
            os.chown(notes, NOBODY, NOBODY)
            codes = {
                "reads": "tell(open(notes).read())",
                "writes": "open(notes, 'w').write('harm')",
                "plants": "open(os.path.join(os.path.dirname(notes), 'new'), 'w').write('harm')",
                "its powers": "tell(os.getuid(), open('/proc/self/status').read().split('CapPrm:')[1].split()[0])",
                "its parent": "tell(os.listdir(f'/proc/{os.getppid()}/root'))",
            }
            verdict, told = victim.attacks(codes, notes=str(notes))
            assert verdict["status"] == "ok", (verdict, victim.worker.stderr)
            assert told["its powers"][0] == f"{NOBODY} {0:016x}", told
            assert "the user's" not in told["reads"] and notes.read_text() == "the user's", told
            assert not (victim.home / "new").exists() and "FileNotFoundError" in told["its parent"][0], told
        finally:
            victim.close()
