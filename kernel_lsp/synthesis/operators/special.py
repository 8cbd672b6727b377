"""Functions that Triton's libdevice has, or that follow from those, and tests of single elements such as ``isnan``."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..graph.build import Build, NotLowered, Operand
from ..graph.value import Value
from .elementwise import power, unary
from .registry import lowers

for _name in ("asinh", "acosh", "atanh", "log10", "erfc", "erfinv", "lgamma", "i0"):
    lowers(f"aten.{_name}", about="The function of that name")(unary(_name))
for _name in ("erfcx", "ndtri", "i1", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"):
    lowers(f"aten.special_{_name}", about="The function of that name")(unary(_name))


def _binary(function: str) -> Any:
    def lower(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
        if out not in (torch.float32, torch.float64):
            raise NotLowered(f"{function} in {out}")  # a neighbour in half precision is another number
        return Build.arithmetic(function, x, y, result=out)

    return lower


lowers("aten.nextafter", about="The next number towards another")(_binary("nextafter"))


@lowers("aten.hypot", about="sqrt(x^2 + y^2) without overflow")
def hypot(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """libdevice's ``hypot``, in ``out``'s opmath."""
    return Build.arithmetic("hypot", x, y, result=out)


@lowers("aten.copysign", about="|x| with the sign of y")
def copysign(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """libdevice's ``copysign``; ``out`` is a floating point dtype, also for integers."""
    return Build.arithmetic("copysign", x, y, result=out)


@lowers("aten.signbit", about="Whether x is negative, or minus zero")
def signbit(x: Value, *, out: torch.dtype) -> Value:
    """The sign of ``copysign(1, x)``, which tells minus zero from zero; of integers ``x < 0``."""
    if not x.dtype.is_floating_point:
        return Build.comparison("lt", x, 0)
    one = Build.pointwise("copysign", 1.0, Build.cast(x, x.dtype), dtype=x.dtype)
    return Build.comparison("lt", one, 0.0)


@lowers("aten.isinf", about="Whether x is infinite")
def isinf(x: Value, *, out: torch.dtype) -> Value:
    """``|x| == inf``; never of integers."""
    if not x.dtype.is_floating_point:
        return Build.comparison("ne", x, x)
    return Build.comparison("eq", Build.pointwise("abs", x), math.inf)


@lowers("aten.isfinite", about="Whether x is a finite number")
def isfinite(x: Value, *, out: torch.dtype) -> Value:
    """``|x| < inf``, which NaN is not; always of integers."""
    if not x.dtype.is_floating_point:
        return Build.comparison("eq", x, x)
    return Build.comparison("lt", Build.pointwise("abs", x), math.inf)


@lowers("aten.fmax", about="The greater of two; a number where one is NaN")
def fmax(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """``maximum``, and the other operand where one is NaN."""
    return _extreme("maximum", x, y, out)


@lowers("aten.fmin", about="The lesser of two; a number where one is NaN")
def fmin(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """``minimum``, and the other operand where one is NaN."""
    return _extreme("minimum", x, y, out)


def _extreme(function: str, x: Operand, y: Operand, out: torch.dtype) -> Value:
    if not out.is_floating_point:
        return Build.arithmetic(f"{function}_int", x, y, result=out)
    x, y = Build.cast(x, out), Build.cast(y, out)
    value = Build.pointwise(function, x, y, dtype=out)
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Value):
            value = Build.pointwise("where", Build.comparison("ne", one, one), other, value, dtype=out)
    return value


@lowers("aten.sgn", about="-1, 0 or 1")
def sgn(x: Value, *, out: torch.dtype) -> Value:
    """``(x > 0) - (x < 0)``, which is 0 for NaN; not of complex numbers."""
    zero: Any = 0.0 if out.is_floating_point else 0
    up = Build.cast(Build.comparison("gt", x, zero), out)
    down = Build.cast(Build.comparison("lt", x, zero), out)
    return Build.pointwise("sub", up, down, dtype=out)


@lowers("aten.float_power", about="Powers in float64")
def float_power(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """``power`` with ``out`` float64.

    Raises:
        NotLowered: as ``power``.
    """
    return power(x, y, out=out)


@lowers("aten.addcdiv", about="x + value * a / b")
def addcdiv(x: Value, a: Value, b: Value, *, value: float = 1.0, out: torch.dtype) -> Value:
    """The quotient first, then ``value`` times it, in ``out``'s opmath."""
    quotient = Build.arithmetic("div", a, b, result=out)
    scaled = quotient if value == 1 else Build.pointwise("mul", quotient, float(value), dtype=out)
    return Build.arithmetic("add", x, scaled, result=out)
