"""How much memory the worker takes while it works: the device's, and that of the worker with all its children.

In a process of its own, since drivers hang: it is started with the worker's process id and a device, looks a hundred
times a second, and prints ``{"device": bytes, "host": bytes}``, the greatest it saw, once its standard input ends. The
standard library alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import sys
import time
from collections.abc import AsyncIterator

from kernel_lsp import nvml

#: seconds between two looks at the device, and at the host, which takes longer
_DEVICE_SECONDS, _HOST_SECONDS = 0.01, 0.1
#: the most of a processor that looking at the host may take: the kernel walks through all memory of each process
_SHARE = 0.05
_STARTUP = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "startup.py")
_PROGRAM = (
    f"import runpy, sys; runpy.run_path({_STARTUP!r})['register_package']();"
    "from kernel_lsp.worker import memory_use; memory_use.main(int(sys.argv[1]), sys.argv[2])"
)


def main(pid: int, index: str) -> None:
    """Watch until standard input ends."""
    device = nvml.gpu(index)
    greatest = {"device": 0, "host": 0}
    due = 0.0
    while True:
        if device is not None:
            greatest["device"] = max(greatest["device"], device.memory_used())
        if time.monotonic() > due:
            began = time.process_time()
            greatest["host"] = max(greatest["host"], sum(map(_host, nvml.family(pid))))
            due = time.monotonic() + max(_HOST_SECONDS, (time.process_time() - began) / _SHARE)
        ready, _, _ = select.select([0], [], [], _HOST_SECONDS if device is None else _DEVICE_SECONDS)
        if ready and not os.read(0, 1024):
            break
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(greatest), flush=True)


def _host(pid: int) -> int:
    """Bytes of a process's own memory; what several share is divided among them."""
    total = 0
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                total += int(line.split()[1]) * 1024
    return total


@contextlib.asynccontextmanager
async def watched(device: str) -> AsyncIterator[dict[str, int]]:
    """The greatest use of memory during the context, in bytes, by ``device`` and ``host``.

    It is in the dictionary after the context, and nothing where that cannot be seen.
    """
    found: dict[str, int] = {}
    index = nvml.name_of(int(device.partition(":")[2] or 0)) if device.startswith("cuda") else ""
    program = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(os.getpid()), index]
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
