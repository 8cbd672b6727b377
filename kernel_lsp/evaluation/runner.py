"""Problems in, records out: spread over the GPUs of this machine, or over processes of the interpreter."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from kernel_lsp import errors
from kernel_lsp.evaluation.lane import Lane, LaneLost, OnProgress, Plan
from kernel_lsp.evaluation.records import Record
from kernel_lsp.settings import load
from kernel_lsp.suites.found import Found

OnRecord = Callable[[Record], None]


def run(
    problems: Sequence[Found], plan: Plan, workers: int | None, on_record: OnRecord, on_progress: OnProgress
) -> bool:
    """Run the problems and hand over the record of each as soon as it ends; False if the user interrupted.

    Args:
        workers: how many at once; None means each GPU, or one process where there is none.

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
        lanes = await make_lanes(problems[0].file, plan, workers, on_progress)
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


async def make_lanes(file: Path, plan: Plan, workers: int | None, on_progress: OnProgress) -> list[Lane]:
    """A lane for each device. The first one's worker is asked which there are, and goes on to work.

    Raises:
        UserError: there is no worker, or not the device that was asked for.
    """
    first = Lane(plan, "auto", on_progress)
    try:
        hello = await first.hello(file)
        gpus = sum(device.get("kind") == "cuda" for device in hello.get("devices") or [])
        devices = lanes_for(load(file, cli=plan.settings)[0].device, gpus, workers, hello.get("interpreter", ""))
    except BaseException as error:
        await first.close()
        raise (error.error if isinstance(error, LaneLost) else error) from None
    locks = {device: asyncio.Lock() for device in devices} | {devices[0]: first.gpu}
    first.device = devices[0]
    if first.device != "interpreter":
        first.plan = dataclasses.replace(plan, sharing=-(-len(devices) // len(locks)))
    return [first, *(Lane(first.plan, device, on_progress, locks[device]) for device in devices[1:])]


def lanes_for(wanted: str, gpus: int, workers: int | None, interpreter: str = "") -> list[str]:
    """The lanes for the device asked for, where so many GPUs are; those of one GPU take turns on it.

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
