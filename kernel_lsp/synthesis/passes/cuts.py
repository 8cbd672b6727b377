"""Products of which only the beginning is asked for: what follows is computed for all of it, and the end is cut off last.

Then the elementwise work after a product stays in its kernel, which stores no more than is asked for.
"""

from __future__ import annotations

import torch

from ..graph.build import Build
from ..graph.map import Map, dim, dims
from ..graph.sizes import ONE, ZERO, same, same_shape
from ..graph.value import Contract, Graph, Pointwise, Shape, Value, View, operands, topological


def cut_last(graph: Graph) -> None:
    """Move views that cut off the end of a product behind the elementwise values that follow."""
    for value in topological(graph.outputs):
        op = value.op
        if not isinstance(op, Pointwise):
            continue
        cuts = {o for o in operands(value) if is_cut(o) and _of_product(o)}
        if not cuts or len({o.op.map for o in cuts if isinstance(o.op, View)}) > 1:
            continue
        cut = next(iter(cuts))
        assert isinstance(cut.op, View)
        whole: Shape = cut.op.map.operand
        if not same_shape(cut.shape, value.shape):
            continue
        gone = [d - len(whole) for d in range(len(whole)) if not same(whole[d], cut.shape[d])]
        along = any(len(o.shape) >= -d and o.shape[d] != ONE for o in operands(value) if o not in cuts for d in gone)
        if along and cut.op.name != "cut":  # a part of a product may be much smaller, and combined with another part
            continue
        longer = {o: _whole(o) if o in cuts else _longer(o, whole, gone) for o in operands(value)}
        parts = tuple(longer[o] if isinstance(o, Value) else o for o in op.operands)
        before = Value(Pointwise(op.function, parts), whole, value.dtype, value.name, value.meaning, value.node)
        value.op = View(cut.op.map, before, cut.op.name)


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


def _of_product(cut: Value) -> bool:
    """Whether a product and elementwise work alone lead to what is cut."""
    stack, seen = [_whole(cut)], set[Value]()
    while stack:
        value = stack.pop()
        if isinstance(value.op, Contract):
            return True
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.op, Pointwise) or (isinstance(value.op, View) and value.op.map.keeps_order):
            stack += [o for o in operands(value) if len(o.shape) > 1]
    return False
