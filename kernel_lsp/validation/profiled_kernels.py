"""What the profiler (CUPTI, through torch.profiler) saw of a candidate's calls: which kernels took the time.

The spans come from the candidate's own process, as its times do. They can speak against it; for it speak the comparison
of every timed call's kind, and the clock outside its process (``measuring``).
"""

from __future__ import annotations

import statistics
from typing import Any

from kernel_lsp import schema
from kernel_lsp.validation.referee import Referee

#: by how much its kernels may take longer in a call than CUDA events say: relative, microseconds
_FACTOR, _SLACK = 1.3, 20.0

#: (name, microseconds of its begin, microseconds that it took), in the order of their begin
Span = tuple[str, float, float]


def look(referee: Referee, tree: Any, shape: schema.ShapeMeasurement) -> str:
    """Put the candidate's kernels and their times into ``shape``; why it cheats, if it does.

    Nothing is put there, and it is said, where the profiler does not run.
    """
    with referee.asking({"do": "profile"}, (*tree, None)) as answer:
        calls: list[list[Span]] = answer.message["calls"]
        missing: str = answer.message["missing"]
    if missing or not calls:
        referee.of_timing.append(f"which kernels take the time: {missing or 'the profiler saw none'}")
        return ""
    names = [sorted(name for name, _, _ in call) for call in calls]
    if strange := next((number for number, found in enumerate(names) if found != names[0]), None):
        others = sorted(set(names[strange]) ^ set(names[0])) or sorted(set(names[0]))
        return f"it does not run the same kernels in each of {len(calls)} equal calls: {', '.join(others[:3])}"
    taken = statistics.median(map(_busy, calls))
    if shape.kernel is not None and taken > _FACTOR * shape.kernel.median + _SLACK:
        return f"its kernels take {taken:.0f} µs in a call by the profiler, and {shape.kernel.median:.0f} µs by CUDA events"
    each = [_by_name(call) for call in calls]
    shape.spans = {name: statistics.median(call[name] for call in each) for name in sorted(each[0])}
    return ""


def _busy(call: list[Span]) -> float:
    """Microseconds in which any of the kernels ran: what runs beside another counts once."""
    total, until = 0.0, 0.0
    for _, begin, took in sorted(call, key=lambda span: span[1]):
        total += max(0.0, begin + took - max(begin, until))
        until = max(until, begin + took)
    return total


def _by_name(call: list[Span]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, _, took in call:
        found[name] = found.get(name, 0.0) + took
    return found
