"""How long a call takes on a GPU: interleaved runs between CUDA events, L2 flushed, inputs rotated, median and spread."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import schema
from kernel_lsp.validation import memory

WARM_UP = 10
RUNS = 50
#: rounds after which a series is looked at, and the relative spread at which it is good enough to stop
_BATCH, _TIGHT = 10, 0.01
#: seconds that all series together may take, warm-up aside, unless that is fewer than LEAST_RUNS rounds
SECONDS = 1.0
LEAST_RUNS = 5

#: values that an input goes through, all within a fifth of its own
_STEPS = 53  # a prime: series of calls, of which some are made twice, come to all of them
#: elements of an input of integers up to which it is rolled
_ROLLED = 1 << 24

#: GPU clock cycles (about 0.1 ms) that the host may be ahead with its launches
HEAD_START = 200_000

#: the same in seconds, at 2 GHz
_HEAD_START_SECONDS = HEAD_START / 2e9

#: microseconds that the gap between two kernels takes at most
_MOST_GAP = 4.0
#: how the profiler calls the kernel of ``torch.cuda._sleep``
SPIN = "spin_kernel"

Call = Callable[[Any, Any], Any]


def interleaved(
    calls: dict[str, Call],
    inputs: list[tuple[Any, Any]],
    seconds: float = SECONDS,
    renew: bool = True,
    beyond: float | None = None,
) -> dict[str, schema.Timing]:
    """Time every call of ``calls`` in turn, round after round, on sets of (args, kwargs) that change every round.

    With ``renew`` no two calls are given the same values: the inputs are changed in place before each, by a few
    percent, so that nothing that was kept from an earlier call is of use.
    Between CUDA events on the current stream, less what they show beyond the work between them: ``beyond`` microseconds,
    or the lower bound of ``overhead`` where that is not known. The L2 cache is
    overwritten before every call and the host has a head start of HEAD_START cycles, as it has in a model whose GPU is
    busy: what the host needs beyond that is included. The GPU is idle before, so that the head start does not depend on what else is
    timed; a call for which the host takes longer than that comes after another one of its own, as in a program that calls it again and again.
    Microseconds. Stops after RUNS rounds, when ``seconds`` are over, or when every series is within 1 % between its
    20th and 80th percentile.
    """
    found = rounds(calls, inputs, seconds, renew=renew, beyond=beyond)
    return {name: summary(series) for name, series in found.items()}


def rounds(
    calls: dict[str, Call],
    inputs: list[tuple[Any, Any]],
    seconds: float = SECONDS,
    least: int = LEAST_RUNS,
    most: int = RUNS,
    renew: bool = True,
    tight: float = _TIGHT,
    beyond: float | None = None,
) -> dict[str, list[float]]:
    """The times of ``interleaved``, one for each call and round, in microseconds; ``least`` to ``most`` rounds.

    ``tight``: the relative spread at which it stops early, 0 for never.
    """
    collecting = gc.isenabled()
    gc.disable()  # a collection in the middle of a launch is no time of the kernel's
    try:
        renewed = _Renewing() if renew else lambda given: given
        return _rounds(calls, inputs, seconds, least, most, renewed, tight, beyond)
    finally:
        if collecting:
            gc.enable()


def _rounds(
    calls: dict[str, Call],
    inputs: list[tuple[Any, Any]],
    seconds: float,
    least: int,
    most: int,
    renewed: Callable[[Any], Any],
    tight: float,
    known: float | None,
) -> dict[str, list[float]]:
    round_seconds, late = _warm_up(calls, inputs, seconds, renewed)
    flush = flusher()
    beyond = overhead(flush) if known is None else known
    began = time.monotonic()
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    pending: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []
    slow = round_seconds * most > seconds
    for i in range(most):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            if name in late:
                calls[name](*renewed(inputs[(i + 1) % len(inputs)]))
            given = renewed(inputs[i % len(inputs)])
            flush()
            torch.cuda._sleep(HEAD_START)
            start.record()
            calls[name](*given)
            end.record()
            pending.append((name, start, end))
        if (i + 1) % _BATCH and not (slow and i + 1 >= least):
            continue
        torch.cuda.synchronize()  # of the whole device: side streams end here, too
        for name, start, end in pending:
            times[name].append(max(0.0, start.elapsed_time(end) * 1e3 - beyond))
        pending = []
        if i + 1 < least:
            continue
        timings = [summary(series) for series in times.values()]
        close = all((t.high - t.low) < tight * t.median for t in timings)
        if time.monotonic() - began > seconds or (close and (slow or i + 1 >= 2 * _BATCH)):
            break
    return times


def _warm_up(
    calls: dict[str, Call], inputs: list[tuple[Any, Any]], seconds: float, renewed: Callable[[Any], Any]
) -> tuple[float, set[str]]:
    """Call everything a few times; seconds that the last round took, and for which calls the host needs more than the head start."""
    began = time.monotonic()
    taken = 0.0
    host = dict.fromkeys(calls, float("inf"))
    for i in range(WARM_UP):
        at = time.monotonic()
        for name, call in calls.items():
            given = renewed(inputs[i % len(inputs)])
            torch.cuda.synchronize()
            before = time.perf_counter()
            call(*given)
            host[name] = min(host[name], time.perf_counter() - before)
        torch.cuda.synchronize()
        taken = time.monotonic() - at
        if i >= 1 and time.monotonic() - began > seconds / 3:
            break
    return taken, {name for name, least in host.items() if least > _HEAD_START_SECONDS}


def overhead(flush: Callable[[], None]) -> float:
    """Microseconds that two events show beyond the kernels between them, at least: until the first begins, after the last ends.

    From one and from two kernels of one element: what the second adds is a kernel's own, and the gap between two.
    """
    return overhead_between(_around(1, flush), _around(2, flush))


def overhead_between(one: list[float], two: list[float]) -> float:
    """``overhead``, in microseconds, from times around one kernel and around two.

    The least of each: what else the GPU does only adds to them, and more than the median of ten may be longer for it.
    """
    return max(0.0, 2 * min(one) - max(min(one), min(two)))


def overhead_by_spans() -> float | None:
    """``overhead``, in microseconds, from a kernel's span in the profiler (CUPTI), which knows no gap.

    None where the profiler does not run.
    """
    flush = flusher()
    least = overhead(flush)
    try:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            times = _around(1, flush)
        found = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    except Exception:  # CUPTI may be missing, taken by another profiler, or forbidden
        return None
    found.sort(key=lambda event: event.time_range.start)
    spans = [after.time_range.elapsed_us() for before, after in itertools.pairwise(found) if SPIN in before.name]
    if len(spans) != len(times):
        return None
    # What else the GPU does makes some of them longer.
    beyond = statistics.quantiles((time - span for time, span in zip(times, spans, strict=True)), n=4)[0]
    return beyond if 0.0 <= beyond - least <= _MOST_GAP else None


def _around(kernels: int, flush: Callable[[], None]) -> list[float]:
    """Microseconds between events around so many kernels of one element, which are fetched anew as a call's first is."""
    element, pairs = torch.zeros(1, device="cuda"), []
    for _ in range(_BATCH):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush()
        torch.cuda._sleep(HEAD_START)
        start.record()
        for _ in range(kernels):
            element.add_(1)
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return [start.elapsed_time(end) * 1e3 for start, end in pairs]


