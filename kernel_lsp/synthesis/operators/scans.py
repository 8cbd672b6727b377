"""Scans: for each element the fold of those up to it; ``graph/monoids.py`` has the operations."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, NotLowered, normalise
from ..graph.monoids import MONOIDS
from ..graph.value import Value
from .registry import lowers


def _scan(kind: str) -> Any:
    def lower(x: Value, dim: int, *, out: torch.dtype) -> Value:
        if not x.shape:
            return Build.cast(x, out)  # a scalar is itself
        value = Build.scan(kind, Build.cast(x, out), normalise(dim, len(x.shape)), out)
        value.meaning = (MONOIDS[kind].scanned, (x, (normalise(dim, len(x.shape)),)))
        return value

    return lower


lowers("aten.cumsum", about="x[0] + ... + x[i] along one dimension; long ones in several programs")(_scan("sum"))
lowers("aten.cumprod", about="x[0] * ... * x[i] along one dimension")(_scan("prod"))


@lowers(
    "aten.logcumsumexp",
    about="log(exp(x[0]) + ... + exp(x[i])) along one dimension, without overflow",
    formula="logcumsumexp(v)[i] = log(exp(v[0]) + ... + exp(v[i]))",
)
def logcumsumexp(x: Value, dim: int, *, out: torch.dtype) -> Value:
    """A scan with ``logaddexp``, which subtracts the greater of two first.

    Raises:
        NotLowered: for integers.
    """
    if not x.dtype.is_floating_point:
        raise NotLowered("logcumsumexp of what is no floating point number")
    return _scan("logaddexp")(x, dim, out=out)


def _running(kind: str) -> Any:
    """The extreme so far, and the last place at which an element was it, or was NaN."""

    def lower(x: Value, dim: int, *, out: torch.dtype) -> list[Value]:
        if not x.shape:
            return [x, Build.reduce("argmax", x, (), dtype=torch.int64)]
        axis = normalise(dim, len(x.shape))
        own = f"a{kind}" if out.is_floating_point else kind
        values = Build.scan(own, Build.cast(x, out), axis, out)
        values.meaning = (MONOIDS[own].scanned, (x, (axis,)))
        reached = Build.comparison("eq", x, values)
        if out.is_floating_point:
            reached = Build.pointwise("or", reached, Build.comparison("ne", x, x), dtype=torch.bool)
        place = Build.iota(x.shape, axis, torch.int32, "position")
        seen = Build.pointwise("where", reached, place, 0, dtype=torch.int32)
        return [values, Build.cast(Build.scan("max", seen, axis, torch.int32), torch.int64)]

    return lower


lowers("aten.cummax", about="The greatest of x[0], ..., x[i] along one dimension, and its place")(_running("max"))
lowers("aten.cummin", about="The least of x[0], ..., x[i] along one dimension, and its place")(_running("min"))
