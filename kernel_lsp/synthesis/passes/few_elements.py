"""Reductions over a few elements each are written out: the sum of three channels is two additions.

A tile of such a reduction has next to no rows, and its lanes lie along whatever dimension is left. Written out it is elementwise: lanes go along
memory, and what it is computed from and what is computed of it share its kernel. Branches that are added up, colors, coordinates and members of
an ensemble are such sums.
"""

from __future__ import annotations

import functools

import sympy
import torch

from ..graph.build import Build
from ..graph.lowered import Graph
from ..graph.map import dim
from ..graph.monoids import MONOIDS
from ..graph.order import Order, order_of
from ..graph.sizes import ONE
from ..graph.value import Contract, Fold, Pointwise, Reduce, Value, View, numel, operands
from ..kernel.execution_plan import Hints, hint
from .fusion import sides

#: Elements up to which they are few: each is a load of every lane.
_MOST = 4
#: Reductions that carry one number, which their elements are combined with; of integers a maximum is another function.
_KINDS, _OF_FLOATS = ("sum", "prod"), ("amax", "amin")


def write_out(graph: Graph) -> int:
    """Replace reductions over one dimension of at most ``_MOST`` elements by the functions that combine those. Returns how many."""
    order = order_of(graph.outputs)
    written: set[Value] = set()
    for value in order.values:
        op = value.op
        if not isinstance(op, Reduce) or not _are_few(op, value):
            continue
        if _has_another_kernel(op, value, order, written, graph.hints):
            continue
        (along,) = op.dims
        length = int(op.operand.shape[along])
        elements = [
            Build.cast(Build.slice(op.operand, along, sympy.Integer(i), ONE, ONE), value.dtype) for i in range(length)
        ]
        combine = functools.partial(Build.pointwise, MONOIDS[op.kind].combine, dtype=value.dtype)
        value.meaning = value.meaning or (op.kind, (op.operand, op.dims))
        value.op = functools.reduce(combine, elements).op
        written.add(value)
    return len(written)


def _are_few(op: Reduce, value: Value) -> bool:
    combined = op.kind in _KINDS or (op.kind in _OF_FLOATS and value.dtype.is_floating_point)
    sizes = [op.operand.shape[d] for d in op.dims]
    # As numbers of one bit True and True would be added to False.
    return combined and value.dtype != torch.bool and len(sizes) == 1 and sizes[0].is_Integer and 1 < sizes[0] <= _MOST


def _has_another_kernel(op: Reduce, value: Value, order: Order, written: set[Value], hints: Hints) -> bool:
    """Whether the elements are better reduced with other reductions, in a product's tiles, or as windows.

    ``written``: what is written out already: of such elements each would be computed of several again.
    """
    (along,) = op.dims
    results = hint(numel(value.shape), hints)
    before = [v for v in _elementwise_from(op.operand) if hint(numel(v.shape), hints) >= results]
    last, length = along == len(value.shape) - 1, op.operand.shape[along]
    return (
        _comes_back(value, along, order)
        or any(isinstance(v.op, Fold) or v in written for v in before)
        or any(isinstance(v.op, Contract) and (last or length in sides(v.op)) for v in before)
        or _overlaps(op.operand, along, hints)
    )


def _comes_back(value: Value, along: int, order: Order) -> bool:
    """Whether its elements are combined with ``value`` again, as in a softmax or a norm: a tile of them has both."""
    stack, seen = [value], {value}
    while stack:
        for user in order.users.get(stack.pop(), []):
            if len(user.shape) == len(value.shape) and user.shape[along] != ONE:
                return True
            if isinstance(user.op, Pointwise) and user not in seen:
                seen.add(user)
                stack.append(user)
    return False


def _elementwise_from(value: Value) -> set[Value]:
    """``value``, and what it is computed from by elementwise functions and views."""
    stack, seen = [value], {value}
    while stack:
        v = stack.pop()
        new = [o for o in operands(v) if o not in seen] if isinstance(v.op, Pointwise | View) else []
        seen.update(new)
        stack += new
    return seen


def _overlaps(value: Value, along: int, hints: Hints) -> bool:
    """Whether ``value`` is made of windows, with elements in common, that lie along dimension ``along``."""
    stack, seen = [(value, along)], {(value, along)}
    while stack:
        v, d = stack.pop()
        found: list[tuple[Value, int]] = []
        if isinstance(v.op, Pointwise):
            places = ((o, d - len(v.shape) + len(o.shape)) for o in operands(v))
            found = [(o, place) for o, place in places if place >= 0]
        elif isinstance(v.op, View):
            for place, e in enumerate(v.op.map.index):
                if dim(d) not in e.free_symbols:
                    continue
                if e.free_symbols & {dim(i) for i in range(len(v.shape)) if i != d}:
                    if _in_common(e, d, v, hints):
                        return True
                    continue
                found.append((v.op.operand, place))
        new = [one for one in found if one not in seen]
        seen.update(new)
        stack += new
    return False


def _in_common(e: sympy.Expr, d: int, view: Value, hints: Hints) -> bool:
    """Whether an operand that is addressed by ``e`` has elements for several indices of ``view``, one dimension of which is ``d``.

    True also where that is not known.
    """
    step = abs(hint(e.coeff(dim(d)), hints))
    if not step:
        return True
    reach = step * (hint(view.shape[d], hints) - 1) + 1
    others = [(abs(hint(e.coeff(dim(i)), hints)), n) for i, n in enumerate(view.shape) if i != d]
    return any(0 < other < reach and other * hint(n, hints) > step for other, n in others)
