"""Products of which only a leading part is used: elementwise work is moved before the slice.

Then the elementwise work after a product stays in its kernel, which stores only the part that is used.
"""

from __future__ import annotations

import dataclasses

import torch

from ..graph.build import Build
from ..graph.lowered import Graph
from ..graph.map import Map, dim, dims
from ..graph.order import topological
from ..graph.sizes import ONE, ZERO, same, same_shape
from ..graph.value import Contract, Pointwise, Reduce, Shape, Value, View, numel, operands
from .fusion import sides


def cut_last(graph: Graph, *, folded: bool = False) -> None:
    """Move views that cut off the end of a product behind the elementwise values that follow.

    ``folded``: also behind reductions over as many elements as the product has rows, or columns, where a tile may have these whole.
    """
    reduced: set[Value] = set()  # of what is cut later
    for value in topological(graph.outputs):
        op = value.op
        if folded and isinstance(op, Reduce) and (before := _reduced_first(value, op, reduced)) is not None:
            reduced.add(before)
        if not isinstance(op, Pointwise):
            continue
        cuts = {o for o in operands(value) if is_cut(o) and _of_product(o, reduced)}
        cut = next((o for o in operands(value) if o in cuts and same_shape(o.shape, value.shape)), None)
        if cut is None:
            continue
        assert isinstance(cut.op, View)
        whole: Shape = cut.op.map.operand
        if not all(_broadcasts(o, whole, value.shape) for o in cuts):
            continue
        gone = [d - len(whole) for d in range(len(whole)) if not same(whole[d], cut.shape[d])]
        along = any(len(o.shape) >= -d and o.shape[d] != ONE for o in operands(value) if o not in cuts for d in gone)
        if along and cut.op.name != "cut":  # a part of a product may be much smaller, and combined with another part
            continue
        longer = {o: _whole(o) if o in cuts else _longer(o, whole, gone) for o in operands(value)}
        parts = tuple(longer[o] if isinstance(o, Value) else o for o in op.operands)
        before = Value(Pointwise(op.function, parts), whole, value.dtype, value.name, value.meaning, value.node)
        value.op = View(cut.op.map, before, cut.op.name)


def _reduced_first(value: Value, op: Reduce, reduced: set[Value]) -> Value | None:
    """Make of the reduction of a cut, ``value``, the cut of a reduction, where it goes along other dimensions; returns that one."""
    cut = op.operand
    product = _of_product(cut, reduced) if is_cut(cut) else None
    if product is None:
        return None
    assert isinstance(cut.op, View) and isinstance(product.op, Contract)
    whole, count = _whole(cut), numel(tuple(cut.shape[d] for d in op.dims))
    across = all(same(whole.shape[d], cut.shape[d]) for d in op.dims)
    if not across or not any(same(count, side) for side in sides(product.op)):
        return None
    shape = tuple(ONE if d in op.dims else n for d, n in enumerate(whole.shape))
    before = Value(dataclasses.replace(op, operand=whole), shape, value.dtype, value.name, value.meaning, value.node)
    value.op = View(Map(value.shape, shape, cut.op.map.index), before, cut.op.name)
    return before


def _broadcasts(cut: Value, whole: Shape, shape: Shape) -> bool:
    """Whether ``cut`` and what it is the beginning of are alike combined with ``shape``, and with ``whole``, of which that is the beginning."""
    if len(cut.shape) != len(shape):
        return False
    sizes = zip(_whole(cut).shape, cut.shape, whole, shape, strict=True)
    return all((same(n, m) and same(c, r)) or n == c == ONE for n, c, m, r in sizes)


def is_cut(value: Value) -> bool:
    """Whether ``value`` is the beginning of its operand along each dimension."""
    op = value.op
    return (
        isinstance(op, View)
        and op.name in ("slice", "cut")
        and op.map.index == dims(len(value.shape))
        and not op.map.guard
    )


def _longer(value: Value, whole: Shape, gone: list[int]) -> Value:
    """``value`` as long as ``whole`` along the dimensions ``gone``, counted from the end, unless it is the same along one; zeros are added."""
    rank = len(value.shape)
    ends = [rank + d for d in gone if rank >= -d and value.shape[d] != ONE]
    if not ends:
        return value
    shape = tuple(whole[d - rank] if d in ends else n for d, n in enumerate(value.shape))
    guard = tuple((dim(d), ZERO, value.shape[d]) for d in ends)
    pad = 0.0 if value.dtype.is_floating_point else False if value.dtype == torch.bool else 0
    return Build.view(value, Map(shape, value.shape, dims(rank), guard, pad), "longer")


def _whole(value: Value) -> Value:
    assert isinstance(value.op, View)
    return value.op.operand


def _of_product(cut: Value, reduced: set[Value]) -> Value | None:
    """The product from which elementwise work, and what is in ``reduced``, alone lead to what is cut."""
    stack, seen = [_whole(cut)], set[Value]()
    while stack:
        value = stack.pop()
        if isinstance(value.op, Contract):
            return value
        if value in seen:
            continue
        seen.add(value)
        follows = isinstance(value.op, Pointwise) or value in reduced
        if follows or (isinstance(value.op, View) and value.op.map.keeps_order):
            stack += [o for o in operands(value) if len(o.shape) > 1]
    return None
