"""Text for what an index alone does not say: divisions that stay in it, and views whose operand ends before they do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import sympy

from ..graph.division import Quotient, is_size, within
from ..graph.functions import ATOM, BITAND, COMPARE, PRODUCT, SUM, UNARY, literal, wrap
from ..graph.map import guards_at
from ..graph.sizes import Index
from ..graph.value import Value, View
from .access import reshaped_leaf

if TYPE_CHECKING:
    from .emit import Emitter, Term

_CALLS = {"Abs": "tl.abs", "Max": "tl.maximum", "Min": "tl.minimum"}


def opaque(emitter: Emitter, part: sympy.Expr) -> Term:
    """An opaque part of an index: ``//``, ``%``, or a call of tl's function."""
    if part.func.__name__ in _CALLS:
        terms = [emitter.index_term(a) for a in sorted(part.args, key=is_size)]
        text = f"{_CALLS[part.func.__name__]}({', '.join(t.text for t in terms)})"
        return replace(terms[0], text=text, precedence=ATOM, axes=frozenset().union(*(t.axes for t in terms)))
    x, n = part.args
    divided = emitter.index_term(x)
    if emitter.reduced_axis in divided.axes:
        emitter.arguments.divide_by(n)
    sign = "//" if isinstance(part, Quotient) else "%"
    text = f"{wrap(divided.text, divided.precedence, PRODUCT)} {sign} {wrap(*emitter.arguments.size(n), UNARY)}"
    return replace(divided, text=text, precedence=PRODUCT)


def padded(emitter: Emitter, value: Value, index: Index) -> Term:
    """A view with a guard: its operand where that has the element, the pad elsewhere."""
    op = value.op
    assert isinstance(op, View)
    conditions = [c for guard in guards_at(op.map, index) if (c := _condition(emitter, *guard)) is not None]
    at = emitter.domain.at(op.map, index)
    if not conditions:
        return emitter.value(op.operand, at)
    assert op.map.pad is not None
    pad = float(op.map.pad) if value.dtype.is_floating_point else op.map.pad
    leaf = reshaped_leaf(op.operand, emitter.stored)
    direct = leaf is not None and (leaf is op.operand or leaf not in emitter.strided)
    emitter.conditions += conditions
    if direct:
        assert leaf is not None
        result = emitter.load(leaf, at, shape=op.operand.shape, other=pad)
    else:
        inner = emitter.value(op.operand, at)
        held = conditions[0].text
        if len(conditions) > 1:
            held = " & ".join(wrap(c.text, c.precedence, BITAND) for c in conditions)
        axes = inner.axes.union(*(c.axes for c in conditions))
        text = f"tl.where({held}, {inner.text}, {literal(pad)})"
        result = replace(
            inner, text=text, precedence=ATOM, axes=axes, pad=float(pad) if inner.pad == float(pad) else None
        )
    del emitter.conditions[-len(conditions) :]
    return result if direct else emitter.assign(value.name or "padded", result)


def _condition(emitter: Emitter, expr: sympy.Expr, low: sympy.Expr, high: sympy.Expr) -> Term | None:
    """low <= expr < high as text; None where that is always so."""
    expr = emitter.domain.simplify(expr)
    above, below = within(expr, low, high, emitter.domain.size)
    if above and below:
        return None
    place = emitter.index_term(expr)
    if not above and not below and not place.text.isidentifier():
        place = emitter.assign("place", place)
    text = wrap(place.text, place.precedence, SUM)
    least, limit = wrap(*emitter.arguments.size(low), SUM), wrap(*emitter.arguments.size(high), SUM)
    if above:
        return replace(place, text=f"{text} < {limit}", precedence=COMPARE)
    if below:
        return replace(place, text=f"{text} >= {least}", precedence=COMPARE)
    return replace(place, text=f"({text} >= {least}) & ({text} < {limit})", precedence=BITAND)
