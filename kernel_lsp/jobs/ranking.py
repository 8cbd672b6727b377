"""Which of several correct candidates is the fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_lsp import schema

#: what tells one kind of recorded calls from another: its tensors, and its text, which has flags and numbers too
Kind = tuple[tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...], str]


@dataclass
class Came:
    """How many recorded calls of one kind there were, and how long eager takes for one, in microseconds."""

    calls: int
    eager: float


def fastest(candidates: Sequence[schema.Validated]) -> int | None:
    """The index of the correct candidate with the least time; the first where none was timed.

    Over the recorded shapes, each as often as it came, where some were timed; else over all that were timed. At a recorded
    shape that a candidate was not timed at, since it leaves that to eager or was out of time, it counts as eager. Of a class with
    several examples a candidate that was validated with more of them comes first.
    """
    correct = [i for i, validated in enumerate(candidates) if validated.verdict.status in schema.CORRECT]
    came = _came([candidates[i] for i in correct])
    served = {i: sum(one.status != "eager" for one in candidates[i].verdict.examples) for i in correct}
    return min(correct, key=lambda i: (-served[i], _time(candidates[i], came), i), default=None)


def _came(candidates: Sequence[schema.Validated]) -> dict[Kind, Came]:
    """The recorded shapes at which any of the candidates was timed."""
    found: dict[Kind, Came] = {}
    for validated in candidates:
        for shape in validated.measurement.shapes if validated.measurement is not None else []:
            if shape.calls and shape.kernel is not None and shape.eager is not None:
                found.setdefault(_kind(shape), Came(shape.calls, shape.eager.median))
    return found


def _time(validated: schema.Validated, came: dict[Kind, Came]) -> float:
    """Microseconds; infinity where a shape that is not recorded was not timed either."""
    shapes = validated.measurement.shapes if validated.measurement is not None else []
    if not shapes or any(shape.kernel is None for shape in shapes):
        return math.inf
    taken = {_kind(shape): shape.kernel.median for shape in shapes if shape.kernel is not None}
    if came:
        return sum(one.calls * taken.get(kind, one.eager) for kind, one in came.items())
    return sum(taken.values())


def _kind(shape: schema.ShapeMeasurement) -> Kind:
    return tuple((spec.dtype, tuple(spec.shape), tuple(spec.stride)) for spec in shape.inputs), shape.text
