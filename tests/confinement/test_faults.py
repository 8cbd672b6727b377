"""What may go wrong around a candidate: each fault has a verdict or a message, nothing is left, the next job works."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.confinement.attacks import KERNEL, MODULE
from tests.confinement.conftest import Victim
from tests.confinement.leftovers import nothing_left
from tests.confinement.waiting import wait_until
from tests.worker.worker_client import WorkerError

pytestmark = pytest.mark.slow

FLOOD = "line = b'x' * (1 << 20)\nfor _ in range(100):\n    os.write({}, line)\n"
PRINTED = "print('x' * (100 << 20), end='')\n"


def validate(victim, source, kernel=KERNEL, seconds=60):
    """The verdict on a kernel beside a module of the text ``source``."""
    path = victim.project / "victim.py"
    path.write_text(source)
    given = {"device": "interpreter", "measure": "none", "seconds": seconds}
    return victim.worker.call("validate", path=str(path), class_name="Scale", source=kernel, **given)["verdict"]


@pytest.mark.parametrize(
    ("who", "code"),
    [
        ("the candidate", FLOOD.format(1)),
        pytest.param("the candidate", FLOOD.format(2), marks=pytest.mark.corpus),
        pytest.param("the module", FLOOD.format(1), marks=pytest.mark.corpus),
        ("the module", FLOOD.format(2)),
        pytest.param("the module", PRINTED, marks=pytest.mark.corpus),
    ],
    ids=["candidate-stdout", "candidate-stderr", "import-stdout", "import-stderr", "import-print"],
)
def test_a_hundred_megabytes_without_a_newline(victim, who, code):
    with nothing_left(victim):
        length, began = len(victim.worker.stderr), time.monotonic()
        if who == "the candidate":
            verdict = victim.attack(code + "os.write(2, b'\\n')\ntell('written')")
        else:
            verdict = validate(victim, MODULE.replace("BODY", "pass") + code)
        assert verdict["status"] == "ok", verdict["reason"]
        assert time.monotonic() - began < 30
        assert len(victim.worker.stderr) - length < 1 << 20


SLEEPS = MODULE.replace("BODY", "tell('sleeps', os.getpid(), os.getppid())\n        time.sleep(100)")


def until_it_sleeps(victim, seconds=60):
    """(id of the request, {"trial": (process, its parent), "compiler": …}) once the candidate sleeps in both."""
    victim.worker.call("warm")  # takes as long as the machine is busy
    path = victim.project / "victim.py"
    path.write_text(SLEEPS)
    said = len(victim.said())
    given = {"device": "interpreter", "measure": "none", "seconds": seconds}
    ident = victim.worker.send("validate", path=str(path), class_name="Scale", source=KERNEL, **given)
    assert wait_until(lambda: len(victim.said()) >= said + 2, 60)
    found = {}
    for line in victim.said()[said:]:
        pid, parent = map(int, line.split()[2:])
        inside = any("socket" in f"{os.readlink(fd)}" for fd in glob.glob(f"/proc/{pid}/fd/*"))
        found["trial" if inside else "compiler"] = (pid, parent)
    return ident, found


def test_a_trial_that_is_killed_from_outside(victim):
    with nothing_left(victim):
        ident, found = until_it_sleeps(victim)
        os.kill(found["trial"][0], signal.SIGKILL)
        verdict = victim.worker.wait(ident)["verdict"]
        assert (verdict["status"], verdict["reason"]) == ("crashed", "its process was killed by SIGKILL")


def test_the_parent_of_a_trial_is_killed(victim):
    """The process that holds the referee: no verdict then, and the trial ends with it."""
    with nothing_left(victim):
        ident, found = until_it_sleeps(victim)
        os.kill(found["trial"][1], signal.SIGKILL)
        with pytest.raises(WorkerError, match="killed by SIGKILL") as caught:
            victim.worker.wait(ident)
        assert caught.value.code == "WorkerDied" and "memory" not in caught.value.message


def test_a_trial_that_is_stopped_meets_the_deadline(victim):
    with nothing_left(victim):
        began = time.monotonic()
        verdict = victim.attack("os.kill(os.getpid(), signal.SIGSTOP)", seconds=2)
        assert (verdict["status"], time.monotonic() - began < 10) == ("timeout", True), verdict


@pytest.mark.corpus
def test_a_referee_that_is_stopped_meets_the_deadline(victim):
    with nothing_left(victim):
        ident, found = until_it_sleeps(victim, seconds=2)
        os.kill(found["trial"][1], signal.SIGSTOP)
        with pytest.raises(WorkerError) as caught:
            victim.worker.wait(ident)
        assert caught.value.code == "WorkerTimedOut"


@pytest.mark.parametrize(
    "whom",
    [
        "the manager",
        pytest.param("the keeper", marks=pytest.mark.corpus),
        pytest.param("a zygote", marks=pytest.mark.corpus),
        pytest.param("the other zygote", marks=pytest.mark.corpus),
    ],
)
def test_a_process_of_the_worker_is_killed(fresh, whom):
    """In the middle of a job: the worker ends as a whole, which the server sees, and takes everything along."""
    victim = fresh()
    manager = psutil.Process(victim.worker.process.pid)
    until_it_sleeps(victim)
    (keeper,) = [p for p in manager.children() if p.children()]
    (native,) = keeper.children()
    interpreter = min(native.children(), key=lambda p: p.create_time())
    (folder,) = victim.scratch.glob("kernel-lsp-*")
    family = manager.children(recursive=True)
    chosen = {"the manager": manager, "the keeper": keeper, "a zygote": native, "the other zygote": interpreter}
    chosen[whom].kill()
    _, alive = psutil.wait_procs([manager, *family], timeout=8)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
    assert wait_until(lambda: not list(victim.scratch.glob("kernel-lsp-*")), 3)
    assert wait_until(lambda: not glob.glob(f"/sys/fs/cgroup/**/{folder.name}", recursive=True), 3)


@contextlib.contextmanager
def little_memory(victim, room):
    """A limit for what the worker's processes and their children take from now on; skips where none can be set."""
    first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    if (first / "tasks").exists():
        parent, limit = first, "memory.limit_in_bytes"
    elif "memory" in (second / "cgroup.subtree_control").read_text().split():
        parent, limit = second, "memory.max"
    else:
        pytest.skip("no memory controller here")
    if not os.access(parent, os.W_OK):
        pytest.skip("no right to make a control group here")
    worker = psutil.Process(victim.worker.process.pid)
    lines = Path(f"/proc/{worker.pid}/cgroup").read_text().splitlines()
    own = next(line.split(":", 2) for line in lines if line.split(":")[1] in ("memory", ""))
    before = parent / own[2].lstrip("/")
    group = parent / f"test-{os.getpid()}-{worker.pid}"
    group.mkdir()
    family = [worker, *worker.children(recursive=True)]
    try:
        (group / limit).write_text(str(room))
        for one in family:
            (group / "cgroup.procs").write_text(str(one.pid))
        yield
    finally:
        for one in family:
            with contextlib.suppress(OSError):
                (before / "cgroup.procs").write_text(str(one.pid))
        assert wait_until(lambda: not (group / "cgroup.procs").read_text().split(), 5)
        group.rmdir()


