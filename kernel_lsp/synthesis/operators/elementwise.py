"""Elementwise operators: arithmetic, comparisons, activations, conversions."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, NotLowered, Operand, opmath
from ..graph.value import Pointwise, Value
from .registry import lowers

_UNARY = [
    "neg",
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "sigmoid",
    "erf",
    "abs",
    "floor",
    "ceil",
    "expm1",
    "log1p",
    "atan",
    "asin",
    "acos",
    "sinh",
    "cosh",
    "trunc",
]
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def unary(function: str) -> Any:
    """The lowering of a function of one tensor; those that round leave integers as they are."""

    def lower(x: Value, *, out: torch.dtype) -> Value:
        if function in ("neg", "abs", "floor", "ceil", "trunc") and not out.is_floating_point:
            if function in ("neg", "abs"):
                return Build.arithmetic(function, x, result=out)
            return x
        return Build.arithmetic(function, x, result=out)

    return lower


def _scaled(x: Operand, alpha: Any, out: torch.dtype) -> Operand:
    return x if alpha == 1 else Build.arithmetic("mul", x, alpha, result=out)


@lowers("aten.add", about="x + alpha * y")
def add(x: Operand, y: Operand, *, alpha: Any = 1, out: torch.dtype) -> Value:
    """In ``out``'s opmath; of booleans it is ``or``."""
    if out == torch.bool:
        return Build.pointwise("or", x, y, dtype=out)
    return Build.arithmetic("add", x, _scaled(y, alpha, out), result=out)


@lowers("aten.sub", "aten.subtract", about="x - alpha * y")
def sub(x: Operand, y: Operand, *, alpha: Any = 1, out: torch.dtype) -> Value:
    """In ``out``'s opmath, to which both are promoted."""
    return Build.arithmetic("sub", x, _scaled(y, alpha, out), result=out)


@lowers("aten.rsub", about="y - alpha * x")
def rsub(x: Operand, y: Operand, alpha: Any = 1, *, out: torch.dtype) -> Value:
    """``sub`` with its operands exchanged: ``alpha`` belongs to ``x``."""
    return Build.arithmetic("sub", y, _scaled(x, alpha, out), result=out)


