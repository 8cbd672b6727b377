"""Problems in, records out: spread over the GPUs of this machine, or over processes of the interpreter."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernel_lsp import errors
from kernel_lsp.device_choice import CONTEXTS, MEMORY_PARTS
from kernel_lsp.evaluation.lane import Lane, LaneLost, OnProgress, Plan, Shared
from kernel_lsp.evaluation.records import Record
from kernel_lsp.jobs.run import lock_folder
from kernel_lsp.settings import load
from kernel_lsp.suites.found import Found

OnRecord = Callable[[Record], None]


def run(
    problems: Sequence[Found], plan: Plan, workers: int | None, on_record: OnRecord, on_progress: OnProgress
) -> bool:
    """Run the problems and hand over the record of each as soon as it ends; False if the user interrupted.

    Args:
        workers: how many at once, or fewer where a GPU has too little memory for them, which standard error is told; None means
            each GPU, or one process where there is none.

    Raises:
        UserError: no problem can be run here, or no further one.
    """
    return asyncio.run(_run(problems, plan, workers, on_record, on_progress))


async def _run(
    problems: Sequence[Found], plan: Plan, workers: int | None, on_record: OnRecord, on_progress: OnProgress
) -> bool:
    this = asyncio.current_task()
    assert this is not None
    with contextlib.suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    try:
        with tempfile.TemporaryDirectory(prefix="kernel-lsp-locks-", ignore_cleanup_errors=True) as folder:
            lanes = await make_lanes(problems[0].file, plan, workers, on_progress, folder)
            await _serve(deque(problems), lanes, on_record)
        return True
    except asyncio.CancelledError:
        return False  # Ctrl-C: asyncio.run cancels this task; every record so far has been handed over


async def _serve(waiting: deque[Found], lanes: list[Lane], on_record: OnRecord) -> None:
    """Each lane takes the next problem when it is done with one. A lane that is lost puts its problem back."""
    alive = list(lanes)
    lost: list[LaneLost] = []

    async def serve(lane: Lane) -> None:
        while waiting:
            found = waiting.popleft()
            try:
                record = await lane.evaluate(found)
            except LaneLost as error:
                waiting.appendleft(found)
                alive.remove(lane)
                lost.append(error)
                return
            on_record(record)

    try:
        while waiting and alive:  # again, if what a lost lane put back came after the others were done
            async with asyncio.TaskGroup() as group:
                for lane in list(alive):
                    group.create_task(serve(lane))
    except BaseExceptionGroup as group_error:
        raise group_error.exceptions[0] from None  # the file that records go to cannot be written
    finally:
        await asyncio.gather(*(lane.close() for lane in lanes), return_exceptions=True)
    if waiting:
        raise lost[0].error


async def make_lanes(file: Path, plan: Plan, workers: int | None, on_progress: OnProgress, folder: str) -> list[Lane]:
    """The lanes of every device. The first one's worker is asked which there are, and goes on to work.

    ``folder``: for the locks on GPUs, where there is no store or none that locks can lie beside.

    Raises:
        UserError: there is no worker, or not the device that was asked for.
    """
    # One folder for all lanes, whatever projects their problems are of: they have to wait for each other.
    settings = load(file, cli=plan.settings)[0]
    locks = next((one for one in (lock_folder(settings), folder) if one and _takes_locks(one)), None)
    first = Lane(plan, "auto", on_progress, Shared(locks=locks))
    began = time.monotonic()
    print("kernel-lsp: starting the worker, which imports torch", file=sys.stderr, flush=True)
    try:
        hello = await first.hello(file)
        gpus = [device for device in hello.get("devices") or [] if device.get("kind") == "cuda"]
        devices = lanes_for(settings.device, len(gpus), workers, hello.get("interpreter", ""))
    except BaseException as error:
        await first.close()
        raise (error.error if isinstance(error, LaneLost) else error) from None
    took = time.monotonic() - began
    if locks is not None:  # else one at a time uses the GPU
        devices = _with_room(gpus, devices)
    others = f"; {len(devices)} workers run problems at once" if len(devices) > 1 else ""
    ready = f"the worker was ready after {took:.1f} s; the times of problems do not include that{others}"
    print(f"kernel-lsp: {ready}", file=sys.stderr, flush=True)
    shared = {device: Shared(locks=locks) for device in devices} | {devices[0]: first.shared}
    for device, one in shared.items():
        lanes = devices.count(device)
        one.problems.allow(lanes)
        if locks is not None:  # else nothing keeps them from timing beside each other
            one.gpu.allow(lanes)
            one.quota = _quota(gpus, device, lanes)
    first.device = devices[0]
    return [first, *(Lane(plan, device, on_progress, shared[device]) for device in devices[1:])]


def _with_room(gpus: list[dict[str, Any]], wanted: list[str]) -> list[str]:
    """As many of the lanes as the GPUs have memory for: no problem takes less than ``CONTEXTS``, or less than one part."""
    devices: list[str] = []
    for device in wanted:
        total = _memory(gpus, device)
        if total is None or devices.count(device) < max(1, total // _least(total)):
            devices.append(device)
    for device in dict.fromkeys(wanted):
        asked, left = wanted.count(device), devices.count(device)
        if left < asked:
            total = _memory(gpus, device) or 0
            has = f"{device} has {total / 1e9:.3g} GB of memory, and a problem takes {_least(total) / 1e9:.3g} GB at the least"
            print(f"kernel-lsp: {has}: {left} of {asked} workers are started on it", file=sys.stderr)
    return devices


def _least(total: int) -> int:
    """Bytes that a problem takes at the least of a GPU that has ``total``."""
    return max(CONTEXTS, total // MEMORY_PARTS)


def _quota(gpus: list[dict[str, Any]], device: str, lanes: int) -> tuple[int, int] | None:
    """Bytes of a device for each of its lanes, and of the whole device; None for one lane, and where its size is not known."""
    total = _memory(gpus, device)
    return (total // lanes, total) if total and lanes > 1 else None


def _memory(gpus: list[dict[str, Any]], device: str) -> int | None:
    """Bytes that a GPU has; None for the interpreter, and where it is not known."""
    kind, _, index = device.partition(":")
    return gpus[int(index)].get("memory") or None if kind == "cuda" else None


def _takes_locks(folder: str) -> bool:
    """Whether the folder is there, can be written, and is in a file system with locks."""
    try:
        import fcntl

        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except (ImportError, OSError):  # Windows; a folder of somebody else
        return False


def lanes_for(wanted: str, gpus: int, workers: int | None, interpreter: str = "") -> list[str]:
    """The lanes for the device asked for, where so many GPUs are; those of one GPU share it, and take turns in timing on it.

    Raises:
        NoSuchDevice: the worker does not see the device.
    """
    if wanted == "interpreter" or (wanted == "auto" and not gpus):
        return ["interpreter"] * (workers or 1)
    if wanted in ("auto", "cuda") and gpus:
        return [f"cuda:{number % gpus}" for number in range(workers or gpus)]
    if wanted.startswith("cuda:") and int(wanted.partition(":")[2]) < gpus:
        return [wanted] * (workers or 1)
    there = f"it has {gpus} CUDA GPU{'s' if gpus != 1 else ''}"
    raise errors.NoSuchDevice(device=wanted, interpreter=interpreter, detail=there)