def test_a_trial_that_the_system_ends_for_want_of_memory(fresh):
    """Memory that is in use, below all of our own limits. The worker has no group of its own for candidates.

    Where memory is tight the system may end the worker instead, which no other test is to share then.
    """
    bare = fresh("landlock,namespace,seccomp,cgroup")
    with nothing_left(bare), little_memory(bare, 1 << 30):
        verdict = bare.attack("held = bytearray(1600 << 20)\nfor at in range(0, len(held), 4096):\n    held[at] = 1")
        assert verdict["status"] == "out-of-memory", verdict
        assert verdict["reason"] == "its process was killed by SIGKILL when memory ran out"


IN_A_NAMESPACE = ["unshare", "-rm", "sh", "-c"]


def may_mount():
    command = [*IN_A_NAMESPACE, "mount -t tmpfs none /mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path):
    """A worker whose folder for temporary files is a disk of 16 MB that no other process sees."""
    if not may_mount():
        pytest.skip("no namespace with a disk of one's own may be made here")
    scratch = tmp_path / "disk" / "scratch"
    mounted = f'mount -t tmpfs -o size=16m none "{scratch}" && exec "$@"'
    one = Victim(tmp_path / "disk", command=[*IN_A_NAMESPACE, mounted, "--", sys.executable])
    one.scratch = Path(f"/proc/{one.worker.process.pid}/root{scratch}")  # as the worker sees it
    yield one
    one.close()


FILL = "fd = os.open('filler', os.O_CREAT | os.O_WRONLY)\nwhile True:\n    os.write(fd, bytes(1 << 20))"


def test_a_full_disk_for_temporary_files(small_disk):
    victim = small_disk
    with nothing_left(victim):
        said = len(victim.said())
        victim.attack(FILL, seconds=20)
        assert any("No space left on device" in line for line in victim.said()[said:])
    with nothing_left(victim):
        with open(victim.scratch / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))
        with pytest.raises(WorkerError, match="No space left on device") as caught:
            victim.attack("pass")
        assert caught.value.code == "TemporaryFolderFull" and "TMPDIR" in caught.value.message
        (victim.scratch / "filler").unlink()