@lowers("aten.mul", "aten.multiply", about="x * y")
def mul(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """In ``out``'s opmath; of booleans it is ``and``."""
    if out == torch.bool:
        return Build.pointwise("and", x, y, dtype=out)
    return Build.arithmetic("mul", x, y, result=out)


@lowers("aten.div", "aten.divide", "aten.true_divide", about="x / y, rounded down or to zero if asked")
def div(x: Operand, y: Operand, *, rounding_mode: str | None = None, out: torch.dtype) -> Value:
    """``rounding_mode`` None divides in floating point, also integers; ``"floor"`` and ``"trunc"`` round."""
    if rounding_mode is None:
        return Build.arithmetic("div", x, y, result=out)
    from .rounding import floor_divide, truncated

    return floor_divide(x, y, out=out) if rounding_mode == "floor" else truncated(x, y, out)


@lowers("aten.pow")
def power(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """Small integer and half-integer exponents become products and roots, as one would write them.

    Raises:
        NotLowered: for integers, but for exponents from 1 to 4.
    """
    if isinstance(y, int | float) and isinstance(x, Value):
        x = Build.cast(x, out)
        if y in (1, 2, 3, 4) and float(y).is_integer():
            result = x
            if y == 4:
                square = Build.pointwise("mul", x, x, dtype=out)
                return Build.pointwise("mul", square, square, dtype=out)
            for _ in range(int(y) - 1):
                result = Build.pointwise("mul", result, x, dtype=out)
            return result
        if y == 0.5:
            return Build.pointwise("sqrt", x, dtype=out)
        if y == -0.5:
            return Build.pointwise("rsqrt", x, dtype=out)
        if y == -1:
            return Build.pointwise("div", 1.0, x, dtype=out)
    if not out.is_floating_point:
        raise NotLowered("integer powers")
    return Build.arithmetic("pow", x, y, result=out)


@lowers("aten.reciprocal", about="1 / x")
def reciprocal(x: Value, *, out: torch.dtype) -> Value:
    """A division of 1.0, since ``out`` is a floating point dtype also for integers."""
    return Build.arithmetic("div", 1.0, x, result=out)


@lowers("aten.square", about="x * x")
def square(x: Value, *, out: torch.dtype) -> Value:
    """One multiplication of ``x``, cast to ``out``, by itself."""
    return Build.arithmetic("mul", x, x, result=out)


@lowers("aten.sign", about="-1, 0 or 1")
def sign(x: Value, *, out: torch.dtype) -> Value:
    """0 for NaN, too."""
    x = Build.cast(x, out)
    neither = 0.0 if out.is_floating_point else x  # of NaN it is 0, too
    below = Build.pointwise("where", Build.comparison("lt", x, 0.0), -1.0, neither, dtype=out)
    return Build.pointwise("where", Build.comparison("gt", x, 0.0), 1.0, below, dtype=out)


def compare(function: str) -> Any:
    """The lowering of a comparison, to bool; operands are promoted to their common dtype first."""
    return lambda x, y, *, out: Build.comparison(function, x, y)


def logical(function: str) -> Any:
    """The lowering of a logical function of one or two tensors, each cast to bool first."""

    def lower(*operands: Operand, out: torch.dtype) -> Value:
        booleans = [Build.cast(v, torch.bool) for v in operands]
        return Build.pointwise(function, *booleans, dtype=torch.bool)

    return lower


@lowers("aten.where", about="x where a condition holds, y elsewhere")
def where(condition: Value, x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """Three operands, broadcast; ``x`` and ``y`` are cast to ``out``."""
    return Build.pointwise("where", condition, Build.cast(x, out), Build.cast(y, out), dtype=out)


@lowers("aten.masked_fill", about="A number where a mask holds, x elsewhere")
def masked_fill(x: Value, mask: Value, value: Operand, *, out: torch.dtype) -> Value:
    """``where`` with the mask first; ``value`` is a number or a tensor of shape ()."""
    return Build.pointwise("where", mask, Build.cast(value, out), Build.cast(x, out), dtype=out)


@lowers("aten.maximum", about="The greater of two, NaN if one is")
def maximum(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """For floating point the form that keeps NaN."""
    return Build.arithmetic("maximum" if out.is_floating_point else "maximum_int", x, y, result=out)


@lowers("aten.minimum", about="The lesser of two, NaN if one is")
def minimum(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """For floating point the form that keeps NaN."""
    return Build.arithmetic("minimum" if out.is_floating_point else "minimum_int", x, y, result=out)


@lowers("aten.clamp", about="x within limits")
def clamp(x: Value, low: Any = None, high: Any = None, *, out: torch.dtype) -> Value:
    """``maximum`` with ``low``, then ``minimum`` with ``high``; None is no limit. Where low is above high it gives high."""
    if low is not None:
        x = maximum(x, low, out=out)
    if high is not None:
        x = minimum(x, high, out=out)
    return x


@lowers(
    "aten.to", "aten._to_copy", "aten.type_as", "aten.float", "prims.convert_element_type", about="x in another dtype"
)
def cast(x: Operand, *_: Any, out: torch.dtype, **__: Any) -> Value:
    """A value of dtype ``out``; to half precision it is rounded where it is stored, not inside the kernel.

    ``x`` may be a number, as vmap leaves it: ``_to_copy(2, dtype=torch.float32)``.

    Raises:
        NotLowered: where it is a size.
    """
    if isinstance(x, bool | int | float):
        given = torch.tensor(x)
        x = Value(Pointwise("constant", (x,)), (), given.dtype)
    if not isinstance(x, Value):
        raise NotLowered("a size in another dtype")
    result = Build.cast(x, out)
    assert isinstance(result, Value)
    if result.dtype == out:
        return result
    # The same number inside a kernel; half precisions are rounded where it is stored.
    return Value(Pointwise("identity", (result,)), x.shape, out, x.name, x.meaning)


@lowers("aten.addcmul", about="x + value * a * b")
def addcmul(x: Value, a: Value, b: Value, *, value: float = 1.0, out: torch.dtype) -> Value:
    """The product first, then ``value`` times it, in ``out``'s opmath."""
    product: Operand = Build.arithmetic("mul", a, b, result=out)
    return Build.arithmetic("add", x, _scaled(product, value, out), result=out)


@lowers("aten.lerp", about="x + weight * (y - x)")
def lerp(x: Value, y: Value, weight: Operand, *, out: torch.dtype) -> Value:
    """As torch computes it: from the nearer end, for where both are infinite the other way gives another infinity.

    Raises:
        NotLowered: where the weight is a size.
    """
    apart = Build.pointwise("sub", y, x)
    step = Build.arithmetic("mul", apart, weight, result=out)
    first = Build.arithmetic("add", x, step, result=out)
    if isinstance(weight, int | float) and abs(weight) < 0.5:
        return first
    rest = Build.pointwise("sub", 1.0, weight, dtype=opmath(out)) if isinstance(weight, Value) else None
    if isinstance(weight, int | float):
        return Build.arithmetic("sub", y, Build.arithmetic("mul", apart, 1.0 - weight, result=out), result=out)
    if rest is None:
        raise NotLowered("lerp by a size")
    last = Build.arithmetic("sub", y, Build.arithmetic("mul", apart, rest, result=out), result=out)
    near = Build.comparison("lt", Build.pointwise("abs", weight), 0.5)
    return Build.pointwise("where", near, first, last, dtype=out)


@lowers("aten.isnan", about="Whether x is not a number")
def isnan(x: Value, *, out: torch.dtype) -> Value:
    """``x != x``, which holds for NaN alone."""
    return Build.comparison("ne", x, x)


@lowers("aten.clamp_min", about="x, not below a limit")
def clamp_min(x: Value, low: Operand, *, out: torch.dtype) -> Value:
    """``clamp`` without an upper limit."""
    return clamp(x, low, out=out)


@lowers("aten.clamp_max", about="x, not above a limit")
def clamp_max(x: Value, high: Operand, *, out: torch.dtype) -> Value:
    """``clamp`` without a lower limit."""
    return clamp(x, None, high, out=out)


@lowers("aten.atan2", about="The angle of the point (y, x)")
def atan2(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """``x`` is the ordinate, the first argument of ``torch.atan2``; radians from -pi to pi."""
    return Build.arithmetic("atan2", x, y, result=out)


for _name in _UNARY:
    lowers(f"aten.{_name}", about="The function of that name")(unary(_name))
for _name in _COMPARE:
    lowers(f"aten.{_name}", about="A comparison")(compare(_name))
for _name in ("and", "or", "not", "xor"):
    lowers(f"aten.logical_{_name}", about="A logical operation; what is not zero is true")(logical(_name))
