"""The keeper: the process above the zygotes, which leaves nothing behind, however the worker ends.

    manager ── keeper ── zygotes ── validate ── trial

Whatever loses its parent below it becomes its child (a "subreaper"), and is ended: a candidate that starts a process
of its own and lets go of it. It outlives the manager by the moment that it takes to end everything and to remove the
scratch folder. While tasks run it looks whether candidates fill the disk or the memory, and ends them if so.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterator

from kernel_lsp import child_processes
from kernel_lsp.confinement import cgroup, syscalls
from kernel_lsp.worker import exit_reasons

_PR_SET_CHILD_SUBREAPER = 36

#: seconds between two sweeps while there are orphans
_SWEEP_SECONDS = 0.02
#: seconds between two looks at what candidates use
_LOOK_SECONDS = 0.25
#: bytes of files that candidates may have at once, and the share of the memory that has to stay free
DISK = 4 << 30
#: processes that candidates may have at once: the compiler runs on every core
_PROCESSES = 64 + 4 * (os.cpu_count() or 1)
_FREE_MEMORY = 0.03
#: seconds for everything to end
_END_SECONDS = 5.0

BEGINS, ENDS = b"+", b"-"


def start(folders: list[str], group: str, close: list[int], zygotes: Callable[[int], None]) -> None:
    """Fork the keeper, which calls ``zygotes`` with the descriptor that these write ``BEGINS`` and ``ENDS`` of tasks to.

    ``folders``: the scratch folder, and others that candidates write in. ``close``: the manager's own descriptors. ``group``: the folder of the cgroup that is removed at the end, or "".
    """
    alive, _held = os.pipe()  # the manager holds the other end for as long as it lives
    if os.fork():
        os.close(alive)
        return
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        for fd in (*close, _held):
            os.close(fd)
        with contextlib.suppress(OSError, AttributeError):
            syscalls.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        told, tell = os.pipe()
        zygotes(tell)  # only this process comes back
        os.close(tell)
        _keep(alive, told, folders)
    finally:
        _end_all()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        cgroup.remove(group)
        os._exit(0)


def _keep(alive: int, told: int, folders: list[str]) -> None:
    """Until the manager ends."""
    mine = set(_children(os.getpid()))
    running, looked, orphans = 0, 0.0, False
    wanted = [alive, told]
    while True:
        ready, _, _ = select.select(wanted, [], [], _SWEEP_SECONDS if orphans else _LOOK_SECONDS if running else None)
        if alive in ready:
            return
        if told in ready:
            said = os.read(told, 4096)
            if not said:  # the zygotes are gone, and the manager soon will be
                wanted, running = [alive], 0
            running = max(0, running + said.count(BEGINS) - said.count(ENDS))
            orphans = not said or ENDS in said
            if running == 0:  # no process is left that would read them
                exit_reasons.forget(folders[0])
        if orphans:  # until there is none: what an orphan has started becomes one when that ends
            orphans = _end_orphans(mine)
        if running and time.monotonic() - looked > _LOOK_SECONDS:
            with contextlib.suppress(OSError):
                _look(folders)
            looked = time.monotonic()


def _end_orphans(mine: set[int]) -> bool:
    """End what has lost its parent below; whether there was any."""
    orphans = set(_children(os.getpid())) - mine
    for pid in orphans:
        for one in (pid, *_below(pid)):
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return bool(orphans)


def _end_all() -> None:
    until = time.monotonic() + _END_SECONDS
    while time.monotonic() < until:
        for pid in _below(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.01)
        except ChildProcessError:
            return


def _look(folders: list[str]) -> None:
    """End candidates that use up what others need, too."""
    confined = [pid for pid in _below(os.getpid()) if _is_confined(pid)]
    if not confined:
        return
    why = ""
    if _on_disk(folders, confined) > DISK:
        why = f"its files took more than {DISK >> 30} GB"
    elif len(confined) > _PROCESSES:
        why = f"it had more than {_PROCESSES} processes"
    elif _memory_is_short():
        confined = [max(confined, key=child_processes.resident)]
        why = "memory ran out"
    if why:
        for leader in {_leader(pid) for pid in confined} - {0}:
            exit_reasons.note(folders[0], leader, why)
            child_processes.kill_group(leader)


def _leader(pid: int) -> int:
    """The process that leads its group; 0 where it has ended."""
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _is_confined(pid: int) -> bool:
    """Whether a process has a filter for its calls that this one does not have."""
    return _filters(str(pid)) > _filters("self")


def _filters(pid: str) -> int:
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("Seccomp_filters:"):
                return int(line.split()[1])
    return 0


def _on_disk(folders: list[str], confined: list[int]) -> int:
    """Bytes of the files below the folders and of those that are open, though they have no name any more."""
    device = os.stat(folders[0]).st_dev
    statuses = (
        *(status for folder in folders for status in _files(folder)),
        *(status for pid in confined for status in _opened(pid)),
    )
    found = {
        status.st_ino: status.st_blocks * 512
        for status in statuses
        if status.st_dev == device and stat.S_ISREG(status.st_mode)
    }
    return sum(found.values())


def _files(folder: str) -> Iterator[os.stat_result]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            else:
                with contextlib.suppress(OSError):
                    yield entry.stat(follow_symlinks=False)


def _opened(pid: int) -> Iterator[os.stat_result]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{name}")
                if status.st_nlink == 0:
                    yield status


def _memory_is_short() -> bool:
    sizes: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo") as file:
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in file}
    return sizes.get("MemAvailable", 1) < _FREE_MEMORY * sizes.get("MemTotal", 1)


def _below(pid: int) -> list[int]:
    found, rest = [], _children(pid)
    while rest:
        one = rest.pop()
        found.append(one)
        rest += _children(one)
    return found


def _children(pid: int) -> list[int]:
    """The processes that all threads of one have started."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found
