"""How much memory the worker takes while it works: the device's, and that of the worker with all its children.

A program of its own, since drivers hang: it is started with the worker's process id and a device, looks a hundred times a
second, and prints ``{"device": bytes, "host": bytes}``, the greatest it saw, once its standard input ends. The standard
library alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import select
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

#: seconds between two looks at the device, and at the host, which takes longer
_DEVICE_SECONDS, _HOST_SECONDS = 0.01, 0.1


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def main(pid: int, index: str) -> None:
    """Watch until standard input ends."""
    device = _device(index)
    greatest = {"device": 0, "host": 0}
    looked = 0.0
    while True:
        if device is not None:
            greatest["device"] = max(greatest["device"], device())
        if time.monotonic() - looked > _HOST_SECONDS:
            greatest["host"] = max(greatest["host"], sum(map(_host, family(pid))))
            looked = time.monotonic()
        ready, _, _ = select.select([0], [], [], _HOST_SECONDS if device is None else _DEVICE_SECONDS)
        if ready and not os.read(0, 1024):
            break
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(greatest), flush=True)


def _device(index: str) -> Any:
    """A function that gives the bytes in use on a device, by NVML's index or UUID; None where that is not to be had."""
    if not index:
        return None
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        handle, memory = ctypes.c_void_p(), _Memory()
        if nvml.nvmlInit_v2():
            return None
        if index.isdigit():
            failed = nvml.nvmlDeviceGetHandleByIndex_v2(int(index), ctypes.byref(handle))
        else:
            failed = nvml.nvmlDeviceGetHandleByUUID(index.encode(), ctypes.byref(handle))
        if failed:
            return None
    except (OSError, ValueError):
        return None

    def used() -> int:
        return memory.used if nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0 else 0

    return used


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    found, rest = [], [pid]
    while rest:
        one = rest.pop()
        found.append(one)
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{one}/task/{one}/children") as file:
            rest += [int(n) for n in file.read().split()]
    return found


def _host(pid: int) -> int:
    """Bytes of a process's own memory; what several share is divided among them."""
    total = 0
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                total += int(line.split()[1]) * 1024
    return total


def _nvml_name(index: int) -> str:
    """What NVML calls CUDA's device ``index``: NVML knows nothing of CUDA_VISIBLE_DEVICES."""
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[index] if index < len(visible) else str(index)


@contextlib.asynccontextmanager
async def watched(device: str) -> AsyncIterator[dict[str, int]]:
    """What is in the dictionary after the context: the greatest use of memory during it; nothing where that cannot be seen."""
    found: dict[str, int] = {}
    index = _nvml_name(int(device.partition(":")[2] or 0)) if device.startswith("cuda") else ""
    program = [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), index]
    try:
        process = await asyncio.create_subprocess_exec(
            *program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
    except OSError:
        yield found
        return
    try:
        yield found
        with contextlib.suppress(ValueError, TimeoutError, OSError):
            assert process.stdin is not None
            process.stdin.close()  # communicate() does so from Python 3.12 on
            out, _ = await asyncio.wait_for(process.communicate(), 1)
            found.update(json.loads(out))
    finally:
        if process.returncode is None:
            process.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
