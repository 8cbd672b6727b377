"""What the driver says of NVIDIA GPUs, through NVML: which there are, their memory, and which processes keep them busy.

The driver's library is called with ctypes: the worker runs in the user's interpreter, where no package of ours is
installed, so the package nvidia-ml-py cannot be counted on. The standard library alone, and a program of its own for
callers that a driver must not hang: ``nvml.py DEVICE SECONDS PID…`` prints what others than these processes did in the last seconds, as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

#: percent of the time in which a process has a kernel on the GPU, below which it does not count
BUSY = 10
_MOST = 1024  # processes, and samples of their use
_SUCCESS = 0


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class _Sample(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("at", ctypes.c_ulonglong),  # microseconds since 1970
        ("sm", ctypes.c_uint),  # percent
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    ]


@dataclass(frozen=True)
class Use:
    """A process that keeps a GPU busy: in so many percent of the time it had a kernel there."""

    pid: int
    percent: int
    program: str = ""


@dataclass(frozen=True)
class Gpu:
    """A GPU by NVML's handle, with the library that it is of."""

    library: Any
    handle: Any

    def text(self, function: str) -> str:
        """What a function of NVML that fills in a text says of the GPU: ``nvmlDeviceGetName``."""
        text = ctypes.create_string_buffer(96)
        return text.value.decode() if getattr(self.library, function)(self.handle, text, 96) == _SUCCESS else ""

    def memory_used(self) -> int:
        """Bytes, of all processes; 0 where it does not say."""
        return int(self._memory().used)

    def memory_total(self) -> int:
        """Bytes that it has; 0 where it does not say."""
        return int(self._memory().total)

    def _memory(self) -> _Memory:
        memory = _Memory()
        found = self.library.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(memory))
        return memory if found == _SUCCESS else _Memory()

    def processes(self) -> set[int]:
        """The processes that have a context on it."""
        found: set[int] = set()
        for kind in ("Compute", "Graphics"):
            count, rows = ctypes.c_uint(_MOST), (_Process * _MOST)()
            with contextlib.suppress(AttributeError):  # a driver of before 2022
                ask = getattr(self.library, f"nvmlDeviceGet{kind}RunningProcesses_v3")
                if ask(self.handle, ctypes.byref(count), rows) == _SUCCESS:
                    found |= {rows[i].pid for i in range(count.value)}
        return found

    def use(self, since: float) -> dict[int, int]:
        """Process → the greatest of the samples of its use in percent, since a moment (time.time()) a few seconds ago."""
        count, rows = ctypes.c_uint(_MOST), (_Sample * _MOST)()
        moment = ctypes.c_ulonglong(max(0, int(since * 1e6)))
        found: dict[int, int] = {}
        ask = self.library.nvmlDeviceGetProcessUtilization
        if (
            ask(self.handle, rows, ctypes.byref(count), moment) == _SUCCESS
        ):  # else it cannot tell, or no process used it
            for i in range(count.value):
                if rows[i].at >= moment.value and rows[i].sm <= 100:
                    found[rows[i].pid] = max(found.get(rows[i].pid, 0), rows[i].sm)
        return found


def load() -> Any:
    """The driver's library, ready to be asked; None where there is none."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        return library if library.nvmlInit_v2() == _SUCCESS else None
    except (OSError, AttributeError):
        return None


def gpu(name: str) -> Gpu | None:
    """The GPU with NVML's index or UUID; None where that is not to be had."""
    library, handle = load(), ctypes.c_void_p()
    if library is None or not name:
        return None
    if name.isdigit():
        failed = library.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(handle))
    else:
        failed = library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
    return None if failed else Gpu(library, handle)


def gpus(library: Any) -> list[Gpu]:
    """All of them, in NVML's order."""
    count = ctypes.c_uint()
    library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    found = []
    for i in range(count.value):
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)) == _SUCCESS:
            found.append(Gpu(library, handle))
    return found


def name_of(index: int) -> str:
    """What NVML calls CUDA's device ``index``: NVML knows nothing of CUDA_VISIBLE_DEVICES."""
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[index] if index < len(visible) else str(index)


def others(one: Gpu, own: Collection[int], since: float) -> list[Use]:
    """The processes beside ``own`` that have kept a GPU busy since a moment and still run, the busiest first."""
    running, use = one.processes(), one.use(since)
    found = [
        Use(pid, percent, _program(pid))
        for pid, percent in use.items()
        if percent >= BUSY and pid in running and pid not in own and os.path.exists(f"/proc/{pid}")
    ]
    return sorted(found, key=lambda use: -use.percent)


def said(found: Collection[Use]) -> str:
    """``87 % busy by pid 4711 (python) and 1 more``; "" where there is none."""
    if not found:
        return ""
    first, *rest = found
    program = f" ({first.program})" if first.program else ""
    return f"{first.percent} % busy by pid {first.pid}{program}" + (f" and {len(rest)} more" if rest else "")


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    children = _children if os.path.exists(f"/proc/self/task/{os.getpid()}/children") else _all_children().get
    found, rest = [], [pid]
    while rest:
        one = rest.pop()
        found.append(one)
        rest += children(one) or []
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += [int(n) for n in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()]
    return found


def _all_children() -> dict[int, list[int]]:
    """Of every process: for kernels that do not name a process's children by themselves."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        with contextlib.suppress(OSError, ValueError, IndexError):
            if name.isdigit():  # the name of a program, in brackets, may hold anything
                parent = Path(f"/proc/{name}/stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                found.setdefault(int(parent), []).append(int(name))
    return found


def _program(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    return ""


def main(name: str, seconds: str, *pids: str) -> None:
    """What other processes than these, and what they started, did with a GPU in the last seconds: the driver keeps that."""
    one = gpu(name)
    own = {member for pid in pids for member in family(int(pid))}
    found = others(one, own, time.time() - float(seconds)) if one is not None else []
    print(json.dumps([asdict(use) for use in found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
