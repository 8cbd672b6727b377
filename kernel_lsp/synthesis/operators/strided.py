"""Elements by their places in memory, which is row-major where the operand was contiguous as it was exported.

A kernel's results lie elsewhere in memory than eager's, at another offset, so these are never left to torch
(``lower.py``): what they would read there is known from the export alone.
"""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered, expr_of, number_or_size
from ..graph.division import Quotient
from ..graph.map import Map, dims
from ..graph.sizes import ZERO, offset, strides
from ..graph.value import Input, Shape, Value, constant_of, numel, viewed
from .registry import lowers
from .scattering import placed


def _row_major(x: Value, contiguous: bool) -> None:
    """Check that elements lie in row-major order in every call.

    Raises:
        NotLowered: they may not.
    """
    held = viewed(x)
    if not contiguous or (isinstance(held.op, Input) and not held.op.contiguous):
        raise NotLowered("the strides of a tensor that need not be contiguous")


@lowers("aten.as_strided", about="Elements by their places in memory, of what is contiguous", addressing=True)
def as_strided(
    x: Value, size: list[Any], stride: list[Any], start: Any = None, *, shape: Shape, contiguous: bool, **_: Any
) -> Value:
    """A view of the flattened tensor; ``size``, ``stride`` and ``start`` count elements.

    Raises:
        NotLowered: where ``x`` is not contiguous in every call.
    """
    _row_major(x, contiguous)
    flat = Build.reshape(x, (numel(x.shape),))
    place = expr_of(start or 0) + sum((expr_of(s) * d for s, d in zip(stride, dims(len(shape)), strict=True)), ZERO)
    return Build.view(flat, Map(shape, flat.shape, (sympy.expand(place),)), "as_strided")


@lowers("aten.as_strided_scatter", about="With others in places of memory that lie evenly apart")
def as_strided_scatter(
    x: Value,
    source: Value,
    size: list[Any],
    stride: list[Any],
    start: Any = None,
    *,
    out: torch.dtype,
    contiguous: bool,
    **_: Any,
) -> Value:
    """``fill_diagonal_`` is exported so.

    Raises:
        NotLowered: for places along several strides, or whose number or distance is not known.
    """
    _row_major(x, contiguous)
    if len(size) != 1:
        raise NotLowered("places along several strides")
    count, step, first = (expr_of(n) for n in (size[0], stride[0], start or 0))
    if not all(n.is_Integer for n in (step, first)) or step <= 0:
        raise NotLowered("places whose distance is not known")
    place: Value | None = None
    for d, apart in enumerate(strides(x.shape)):
        own = Build.iota(x.shape, d)
        if apart != 1:
            own = Build.pointwise("mul", own, number_or_size(apart), dtype=torch.int32)
        place = own if place is None else Build.pointwise("add", place, own, dtype=torch.int32)
    if place is None:
        raise NotLowered("a number")
    beyond = place if first == ZERO else Build.pointwise("sub", place, int(first), dtype=torch.int32)
    inside = Build.comparison("eq", Build.pointwise("rest_int", beyond, int(step), dtype=torch.int32), 0)
    total = numel(x.shape)
    if first != ZERO:
        inside = Build.pointwise("and", inside, Build.comparison("ge", beyond, 0), dtype=torch.bool)
    if not (total.is_Integer and count.is_Integer and first + step * count >= total):
        if not count.is_Integer:
            raise NotLowered("a number of places that varies")
        last = Build.comparison("lt", beyond, int(step * count))
        inside = Build.pointwise("and", inside, last, dtype=torch.bool)
    return Build.pointwise("where", inside, _spread(source, x.shape, first, step, count, out), x, dtype=out)


def _spread(
    source: Value, shape: Shape, first: sympy.Expr, step: sympy.Expr, count: sympy.Expr, out: torch.dtype
) -> Any:
    """``source`` at every ``step``-th place of a tensor of ``shape``; what stands at the others is not used."""
    if (number := constant_of(source)) is not None:
        return number
    linear = sympy.expand(offset(dims(len(shape)), shape) - first)
    return Build.cast(placed(source, shape, (Quotient(linear, step),), linear, step * count), out)
