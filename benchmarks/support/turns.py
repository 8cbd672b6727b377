"""Times of calls that take turns on this GPU."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch


def in_turn(
    calls: dict[str, Callable[[], Any]], rounds: int, flushed: int, until: float = math.inf, clean: bool = False
) -> dict[str, list[float]]:
    """Microseconds of each call in each round, between two CUDA events.

    ``flushed``: bytes that are overwritten before each call, more than the L2 cache holds; the longer that takes, the further ahead
    is the host. The cache then holds lines that the call has to write back to memory before it can read into them; with ``clean``
    as many bytes are read, too, so that it holds lines that can be dropped. No round begins after ``until``, a time of
    ``time.monotonic``.
    """
    memory = torch.empty(flushed, dtype=torch.int8, device="cuda")
    read = torch.zeros(flushed // 4, dtype=torch.float32, device="cuda") if clean else None
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        events = {}
        for name, call in calls.items():
            begin, end = events[name] = (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            memory.zero_()
            if read is not None:
                read.sum()
            begin.record()
            call()
            end.record()
        torch.cuda.synchronize()
        for name, (begin, end) in events.items():
            times[name].append(begin.elapsed_time(end) * 1e3)
        if time.monotonic() > until:
            break
    return times
