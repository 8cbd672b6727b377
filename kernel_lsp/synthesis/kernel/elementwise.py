"""The expression of an elementwise function: numbers among its operands are folded, and the value in masked lanes is worked out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from ..graph.functions import FUNCTIONS
from ..graph.sizes import Index, broadcast
from ..graph.value import Pointwise, Scalar, Value
from .ir import Apply, Axis, Expr, Number

if TYPE_CHECKING:
    from .build import Builder

#: Functions of a constant mask, beside conversions, sums and products: for numbers they are a number in the text.
_OF_NUMBERS = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not"])

#: Functions that give their other operand for a number: a product with a tensor of ones, a mask that is always on.
_NEUTRAL = {"mul": 1, "and": 1, "or": 0}

#: The same where the number is the second operand. Zero is not among those of a sum: -0.0 + 0.0 is 0.0, while -0.0 - 0.0 stays.
_NEUTRAL_SECOND = {"sub": 0.0, "div": 1.0}


def elementwise(builder: Builder, value: Value, op: Pointwise, index: Index) -> Expr:
    """``value`` at ``index``, the result of ``op``; a number where its operands are numbers."""
    if op.function == "identity":
        return _operand(builder, op.operands[0], value, index)
    if op.function == "constant":
        return Number(op.operands[0])
    terms = tuple(_operand(builder, o, value, index) for o in op.operands)
    numbers = [t.value for t in terms if isinstance(t, Number)]
    if op.function == "where" and isinstance(terms[0], Number):
        return terms[1] if terms[0].value else terms[2]
    known = op.function.startswith(("to_", "add", "sub", "mul")) or op.function in _OF_NUMBERS
    if known and len(numbers) == len(terms):
        return Number(FUNCTIONS[op.function].evaluate(*numbers))  # 0.to(…) and (False == 0).to(…) are no Triton
    if op.function in _NEUTRAL:
        left = [i for i, t in enumerate(terms) if not (isinstance(t, Number) and t.value == _NEUTRAL[op.function])]
        if len(left) == 1 and getattr(op.operands[left[0]], "dtype", None) == value.dtype:
            return terms[left[0]]
    if _is_neutral_second(op.function, terms) and getattr(op.operands[0], "dtype", None) == value.dtype:
        return terms[0]
    function = _quotient_of_a_mean(value, op) or op.function
    return Apply(function, terms, value.dtype, _pad(op.function, terms, builder.reduced_axis))


def _quotient_of_a_mean(value: Value, op: Pointwise) -> str:
    """The division of a mean, which is rounded to the nearest; "" for anything else.

    So the mean of equal numbers is that number, wherever their sum is exact. A norm divides what is left of it by the root of its ``eps``.
    """
    if value.meaning is None or value.meaning[0] != "mean" or op.function != "div" or value.dtype == torch.float64:
        return ""
    count = op.operands[1]
    if not isinstance(count, Scalar) or not count.expr.is_Integer:
        return "div_rn_size"
    return "" if int(count.expr).bit_count() == 1 else "div_rn"  # by a power of two every quotient is exact


def _is_neutral_second(function: str, terms: tuple[Expr, ...]) -> bool:
    neutral = _NEUTRAL_SECOND.get(function)
    if neutral is None or not isinstance(terms[1], Number) or terms[1].value != neutral:
        return False
    return math.copysign(1.0, terms[1].value) == 1.0


def _operand(builder: Builder, operand: Value | Scalar | float, value: Value, index: Index) -> Expr:
    if isinstance(operand, Value):
        return builder.value(operand, broadcast(index, value.shape, operand.shape))
    if isinstance(operand, Scalar):
        return builder.arguments.scalar(operand)
    return Number(operand)


def _pad(function: str, terms: tuple[Expr, ...], reduced: Axis | None) -> float | None:
    """What masked lanes hold after ``function``; None where that is not known.

    Uniform operands (the same along the reduced axis) count as finite: infinity plus them stays, zero times them stays.
    """
    # What a term holds beyond the end of another axis says nothing of the reduced one, along which it does not vary.
    pads = [t.pad if reduced is None or reduced in t.axes or isinstance(t, Number) else None for t in terms]
    known = [p for p in pads if p is not None]
    if len(known) == len(pads):
        try:
            return float(FUNCTIONS[function].evaluate(*known))
        except (ValueError, OverflowError, ZeroDivisionError, TypeError):
            return None
    uniform = [p is None and reduced not in t.axes for p, t in zip(pads, terms, strict=True)]
    if len(terms) == 2 and any(uniform):
        if not known:
            return None
        if function in ("add", "sub") and math.isinf(known[0]):
            return known[0] if pads[0] is not None or function == "add" else -known[0]
        if function == "mul" and known[0] == 0:
            return 0.0
    return None
