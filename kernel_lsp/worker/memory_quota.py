"""The part of a GPU's memory that a request may take where several lanes of an evaluation share the GPU.

Each lane has a quota, and a request that is estimated to need more has as many parts of the GPU's memory as it needs, if need be all: what it
finds, and which schedule is the fastest, must not depend on what other lanes hold. In what it sizes by the memory that is left it keeps to
these parts. No more requests are at work at once than there are parts for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch

from kernel_lsp import device_choice
from kernel_lsp.validation import memory
from kernel_lsp.worker import gpu_lock

#: What a validation took of the device at its most, from 176 problems of KernelBench that had an H100 80 GB to themselves
#: (benchmarks/results/kernelbench-nvidia-h100-80gb-hbm3.jsonl: report.memory.device). Beyond the contexts of its processes
#: (``devices.CONTEXTS``), for each byte of inputs and results: 3.7 to 3.9 for elementwise functions and reductions, 4.2 to 6.3 for most
#: others, at the most 11.5, where a call makes large tensors besides. For each byte of parameters: 8.4, where these were 4.3 GB. This rule
#: finds 60 of the 62 problems that took more than 17.4 GB, an eighth of 139 GB; the other two took 4 % more than that. It also names three
#: that took less.
_OF_A_CALL, _OF_PARAMETERS = 6, 8
#: Seconds without a change of the free memory after which no process is taken to give more back, and the most seconds to wait. What the trials
#: of the request before held is free some tenths of a second after its parts are.
_STEADY, _MOST_SECONDS = 0.5, 5.0


def begin(
    given: dict[str, Any],
    device: torch.device,
    emit: Callable[[str, Any], None],
    told: Callable[[float], None] = lambda seconds: None,
) -> gpu_lock.GpuLock:
    """The GPU's lock (``gpu_lock.begin``) in the folder ``given["locks"]``, with what the request may take of the memory.

    ``given["quota"]``: bytes that are this lane's, and bytes of the whole device; None where it has the device for itself.

    Raises:
        GpuTaken: others timed on it for too long.
    """
    keep(given)
    wanted, mine = 0, parts(given)
    if mine:  # never all: each process that uses the device has a context there
        most = given["quota"][1] - device_choice.CONTEXTS
        wanted = min(most, needed(given["specimen"])) if given.get("specimen") else most
    return gpu_lock.begin(given.get("locks"), device, emit, told, mine, given_back(device, wanted))


def given_back(device: torch.device, wanted: int) -> Callable[[], bool]:
    """A function that says whether ``wanted`` bytes are there, or others that have ended no longer give memory back."""
    began: float | None = None  # when it was asked first
    most, grown = -1.0, 0.0

    def is_so() -> bool:
        nonlocal began, grown, most
        there, now = memory.unheld(device), time.monotonic()
        began = now if began is None else began
        if there > most:
            most, grown = there, now
        return there >= wanted or now - grown > _STEADY or now - began > _MOST_SECONDS

    return is_so


def keep(given: dict[str, Any]) -> None:
    """Have this process size what it makes by the quota, where the request shares the memory."""
    memory.keep_to(limit(given))


def limit(given: dict[str, Any]) -> int | None:
    """Bytes that the request keeps to; None where it may take all there is: without a quota, and where it has all parts."""
    mine = parts(given)
    return given["quota"][1] * mine // gpu_lock.PARTS if 0 < mine < gpu_lock.PARTS else None


def parts(given: dict[str, Any]) -> int:
    """How many of ``gpu_lock.PARTS`` parts of the memory the request holds: those of its quota, or more where it needs more.

    0 without a quota. All where it is not known how much is needed, since the class was not looked at.
    """
    if not given.get("quota"):
        return 0
    mine, whole = given["quota"]
    if not given.get("specimen"):
        return gpu_lock.PARTS
    of_the_quota = mine * gpu_lock.PARTS // whole
    of_its_need = math.ceil(needed(given["specimen"]) * gpu_lock.PARTS / whole)
    return min(gpu_lock.PARTS, max(1, of_the_quota, of_its_need))


def needed(specimen: dict[str, Any]) -> int:
    """Bytes of the device that a validation at the example's sizes is estimated to take, all its processes together.

    ``specimen``: ``class_schema.Specimen`` as JSON. What a call makes beside its results is not known.
    """
    called = _bytes(specimen.get("inputs")) + _bytes(specimen.get("outputs"))
    return device_choice.CONTEXTS + _OF_A_CALL * called + _OF_PARAMETERS * _bytes(specimen.get("parameters"))


def _bytes(specs: list[dict[str, Any]] | None) -> int:
    return sum(math.prod(spec["shape"]) * getattr(torch, spec["dtype"]).itemsize for spec in specs or [])