class _Renewing:
    """Changes a set of inputs in place: floats are scaled by 1 - step/256, integers alone are rolled by one row."""

    def __init__(self) -> None:
        self.steps: dict[int, int] = {}

    def __call__(self, given: tuple[Any, Any]) -> tuple[Any, Any]:
        before = self.steps.get(id(given), 0)
        after = self.steps[id(given)] = (before + 1) % _STEPS
        tensors = [t for t in pytree.tree_leaves(given) if isinstance(t, torch.Tensor) and 0 not in t.stride()]
        scaled = [t for t in tensors if t.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)]
        with torch.no_grad():
            for tensor in scaled:
                tensor.mul_((256 - after) / (256 - before))
            if not scaled:
                for tensor in (t for t in tensors if t.dim() and t.numel() <= _ROLLED):
                    tensor.copy_(tensor.roll(1, 0))
        return given


def summary(series: list[float]) -> schema.Timing:
    """Median, 20th and 80th percentile of microseconds."""
    ordered = sorted(series)

    def percentile(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return schema.Timing(statistics.median(ordered), percentile(0.2), percentile(0.8), len(ordered))


def flusher() -> Callable[[], None]:
    """A function that overwrites twice the L2 cache."""
    size = max(2 * getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "L2_cache_size", 0), 64 << 20)
    buffer = torch.empty(size // 4, dtype=torch.int32, device="cuda")

    def flush() -> None:
        buffer.zero_()

    return flush


@dataclass
class Captured:
    """A call as a CUDA graph: ``replay()`` runs it on the inputs that it was captured with, into ``out``."""

    replay: Callable[[], None]
    inputs: tuple[Any, Any]
    out: Any


def captured(call: Call, inputs: tuple[Any, Any]) -> Captured | None:
    """``call`` as a CUDA graph on these inputs; None where it cannot be captured."""
    args, kwargs = inputs
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    before = generator.clone_state()
    try:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                call(args, kwargs)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = call(args, kwargs)
        torch.cuda.synchronize()
    except Exception:
        torch.cuda.synchronize()
        generator.graphsafe_set_state(before)  # else it would go on waiting for the end of the capture
        return None
    return Captured(graph.replay, inputs, out)


def rotated(args: Any, kwargs: Any, count: int) -> list[tuple[Any, Any]]:
    """``count`` sets of inputs, copies at other addresses and with other values (rolled by one row each), as memory allows."""
    tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    size = sum(t.numel() * t.element_size() for t in tensors) or 1
    free = memory.unreserved(torch.device("cuda", torch.cuda.current_device()))
    count = max(1, min(count, free // 4 // size))
    return [pytree.tree_map(lambda t, n=n: _rolled(t, n), (args, kwargs)) for n in range(count)]


def _rolled(value: Any, rows: int) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if value.dim() == 0 or 0 in value.stride() or value.numel() == 0:
        return value.clone()
    rolled = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    if rows == 0:
        return rolled.copy_(value)
    rows %= value.shape[0]
    rolled[rows:] = value[: value.shape[0] - rows]
    rolled[:rows] = value[value.shape[0] - rows :]
    return rolled
