"""A candidate that takes all it can: the machine goes on, the next job works, nothing is left."""

from __future__ import annotations

import os
import shutil
import time

import psutil
import pytest

from tests.confinement.attacks import KERNEL
from tests.confinement.leftovers import next_one_works, wait_until


def requests_in(victim):
    return [p for p in victim.scratch.glob("kernel-lsp-*/*") if p.name != "ended"]


ATTACKS = {
    "memory": "held = []\nwhile True:\n    held.append(b'x' * (64 << 20))",
    "memory in files": (
        "held = []\nwhile True:\n    held.append(os.memfd_create('x'))\n    os.ftruncate(held[-1], 1 << 30)\n"
        "    held.append(mmap.mmap(held[-1], 1 << 30))"
    ),
    "threads": (
        "threading.stack_size(65536)\nevent = threading.Event()\n"
        "while True:\n    threading.Thread(target=event.wait, daemon=True).start()"
    ),
    "descriptors": "held = []\nwhile True:\n    held.append(os.open('/dev/null', os.O_RDONLY))",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_it_takes_is_bounded(victim, name):
    before = psutil.virtual_memory().available
    began = time.monotonic()
    victim.attack(ATTACKS[name], seconds=40)
    assert time.monotonic() - began < 70
    assert wait_until(lambda: psutil.virtual_memory().available > before - (2 << 30), 10)
    next_one_works(victim)


def test_a_full_disk_is_not_reached(victim, monkeypatch):
    """Files of 1 GB each until somebody stops it; less than 4 GB and what is written between two looks."""
    free = shutil.disk_usage(victim.scratch).free
    if free < 20 << 30:
        pytest.skip("too little room on this disk to try")
    code = """
block = bytes(16 << 20)
n = 0
while True:
    fd = os.open(f"file{n}", os.O_WRONLY | os.O_CREAT)
    if n % 2:
        os.remove(f"file{n}")
    for _ in range(64):
        os.write(fd, block)
    tell("wrote", n)
    n += 1
"""
    said = len(victim.said())
    verdict = victim.attack(code, seconds=60)
    assert verdict["status"] == "crashed" and "GB" in verdict["reason"], verdict
    assert 3 <= len(victim.said()[said:]) < 12
    assert wait_until(lambda: shutil.disk_usage(victim.scratch).free > free - (1 << 30), 10)
    assert requests_in(victim) == []
    next_one_works(victim)


def test_a_flood_of_lines_is_cut(victim):
    code = "line = b'a line of no use\\n' * 65536\nfor _ in range(4):\n    os.write(2, line)"
    length = len(victim.worker.stderr)
    assert victim.attack(code)["status"] == "ok"
    assert len(victim.worker.stderr) - length < 3 << 20
    next_one_works(victim)


def test_control_characters_do_not_reach_the_log(victim):
    victim.attack("os.write(2, b'\\x1b[2J\\x1b]0;harm\\x07\\n')")
    assert "\x1b" not in victim.worker.stderr


def test_a_kill_is_not_taken_for_want_of_memory(victim):
    verdict = victim.attack("os.kill(os.getpid(), 9)")
    assert (verdict["status"], verdict["reason"]) == ("crashed", "its process was killed by SIGKILL")


BOMB = """
import itertools
def bomb():
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)
if os.fork() == 0:
    bomb()
time.sleep(3)
"""

DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        sys.argv[0] = "x"
        while True:
            time.sleep(0.1)
    os._exit(0)
"""


@pytest.mark.parametrize("code", [BOMB, DAEMON], ids=["fork bomb", "daemon"])
@pytest.mark.parametrize("without", ["", "seccomp"])
def test_no_process_lives_on(fresh, code, without):
    """Under the interpreter there is none to begin with; without seccomp the keeper and the group's limit are left."""
    if code is BOMB and without and not os.access("/sys/fs/cgroup/pids", os.W_OK) and os.getuid() == 0:
        pytest.skip("no layer bounds root's processes here")
    victim = fresh(without)
    next_one_works(victim)
    keeper = psutil.Process(victim.worker.process.pid)
    own = {p.pid for p in keeper.children(recursive=True)}
    before = len(psutil.pids())
    victim.attack(code, seconds=30)
    assert wait_until(lambda: {p.pid for p in keeper.children(recursive=True)} <= own, 5)
    assert wait_until(lambda: len(psutil.pids()) < before + 50, 5)
    next_one_works(victim)


@pytest.mark.parametrize("whom", ["the manager", "the keeper", "a zygote", "the other zygote"])
def test_nothing_is_left_when_a_process_of_the_worker_is_killed(fresh, whom):
    victim = fresh()
    next_one_works(victim)
    manager = psutil.Process(victim.worker.process.pid)
    (keeper,) = [p for p in manager.children() if p.children()]
    (native,) = keeper.children()
    family = manager.children(recursive=True)
    given = {"device": "interpreter", "measure": "none"}
    path = victim.project / "victim.py"
    path.write_text(path.read_text().replace("        pass\n", "        time.sleep(30)\n"))
    victim.worker.send("judge", path=str(path), class_name="Scale", source=KERNEL, seconds=60, **given)
    assert wait_until(lambda: len(manager.children(recursive=True)) >= len(family) + 3, 20)
    time.sleep(1)
    family = manager.children(recursive=True)
    groups = [g for g in cgroups() if keeper.is_running()]
    chosen = {
        "the manager": manager,
        "the keeper": keeper,
        "a zygote": native,
        "the other zygote": native.children()[0],
    }
    chosen[whom].kill()
    _, alive = psutil.wait_procs([manager, *family], timeout=8)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
    assert wait_until(lambda: not list(victim.scratch.glob("kernel-lsp-*")), 3)
    assert len(cgroups()) <= len(groups)


def cgroups():
    import glob

    return glob.glob("/sys/fs/cgroup/**/kernel-lsp-*", recursive=True)
