"""Division with rounding, remainders, and rounding itself; bitwise operators on integers."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..graph.build import Build, NotLowered, Operand
from ..graph.value import Value
from .registry import lowers


def _both(x: Operand, y: Operand, out: torch.dtype) -> tuple[Operand, Operand]:
    return Build.cast(x, out), Build.cast(y, out)


def _differs(rest: Value, divisor: Operand, out: torch.dtype) -> Value:
    """Whether there is a rest, and its sign is not the divisor's: the quotient was rounded up."""
    zero: Any = 0.0 if out.is_floating_point else 0
    signs = Build.comparison("ne", Build.comparison("lt", rest, zero), _negative(divisor, zero))
    return Build.pointwise("and", Build.comparison("ne", rest, zero), signs, dtype=torch.bool)


def _negative(divisor: Operand, zero: Any) -> Operand:
    return divisor < zero if isinstance(divisor, int | float) else Build.comparison("lt", divisor, zero)


def _refuse_bool(out: torch.dtype) -> None:
    if out == torch.bool or out == torch.uint8:
        raise NotLowered(f"division in {out}")


@lowers("aten.fmod", about="The rest of a division rounded to zero")
def fmod(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """x - trunc(x / y) * y; it has the sign of ``x``.

    Raises:
        NotLowered: for bool and uint8.
    """
    _refuse_bool(out)
    x, y = _both(x, y, out)
    return Build.pointwise("fmod" if out.is_floating_point else "rest_int", x, y, dtype=out)


@lowers("aten.remainder", about="The rest of a division rounded down; it has the divisor's sign")
def remainder(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """``fmod``, plus ``y`` where the signs of the rest and of ``y`` differ.

    Raises:
        NotLowered: for bool and uint8.
    """
    x, y = _both(x, y, out)
    rest = fmod(x, y, out=out)
    return Build.pointwise("where", _differs(rest, y, out), Build.pointwise("add", rest, y, dtype=out), rest, dtype=out)


@lowers("aten.floor_divide", about="A division rounded down")
def floor_divide(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """As torch computes it, from what remains: floor(x / y) is off by one where x / y was rounded up."""
    x, y = _both(x, y, out)
    rest = fmod(x, y, out=out)
    up = _differs(rest, y, out)
    if not out.is_floating_point:
        exact = Build.pointwise("truncdiv_int", x, y, dtype=out)
        return Build.pointwise("where", up, Build.pointwise("sub", exact, 1, dtype=out), exact, dtype=out)
    plain = Build.pointwise("div", x, y, dtype=out)
    exact = Build.pointwise("div", Build.pointwise("sub", x, rest, dtype=out), y, dtype=out)
    lower = Build.pointwise("where", up, Build.pointwise("sub", exact, 1.0, dtype=out), exact, dtype=out)
    floor = Build.pointwise("floor", lower, dtype=out)
    above = Build.comparison("gt", Build.pointwise("sub", lower, floor, dtype=out), 0.5)
    rounded = Build.pointwise("where", above, Build.pointwise("add", floor, 1.0, dtype=out), floor, dtype=out)
    if not isinstance(y, Value):
        return rounded if y != 0 else plain
    return Build.pointwise("where", Build.comparison("eq", y, 0.0), plain, rounded, dtype=out)


def truncated(x: Operand, y: Operand, out: torch.dtype) -> Value:
    """A division rounded to zero.

    Raises:
        NotLowered: ``out`` is bool or uint8.
    """
    x, y = _both(x, y, out)
    if out.is_floating_point:
        return Build.pointwise("trunc", Build.pointwise("div", x, y, dtype=out), dtype=out)
    _refuse_bool(out)
    return Build.pointwise("truncdiv_int", x, y, dtype=out)


@lowers("aten.round", about="The nearest whole number, or one with that many decimals; the even one of two")
def rounded(x: Value, *, decimals: int = 0, out: torch.dtype) -> Value:
    """Integers stay as they are; ``decimals`` scales by a power of ten before and after."""
    if not out.is_floating_point:
        return x
    x = Build.cast(x, out)
    scale = math.pow(10.0, abs(decimals))
    if decimals == 0:
        return Build.pointwise("rint", x, dtype=out)
    first, last = ("mul", "div") if decimals > 0 else ("div", "mul")
    whole = Build.pointwise("rint", Build.pointwise(first, x, scale, dtype=out), dtype=out)
    return Build.pointwise(last, whole, scale, dtype=out)


@lowers("aten.frac", about="x - trunc(x)")
def frac(x: Value, *, out: torch.dtype) -> Value:
    """It has the sign of ``x``."""
    return Build.pointwise("sub", x, Build.pointwise("trunc", x, dtype=out), dtype=out)


def bitwise(name: str) -> Any:
    """On integers ``bit_…``; on bools the logical operation."""

    def lower(*operands: Operand, out: torch.dtype) -> Value:
        if out == torch.bool:
            return Build.pointwise(name, *operands, dtype=out)
        return Build.arithmetic(f"bit_{name}", *operands, result=out)

    return lower


def _shift(name: str) -> Any:
    def lower(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
        """What is shifted out altogether is gone: Triton leaves shifts by more than the width undefined."""
        if out == torch.bool:
            raise NotLowered(f"shifts of {out}")
        x, y = _both(x, y, out)
        x = _wrapped(x, out) if isinstance(x, int) else x
        y = y if isinstance(y, Value) else _wrapped(y, out)
        width = torch.iinfo(out).bits
        far = _outside(y, width)
        shifted = Build.pointwise(f"shift_{name}", x, _within(y, far, out), dtype=out)
        if far is False:
            return shifted
        if name == "left" or not out.is_signed:
            return Build.pointwise("where", far, 0, shifted, dtype=out)
        sign = Build.pointwise("shift_right", x, width - 1, dtype=out)
        return Build.pointwise("where", far, sign, shifted, dtype=out)

    return lower


def _wrapped(y: Operand, out: torch.dtype) -> int:
    """A number of places in the integers of ``out``, as torch converts it: -1 is 255 in uint8."""
    if not isinstance(y, int):
        raise NotLowered("a shift by a size")
    info = torch.iinfo(out)
    return (y - info.min) % (info.max - info.min + 1) + info.min


def _outside(y: Value | int, width: int) -> Operand:
    """Whether ``y`` is negative, or not less than ``width``."""
    if not isinstance(y, Value):
        return not 0 <= y < width
    above = Build.comparison("ge", y, width)
    if not y.dtype.is_signed:
        return above
    return Build.pointwise("or", Build.comparison("lt", y, 0), above, dtype=torch.bool)


def _within(y: Value | int, far: Operand, out: torch.dtype) -> Operand:
    if not isinstance(y, Value):
        return 0 if far else y
    return Build.pointwise("where", far, 0, y, dtype=out)


for _name in ("and", "or", "xor", "not"):
    lowers(f"aten.bitwise_{_name}", about="A bitwise operation")(bitwise(_name))
for _name in ("and", "or", "xor"):
    lowers(f"aten.__{_name}__", about="A bitwise operation")(bitwise(_name))
for _name, _python in (("left", "lshift"), ("right", "rshift")):
    _lowering = _shift(_name)
    lowers(f"aten.bitwise_{_name}_shift", f"aten.__{_python}__", about="A shift of bits")(_lowering)
