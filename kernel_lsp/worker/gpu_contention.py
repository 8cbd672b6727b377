"""What other processes did on a GPU while something was timed there: such times are marked, and tell of no regression."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import torch

from kernel_lsp import nvml

#: seconds before the timing in which a use counts, too: the driver takes a sample about six times a second
EARLIER = 0.5


def said(device: torch.device, began: float, lock: str = "") -> str:
    """``87 % busy by pid 4711 (python)``, of others since shortly before ``began`` (time.time()); "" where there were none.

    ``lock``: the file that is held while something is timed. A process that has it open waits, and what the driver still says of
    it and its relatives is from before.

    Also "" where it cannot be told: on drivers without samples of each process, and in containers in which NVML gives
    other numbers of processes than ``/proc``, or not those of other containers.
    """
    if device.type != "cuda":
        return ""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    one = nvml.gpu(f"GPU-{uuid}") if uuid is not None else nvml.gpu(nvml.name_of(device.index or 0))
    if one is None:
        return ""
    own = {*nvml.family(os.getpid()), *nvml.family(os.getppid())}
    if not own & one.processes():  # this process has a context there: the numbers are not those of /proc
        return ""
    return nvml.said(nvml.others(one, own | waiting(one.processes() - own, lock), began - EARLIER))


def waiting(running: Iterable[int], lock: str) -> set[int]:
    """Those of the processes that have the file ``lock`` open, with the families of their parents: a worker's, as this one's own."""
    found: set[int] = set()
    for pid in running if lock else ():
        if pid not in found and _has_open(pid, lock):
            parent = _parent(pid)
            found |= {pid, *nvml.family(parent if parent > 1 else pid)}
    return found


def _has_open(pid: int, path: str) -> bool:
    try:
        wanted = os.stat(path)
        files = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it has ended, or is another user's
        return False
    for file in files:
        with contextlib.suppress(OSError):
            if os.path.samestat(file.stat(), wanted):
                return True
    return False


def _parent(pid: int) -> int:
    """0 where it has ended."""
    with contextlib.suppress(OSError, ValueError, IndexError):  # the name of a program, in brackets, may hold anything
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return 0
