"""What a worker has while it is idle: after each fault it must be what it was before."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.confinement.conftest import Victim
from tests.confinement.waiting import wait_until


def next_one_works(victim: Victim) -> None:
    verdict = victim.attack("pass")
    assert verdict["status"] == "ok", verdict["reason"]


def belongings(victim: Victim) -> dict[str, Any]:
    """Processes with their open files and shared memory, and everything in the folder for temporary files."""
    worker = psutil.Process(victim.worker.process.pid)
    family = [worker, *worker.children(recursive=True)]
    return {
        "processes": sorted(p.pid for p in family),
        "descriptors": {p.pid: p.num_fds() for p in family},
        "shared memory": {p.pid: _shared(p.pid) for p in family},
        "files": sorted(str(p.relative_to(victim.scratch)) for p in victim.scratch.rglob("*")),
    }


def _shared(pid: int) -> int:
    """How many maps of memory files a process has."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return sum("/memfd:" in line or "/dev/shm" in line for line in lines)


@contextlib.contextmanager
def nothing_left(victim: Victim) -> Iterator[None]:
    """Around a fault that the worker has to survive: nothing of it is left, and the next job works."""
    if not victim.warm:
        next_one_works(victim)
        victim.warm = True
    before = belongings(victim)

    def as_before() -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            return belongings(victim) == before
        return False

    assert wait_until(as_before, 5), "the job before has not ended"
    yield
    assert wait_until(as_before, 5), (before, belongings(victim))
    next_one_works(victim)
