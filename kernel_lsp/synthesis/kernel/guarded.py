"""Accesses that need more than a linear index: divisions that stay in it, and views that reach beyond their operand."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import sympy
import torch

from ..graph.division import Quotient, Remainder, is_size, within
from ..graph.map import Guard, guards_at
from ..graph.names import variable_name
from ..graph.sizes import Index
from ..graph.value import Value, View, viewed
from .access import reshaped_leaf
from .ir import Apply, Expr, Number, Ref, apply, width

if TYPE_CHECKING:
    from .build import Builder

#: What an index along a dimension is called, the last dimension first.
_FROM_LAST = ("col", "row", "plane")

#: What is compared once gets a name where its text is longer, since each load under the condition says it again.
_LONGEST_COMPARED = 60

_FUNCTIONS = {"Abs": "abs", "Max": "maximum_int", "Min": "minimum_int"}


def opaque(builder: Builder, part: sympy.Expr) -> Expr:
    """An opaque part of an index, which the kernel computes."""
    if not isinstance(part, Quotient | Remainder):
        function = _FUNCTIONS[part.func.__name__]
        first, *others = (builder.index(a) for a in sorted(part.args, key=lambda a: (is_size(a), str(a))))
        return functools.reduce(lambda a, b: apply(function, a, b), others, first) if others else apply(function, first)
    x, n = part.args
    divided = builder.index(x)
    if builder.reduced_axis in divided.axes:
        builder.arguments.divide_by(n)
    function = "floordiv_int" if isinstance(part, Quotient) else "mod_int"
    found = apply(function, divided, builder.arguments.size(n))
    return builder.named.get(found, found)


def padded(builder: Builder, value: Value, index: Index) -> Expr:
    """A view with a guard: its operand where that has the element, the pad elsewhere."""
    op = value.op
    assert isinstance(op, View)
    at = builder.domain.at(op.map, index)
    guards = [(guard, _called(builder, op, at, guard)) for guard in guards_at(op.map, index)]
    conditions = [c for guard, name in guards if (c := _condition(builder, guard, name, at)) is not None]
    if not conditions:
        return builder.value(op.operand, at)
    pad = op.map.pad
    assert pad is not None
    leaf = reshaped_leaf(op.operand, builder.stored)
    builder.conditions += conditions
    try:
        if leaf is not None and (leaf is op.operand or leaf not in builder.strided):
            return builder.load(leaf, at, shape=op.operand.shape, other=pad)
        inner = builder.value(op.operand, at)
    finally:
        del builder.conditions[-len(conditions) :]
    holds = functools.reduce(lambda a, b: apply("and", a, b, dtype=torch.bool), conditions)
    known = float(pad) if inner.pad == float(pad) else None
    return builder.assign(
        value.name or "padded", Apply("where", (holds, inner, Number(pad)), value.dtype, known), value.dtype
    )


def _called(builder: Builder, op: View, at: Index, guard: Guard) -> str:
    """What the guarded index is called: ``x_row`` where it is the row of the operand ``x``."""
    base = viewed(op.operand)
    places = [d for d, e in enumerate(at) if builder.domain.simplify(e - guard[0]) == 0]
    if len(places) != 1 or len(at) - places[0] > len(_FROM_LAST):
        return f"{variable_name(base)}_index"
    return f"{variable_name(base)}_{_FROM_LAST[len(at) - 1 - places[0]]}"


def _condition(builder: Builder, guard: Guard, name: str, at: Index) -> Expr | None:
    """low <= expression < high; None where that is always so.

    ``name``: of the expression, where both sides are asked, or where another part of the index ``at`` is computed from it.
    """
    expr, low, high = builder.domain.simplify(guard[0]), *guard[1:]
    above, below = within(expr, low, high, builder.domain.size)
    if above and below:
        return None
    if above or below:  # one comparison: of the index itself, not of a sum
        constant = expr.as_coeff_Add()[0]
        expr, low, high = expr - constant, low - constant, high - constant
    place = builder.index(expr)
    parts = (part for e in at for part in builder.domain.simplify(e).atoms(Quotient, Remainder))
    again = isinstance(expr, Quotient | Remainder) and any(part != expr and part.has(expr) for part in parts)
    if not isinstance(place, Ref) and (again or width(place) > _LONGEST_COMPARED or not (above or below)):
        place = builder.named_place(name, place)
    sides = [] if above else [apply("ge", place, builder.arguments.size(low), dtype=torch.bool)]
    sides += [] if below else [apply("lt", place, builder.arguments.size(high), dtype=torch.bool)]
    return sides[0] if len(sides) == 1 else apply("and", *sides, dtype=torch.bool)
