"""Elementwise functions: how each is written in Triton and in a formula, and what it gives for constants.

``evaluate`` follows values through masked-off lanes (so that a mask is applied only where it matters); it may
raise for arguments outside the domain, which then counts as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

# Precedence of Python operators, for parentheses where they are needed. // and % have the one of a product in Python: here they are below
# it, so that ``(a // b) % c`` and ``(a % b) * c`` are written, whose order few readers know without parentheses.
ATOM, UNARY, PRODUCT, DIVISION, SUM, SHIFT, BITAND, BITOR, COMPARE, LOWEST = 100, 90, 80, 75, 70, 60, 50, 40, 30, 0


@dataclass(frozen=True)
class Function:
    """``text`` has one ``{i}`` per operand; ``formula`` is for docstrings; ``inner`` are the operands' least precedences.

    ``helper``: the body of a function of ``a``, or of ``a`` and ``b``, that stands in the generated file, for what no short expression
    writes; ``text`` calls it by the function's key with ``_`` before it (``printing/helpers.py``). ``reads``: the line of the
    generated file that assigns a constant which the helper reads.
    """

    text: str
    precedence: int
    inner: tuple[int, ...]
    evaluate: Callable[..., float]
    formula: str = ""
    library: bool = False  # needs libdevice
    helper: tuple[str, ...] = ()
    reads: str = ""


def _call(text: str, arity: int, evaluate: Callable[..., float], formula: str = "") -> Function:
    return Function(text, ATOM, (LOWEST,) * arity, evaluate, formula)


def _libdevice(name: str, arity: int, evaluate: Callable[..., float]) -> Function:
    arguments = ", ".join(f"{{{i}}}" for i in range(arity))
    return Function(f"libdevice.{name}({arguments})", ATOM, (LOWEST,) * arity, evaluate, f"{name}({arguments})", True)


def _renamed(name: str, known_as: str, arity: int) -> Function:
    """A function of libdevice that torch, and a formula, call otherwise."""
    arguments = ", ".join(f"{{{i}}}" for i in range(arity))
    text, formula = f"libdevice.{name}({arguments})", f"{known_as}({arguments})"
    return Function(text, ATOM, (LOWEST,) * arity, _unknown, formula, True)


def _unknown(*_: float) -> float:
    raise ValueError("not computed here")


def _log_add_exp(a: float, b: float) -> float:
    return max(a, b) + math.log1p(math.exp(-abs(a - b) if a != b else 0.0))


#: log(exp(a) + exp(b)) without overflow; equal infinities have no difference, a NaN stays one.
_LOG_ADD_EXP = (
    "gap = tl.where(a == b, 0.0, -tl.abs(a - b))  # infinities that are equal have no difference",
    "return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL) + libdevice.log1p(tl.exp(gap))",
)


#: e4m3fn has no infinity. What is beyond its largest number becomes that one with Triton's conversion, and in torch since 2.13; it
#: was NaN before: what would round to more than 448, and 464 still rounds to the even one of 448 and 480.
_TO_FLOAT8_E4M3FN = ('return tl.where(tl.abs(a) > 464.0, float("nan"), a).to(tl.float8e4nv)',)

#: e5m2 has infinities, which torch rounds to from 61440 on, the middle of 57344 and 65536; Triton's conversion does not.
_TO_FLOAT8_E5M2 = (
    "bits = a.to(tl.float8e5).to(tl.uint8, bitcast=True)",
    "infinity = tl.where(a < 0, 0xFC, 0x7C).to(tl.uint8)",
    "return tl.where(tl.abs(a) >= 61440.0, infinity, bits).to(tl.float8e5, bitcast=True)",
)


#: To the nearest number of ten bits of mantissa, ties away from zero as ``cvt.rna.tf32`` does: a tensor core cuts off what is behind those.
_TO_TF32 = (
    "bits = a.to(tl.int32, bitcast=True)",
    "return tl.where(a == a, ((bits + 4096) & -8192).to(tl.float32, bitcast=True), a)  # NaN stays NaN",
)

#: Whether a kernel runs under the interpreter, for what torch does in one way on the CPU and in another on a GPU.
_INTERPRETED = "_INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)"


def saturates(dtype: torch.dtype) -> bool:
    """Whether torch, as it is installed, rounds what is beyond the largest number of a float8 to that number."""
    return bool(torch.tensor(1e9).to(dtype).to(torch.float32).isfinite())


def _float8(dtype: torch.dtype, tl_name: str, helper: tuple[str, ...]) -> Function:
    """A float32 number rounded to a float8 as torch does it."""
    name = str(dtype).removeprefix("torch.")

    def rounded(a: float) -> float:
        return float(torch.tensor(a, dtype=torch.float32).to(dtype))

    if saturates(dtype):
        return Function(f"{{0}}.to(tl.{tl_name})", ATOM, (ATOM,), rounded, f"{name}({{0}})")
    return Function(f"_to_{name}({{0}})", ATOM, (LOWEST,), rounded, f"{name}({{0}})", helper=helper)


def _where(condition: float, a: float, b: float) -> float:
    return a if condition else b


FUNCTIONS: dict[str, Function] = {
    "add": Function("{0} + {1}", SUM, (SUM, SUM), lambda a, b: a + b),
    "sub": Function("{0} - {1}", SUM, (SUM, PRODUCT), lambda a, b: a - b),
    "mul": Function("{0} * {1}", PRODUCT, (PRODUCT, UNARY), lambda a, b: a * b),
    "div": Function("{0} / {1}", PRODUCT, (PRODUCT, UNARY), lambda a, b: a / b),
    # Rounded to the nearest, which Triton's division is not: it may be off by two units of the last place. By a number, and by a size.
    # Kernels have them where the graph has the quotient of a mean (``kernel/elementwise.py``).
    "div_rn": Function("tl.div_rn({0}, {1})", PRODUCT, (PRODUCT, UNARY), lambda a, b: a / b, "{0} / {1}"),
    "div_rn_size": Function("tl.div_rn({0}, {1} * 1.0)", PRODUCT, (PRODUCT, UNARY), lambda a, b: a / b, "{0} / {1}"),
    "neg": Function("-{0}", UNARY, (UNARY,), lambda a: -a),
    "exp": _call("tl.exp({0})", 1, lambda a: math.exp(a) if a != -math.inf else 0.0, "exp({0})"),
    "exp2": _call("tl.exp2({0})", 1, lambda a: 2.0**a, "exp2({0})"),
    "log": _call("tl.log({0})", 1, math.log, "log({0})"),
    "log2": _call("tl.log2({0})", 1, math.log2, "log2({0})"),
    "sqrt": _call("tl.sqrt({0})", 1, math.sqrt, "sqrt({0})"),
    "rsqrt": _call("tl.rsqrt({0})", 1, lambda a: 1 / math.sqrt(a), "rsqrt({0})"),
    "sin": _call("tl.sin({0})", 1, math.sin, "sin({0})"),
    "cos": _call("tl.cos({0})", 1, math.cos, "cos({0})"),
    "sigmoid": _call("tl.sigmoid({0})", 1, lambda a: 1 / (1 + math.exp(-a)), "sigmoid({0})"),
    "erf": _call("tl.erf({0})", 1, math.erf, "erf({0})"),
    "abs": _call("tl.abs({0})", 1, abs, "abs({0})"),
    "floor": _call("tl.floor({0})", 1, math.floor, "floor({0})"),
    "ceil": _call("tl.ceil({0})", 1, math.ceil, "ceil({0})"),
    "tanh": _libdevice("tanh", 1, math.tanh),
    "expm1": _libdevice("expm1", 1, math.expm1),
    "log1p": _libdevice("log1p", 1, math.log1p),
    "tan": _libdevice("tan", 1, math.tan),
    "atan": _libdevice("atan", 1, math.atan),
    "asin": _libdevice("asin", 1, math.asin),
    "acos": _libdevice("acos", 1, math.acos),
    "sinh": _libdevice("sinh", 1, math.sinh),
    "cosh": _libdevice("cosh", 1, math.cosh),
    "pow": _libdevice("pow", 2, math.pow),
    "atan2": _libdevice("atan2", 2, math.atan2),
    "fmod": _libdevice("fmod", 2, math.fmod),
    "rint": _libdevice("rint", 1, round),
    "trunc": _libdevice("trunc", 1, math.trunc),
    "asinh": _libdevice("asinh", 1, math.asinh),
    "acosh": _libdevice("acosh", 1, math.acosh),
    "atanh": _libdevice("atanh", 1, math.atanh),
    "log10": _libdevice("log10", 1, math.log10),
    "erfc": _libdevice("erfc", 1, math.erfc),
    "erfinv": _libdevice("erfinv", 1, _unknown),
    "lgamma": _libdevice("lgamma", 1, math.lgamma),
    "hypot": _libdevice("hypot", 2, math.hypot),
    "copysign": _libdevice("copysign", 2, math.copysign),
    "not_finite_on_cpu": Function(
        "_not_finite_on_cpu({0})",
        ATOM,
        (LOWEST,),
        lambda a: float(not math.isfinite(a)),
        "not isfinite({0}) on the CPU",
        helper=("return (a - a != 0.0) & _INTERPRETED",),
        reads=_INTERPRETED,
    ),
    "logaddexp": Function(
        "_logaddexp({0}, {1})", ATOM, (LOWEST, LOWEST), _log_add_exp, "log(exp({0}) + exp({1}))", True, _LOG_ADD_EXP
    ),
    "nextafter": _libdevice("nextafter", 2, math.nextafter),
    "erfcx": _libdevice("erfcx", 1, _unknown),
    "ndtri": _renamed("normcdfinv", "ndtri", 1),
    "i0": _renamed("cyl_bessel_i0", "i0", 1),
    "i1": _renamed("cyl_bessel_i1", "i1", 1),
    "bessel_j0": _renamed("j0", "bessel_j0", 1),
    "bessel_j1": _renamed("j1", "bessel_j1", 1),
    "bessel_y0": _renamed("y0", "bessel_y0", 1),
    "bessel_y1": _renamed("y1", "bessel_y1", 1),
    # tl.maximum and tl.minimum drop NaN unless told; torch keeps it.
    "maximum": _call("tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", 2, max, "max({0}, {1})"),
    "minimum": _call("tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", 2, min, "min({0}, {1})"),
    "maximum_int": _call("tl.maximum({0}, {1})", 2, max, "max({0}, {1})"),
    "minimum_int": _call("tl.minimum({0}, {1})", 2, min, "min({0}, {1})"),
    "where": _call("tl.where({0}, {1}, {2})", 3, _where, "where({0}, {1}, {2})"),
    "eq": Function("{0} == {1}", COMPARE, (BITOR, BITOR), lambda a, b: a == b),
    "ne": Function("{0} != {1}", COMPARE, (BITOR, BITOR), lambda a, b: a != b),
    "lt": Function("{0} < {1}", COMPARE, (BITOR, BITOR), lambda a, b: a < b),
    "le": Function("{0} <= {1}", COMPARE, (BITOR, BITOR), lambda a, b: a <= b),
    "gt": Function("{0} > {1}", COMPARE, (BITOR, BITOR), lambda a, b: a > b),
    "ge": Function("{0} >= {1}", COMPARE, (BITOR, BITOR), lambda a, b: a >= b),
    "and": Function("{0} & {1}", BITAND, (BITAND, SHIFT), lambda a, b: bool(a) and bool(b), "{0} and {1}"),
    "or": Function("{0} | {1}", BITOR, (BITOR, SHIFT), lambda a, b: bool(a) or bool(b), "{0} or {1}"),
    "xor": Function("{0} ^ {1}", BITOR, (BITAND, BITAND), lambda a, b: bool(a) != bool(b)),
    "not": Function("{0} == 0", COMPARE, (BITOR,), lambda a: not a, "not {0}"),
    "floordiv_int": Function("{0} // {1}", DIVISION, (PRODUCT, UNARY), lambda a, b: a // b),
    # Integers; // and % of Triton round to zero, as in C.
    "truncdiv_int": Function("{0} // {1}", DIVISION, (PRODUCT, UNARY), _unknown, "trunc({0} / {1})"),
    "rest_int": Function("{0} % {1}", DIVISION, (PRODUCT, UNARY), _unknown, "fmod({0}, {1})"),
    "bit_and": Function("{0} & {1}", BITAND, (BITAND, SHIFT), lambda a, b: int(a) & int(b)),
    "bit_or": Function("{0} | {1}", BITOR, (BITOR, BITAND), lambda a, b: int(a) | int(b)),
    "bit_xor": Function("{0} ^ {1}", BITOR, (BITAND, BITAND), lambda a, b: int(a) ^ int(b)),
    "bit_not": Function("~{0}", UNARY, (UNARY,), lambda a: ~int(a)),
    "shift_left": Function("{0} << {1}", SHIFT, (SHIFT, SUM), _unknown),
    "shift_right": Function("{0} >> {1}", SHIFT, (SHIFT, SUM), _unknown),
    "identity": Function("{0}", ATOM, (LOWEST,), float),  # the same number, stored in another dtype
    # of indices alone
    "mod_int": Function("{0} % {1}", DIVISION, (PRODUCT, UNARY), lambda a, b: a % b),
    "cdiv": _call("tl.cdiv({0}, {1})", 2, lambda a, b: -(-a // b)),
    "to_int1": Function("{0}.to(tl.int1)", ATOM, (ATOM,), bool),
    "to_float16": Function("{0}.to(tl.float16)", ATOM, (ATOM,), float, "{0}"),
    "to_bfloat16": Function("{0}.to(tl.bfloat16)", ATOM, (ATOM,), float, "{0}"),
    "to_float32": Function("{0}.to(tl.float32)", ATOM, (ATOM,), float, "{0}"),
    "to_float64": Function("{0}.to(tl.float64)", ATOM, (ATOM,), float, "{0}"),
    "to_tf32": Function("_to_tf32({0})", ATOM, (LOWEST,), float, "tf32({0})", helper=_TO_TF32),
    "to_int32": Function("{0}.to(tl.int32)", ATOM, (ATOM,), int, "{0}"),
    "to_int64": Function("{0}.to(tl.int64)", ATOM, (ATOM,), int, "{0}"),
    "offset": Function("{0}.to(tl.int64)", ATOM, (ATOM,), int, "{0}"),  # where the kernel's offsets have 64 bits
    "to_int16": Function("{0}.to(tl.int16)", ATOM, (ATOM,), int, "{0}"),
    "to_int8": Function("{0}.to(tl.int8)", ATOM, (ATOM,), int, "{0}"),
    "to_uint8": Function("{0}.to(tl.uint8)", ATOM, (ATOM,), int, "{0}"),
    "to_bool": Function("{0} != 0", COMPARE, (BITOR,), bool, "{0} != 0"),
    "to_float8_e4m3fn": _float8(torch.float8_e4m3fn, "float8e4nv", _TO_FLOAT8_E4M3FN),
    "to_float8_e5m2": _float8(torch.float8_e5m2, "float8e5", _TO_FLOAT8_E5M2),
}


def least_precedences(function: str, floats: bool) -> tuple[int, ...]:
    """For each operand of ``function``, the least precedence at which it needs no parentheses. Of ``floats``, a + (b - c) keeps them: a + b - c rounds otherwise.

    ``x + (x.round() - x)`` is a whole number; (x + x.round()) - x is not.
    """
    return (SUM, PRODUCT) if function == "add" and floats else FUNCTIONS[function].inner


def wrap(text: str, precedence: int, least: int) -> str:
    """``text`` in parentheses if its precedence is below what the place around it needs."""
    return text if precedence >= least else f"({text})"


def literal(number: float | int | bool) -> str:
    """A number as it stands in a Triton kernel."""
    if isinstance(number, bool):
        return str(number)
    if isinstance(number, float) and not math.isfinite(number):
        return 'float("nan")' if math.isnan(number) else f'float("{"-" if number < 0 else ""}inf")'
    return repr(number)


#: Half precision, and the function that rounds to each.
TO_HALF = {torch.float16: "to_float16", torch.bfloat16: "to_bfloat16"}
