"""A candidate that takes all it can: the machine goes on, the next job works, nothing is left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import psutil
import pytest

from kernel_lsp.worker import keeper
from tests.confinement.leftovers import next_one_works, nothing_left
from tests.confinement.waiting import wait_until

pytestmark = pytest.mark.slow


def requests_in(victim):
    return [p for p in victim.scratch.glob("kernel-lsp-*/*") if p.name != "ended"]


ATTACKS = {
    "addresses": (
        "held, kind = [], mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS\n"
        "while True:\n    held.append(mmap.mmap(-1, 1 << 30, kind))"
    ),
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


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.corpus] * (name not in ("memory in files", "descriptors")))
        for name in ATTACKS
    ],
)
def test_what_it_takes_is_bounded(victim, name):
    before = psutil.virtual_memory().available
    began = time.monotonic()
    victim.attack(ATTACKS[name], seconds=40)
    assert time.monotonic() - began < 70
    assert wait_until(lambda: psutil.virtual_memory().available > before - (2 << 30), 10)
    next_one_works(victim)


@pytest.mark.corpus
@pytest.mark.timeout(300)
def test_a_full_disk_is_not_reached(victim):
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
    verdict = victim.attack(code, seconds=90)
    assert verdict["status"] == "crashed" and "GB" in verdict["reason"], verdict
    assert 3 <= len(victim.said()[said:]) < 12
    assert wait_until(lambda: shutil.disk_usage(victim.scratch).free > free - (1 << 30), 10)
    assert requests_in(victim) == []
    next_one_works(victim)


def test_a_flood_of_lines_is_cut(victim):
    code = "line = b'a line of no use\\n' * 65536\nfor _ in range(4):\n    os.write(2, line)"
    length = len(victim.worker.stderr)
    assert victim.attack(code)["status"] == "ok"
    assert len(victim.worker.stderr) - length < 4 << 20  # a megabyte of each process, and there are three
    next_one_works(victim)


def test_control_characters_do_not_reach_the_log(victim):
    victim.attack("os.write(2, b'\\x1b[2J\\x1b]0;harm\\x07\\n')")
    assert "\x1b" not in victim.worker.stderr


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
time.sleep(1)
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


@pytest.mark.parametrize("code", [pytest.param(BOMB, marks=pytest.mark.corpus), DAEMON], ids=["fork bomb", "daemon"])
def test_no_process_lives_on(victim, code):
    """The interpreter's process may start none; the compiler's may, as many as the group and the keeper let it."""
    with nothing_left(victim):
        victim.attack(code, seconds=30)


def test_a_daemon_is_ended_by_the_keeper(bare):
    with nothing_left(bare):
        bare.attack(DAEMON, seconds=30)


@pytest.mark.corpus
def test_a_fork_bomb_is_ended_without_the_filter(fresh):
    if not os.access("/sys/fs/cgroup/pids", os.W_OK) and os.getuid() == 0:
        pytest.skip("no layer bounds root's processes here")
    victim = fresh("seccomp")
    with nothing_left(victim):
        victim.attack(BOMB, seconds=30)


HOLDS = """
import os, sys
os.write(os.open("named", os.O_CREAT | os.O_WRONLY), bytes(1 << 20))
os.write(os.open("removed", os.O_CREAT | os.O_WRONLY), bytes(1 << 20))
os.remove("removed")
os.ftruncate(os.open("sparse", os.O_CREAT | os.O_WRONLY), 1 << 40)
print("ready", flush=True)
sys.stdin.read()
"""


def test_what_lies_on_the_disk_is_counted(tmp_path):
    """Also what is open and has no name any more; not what only looks large."""
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        assert 2 << 20 <= keeper._on_disk([str(tmp_path)], [process.pid]) < 3 << 20
        assert 1 << 20 <= keeper._on_disk([str(tmp_path)], []) < 2 << 20
        process.stdin.close()
