"""Elementwise operators: arithmetic, comparisons, activations, conversions."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..graph.build import Build, NotLowered, Operand, opmath
from ..graph.value import Pointwise, Value

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
    "tanh",
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
    def lower(x: Value, *, out: torch.dtype) -> Value:
        if function in ("neg", "abs", "floor", "ceil", "trunc") and not out.is_floating_point:
            if function in ("neg", "abs"):
                return Build.arithmetic(function, x, result=out)
            return x
        return Build.arithmetic(function, x, result=out)

    return lower


def _scaled(x: Operand, alpha: Any, out: torch.dtype) -> Operand:
    return x if alpha == 1 else Build.arithmetic("mul", x, alpha, result=out)


def add(x: Operand, y: Operand, *, alpha: Any = 1, out: torch.dtype) -> Value:
    if out == torch.bool:
        return Build.pointwise("or", x, y, dtype=out)
    return Build.arithmetic("add", x, _scaled(y, alpha, out), result=out)


def sub(x: Operand, y: Operand, *, alpha: Any = 1, out: torch.dtype) -> Value:
    return Build.arithmetic("sub", x, _scaled(y, alpha, out), result=out)


def rsub(x: Operand, y: Operand, alpha: Any = 1, *, out: torch.dtype) -> Value:
    return Build.arithmetic("sub", y, _scaled(x, alpha, out), result=out)


def mul(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    if out == torch.bool:
        return Build.pointwise("and", x, y, dtype=out)
    return Build.arithmetic("mul", x, y, result=out)


def div(x: Operand, y: Operand, *, rounding_mode: str | None = None, out: torch.dtype) -> Value:
    if rounding_mode is None:
        return Build.arithmetic("div", x, y, result=out)
    if not out.is_floating_point:
        raise NotLowered("integer division with rounding")
    exact = Build.arithmetic("div", x, y, result=out)
    return Build.arithmetic("floor" if rounding_mode == "floor" else "trunc", exact, result=out)


def power(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    """Small integer and half-integer exponents become products and roots, as one would write them."""
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


def reciprocal(x: Value, *, out: torch.dtype) -> Value:
    return Build.arithmetic("div", 1.0, x, result=out)


def square(x: Value, *, out: torch.dtype) -> Value:
    return Build.arithmetic("mul", x, x, result=out)


def sign(x: Value, *, out: torch.dtype) -> Value:
    x = Build.cast(x, out)
    neither = 0.0 if out.is_floating_point else x  # of NaN it is 0, too
    below = Build.pointwise("where", Build.comparison("lt", x, 0.0), -1.0, neither, dtype=out)
    return Build.pointwise("where", Build.comparison("gt", x, 0.0), 1.0, below, dtype=out)


def compare(function: str) -> Any:
    return lambda x, y, *, out: Build.comparison(function, x, y)


def logical(function: str) -> Any:
    def lower(*operands: Operand, out: torch.dtype) -> Value:
        booleans = [Build.cast(v, torch.bool) for v in operands]
        return Build.pointwise(function, *booleans, dtype=torch.bool)

    return lower


def bitwise(function: str) -> Any:
    def lower(*operands: Operand, out: torch.dtype) -> Value:
        if out != torch.bool:
            raise NotLowered("bitwise operators on integers")
        return Build.pointwise(function, *operands, dtype=out)

    return lower


def where(condition: Value, x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    return Build.pointwise("where", condition, Build.cast(x, out), Build.cast(y, out), dtype=out)


def masked_fill(x: Value, mask: Value, value: Operand, *, out: torch.dtype) -> Value:
    return Build.pointwise("where", mask, Build.cast(value, out), Build.cast(x, out), dtype=out)


def maximum(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    return Build.arithmetic("maximum" if out.is_floating_point else "maximum_int", x, y, result=out)


def minimum(x: Operand, y: Operand, *, out: torch.dtype) -> Value:
    return Build.arithmetic("minimum" if out.is_floating_point else "minimum_int", x, y, result=out)


def clamp(x: Value, low: Any = None, high: Any = None, *, out: torch.dtype) -> Value:
    if low is not None:
        x = maximum(x, low, out=out)
    if high is not None:
        x = minimum(x, high, out=out)
    return x


def cast(x: Value, *_: Any, out: torch.dtype, **__: Any) -> Value:
    result = Build.cast(x, out)
    assert isinstance(result, Value)
    if result.dtype == out:
        return result
    # The same number inside a kernel; half precisions are rounded where it is stored.
    return Value(Pointwise("identity", (result,)), x.shape, out, x.name, x.meaning)


# --- activations ------------------------------------------------------------------------------------------------


def relu(x: Value, *, out: torch.dtype) -> Value:
    if not out.is_floating_point:
        return Build.arithmetic("maximum_int", x, 0, result=out)
    # Written so that NaN stays NaN, as torch.relu keeps it.
    value = Build.pointwise("where", Build.comparison("lt", x, 0.0), 0.0, x, dtype=out)
    value.meaning = ("relu", (x,))
    return value


def silu(x: Value, *, out: torch.dtype) -> Value:
    value = Build.arithmetic("mul", x, Build.pointwise("sigmoid", x), result=out)
    value.meaning = ("silu", (x,))
    return value


def gelu(x: Value, approximate: str = "none", *, out: torch.dtype) -> Value:
    """x * Phi(x); the tanh form as x * sigmoid(2u), since (1 + tanh u) / 2 = sigmoid(2u)."""
    if approximate == "tanh":
        cubic = Build.pointwise("mul", Build.pointwise("mul", Build.pointwise("mul", x, x), x), 0.044715)
        inner = Build.pointwise("add", x, cubic)
        twice = Build.pointwise("mul", inner, 2.0 * math.sqrt(2.0 / math.pi))
        value = Build.arithmetic("mul", x, Build.pointwise("sigmoid", twice), result=out)
        value.meaning = ("gelu_tanh", (x,))
        return value
    cdf = Build.pointwise("add", Build.pointwise("erf", Build.pointwise("mul", x, math.sqrt(0.5))), 1.0)
    value = Build.arithmetic("mul", Build.pointwise("mul", x, 0.5), cdf, result=out)
    value.meaning = ("gelu", (x,))
    return value


def leaky_relu(x: Value, slope: float = 0.01, *, out: torch.dtype) -> Value:
    scaled = Build.pointwise("mul", x, slope)
    value = Build.pointwise("where", Build.comparison("gt", x, 0.0), x, scaled, dtype=out)
    value.meaning = ("leaky_relu", (x,))
    return value


def prelu(x: Value, weight: Value, *, out: torch.dtype) -> Value:
    if len(weight.shape) == 1 and len(x.shape) > 2:
        for _ in range(len(x.shape) - 2):
            weight = Build.unsqueeze(weight, len(weight.shape))
    return Build.pointwise("where", Build.comparison("gt", x, 0.0), x, Build.pointwise("mul", x, weight), dtype=out)


def elu(x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0, *, out: torch.dtype) -> Value:
    inner = x if input_scale == 1 else Build.pointwise("mul", x, input_scale)
    negative: Value = Build.pointwise("expm1", inner)
    positive = x
    if alpha * scale != 1:
        negative = Build.pointwise("mul", negative, float(alpha * scale))
    if scale != 1:
        positive = Build.pointwise("mul", x, float(scale))
    value = Build.pointwise("where", Build.comparison("gt", x, 0.0), positive, negative, dtype=out)
    value.meaning = ("elu", (x,))
    return value


def selu(x: Value, *, out: torch.dtype) -> Value:
    value = elu(x, 1.6732632423543772, 1.0507009873554805, out=out)
    value.meaning = ("selu", (x,))
    return value


def hardtanh(x: Value, low: float = -1.0, high: float = 1.0, *, out: torch.dtype) -> Value:
    value = clamp(x, float(low), float(high), out=out)
    value.meaning = ("hardtanh", (x,))
    return value


def relu6(x: Value, *, out: torch.dtype) -> Value:
    return hardtanh(x, 0.0, 6.0, out=out)


def hardsigmoid(x: Value, *, out: torch.dtype) -> Value:
    value = clamp(Build.pointwise("add", Build.pointwise("mul", x, 1.0 / 6.0), 0.5), 0.0, 1.0, out=out)
    value.meaning = ("hardsigmoid", (x,))
    return value


def hardswish(x: Value, *, out: torch.dtype) -> Value:
    gate = hardsigmoid(x, out=opmath(out))
    gate.meaning = None
    value = Build.arithmetic("mul", x, gate, result=out)
    value.meaning = ("hardswish", (x,))
    return value


def _softplus(x: Value) -> Value:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which neither overflows nor loses small results."""
    tail = Build.pointwise("log1p", Build.pointwise("exp", Build.pointwise("neg", Build.pointwise("abs", x))))
    return Build.pointwise("add", Build.pointwise("maximum", x, 0.0), tail)


def softplus(x: Value, beta: float = 1.0, threshold: float = 20.0, *, out: torch.dtype) -> Value:
    scaled = x if beta == 1 else Build.pointwise("mul", x, float(beta))
    smooth = _softplus(scaled)
    if beta != 1:
        smooth = Build.pointwise("div", smooth, float(beta))
    value = Build.pointwise("where", Build.comparison("gt", scaled, float(threshold)), x, smooth, dtype=out)
    value.meaning = ("softplus", (x,))
    return value


def mish(x: Value, *, out: torch.dtype) -> Value:
    value = Build.arithmetic("mul", x, Build.pointwise("tanh", _softplus(x)), result=out)
    value.meaning = ("mish", (x,))
    return value


def log_sigmoid(x: Value, *, out: torch.dtype) -> Value:
    """min(x, 0) - log1p(exp(-|x|))."""
    tail = Build.pointwise("log1p", Build.pointwise("exp", Build.pointwise("neg", Build.pointwise("abs", x))))
    value = Build.arithmetic("sub", Build.pointwise("minimum", x, 0.0), tail, result=out)
    value.meaning = ("log_sigmoid", (x,))
    return value


def addcmul(x: Value, a: Value, b: Value, *, value: float = 1.0, out: torch.dtype) -> Value:
    product: Operand = Build.arithmetic("mul", a, b, result=out)
    return Build.arithmetic("add", x, _scaled(product, value, out), result=out)


def lerp(x: Value, y: Value, weight: Operand, *, out: torch.dtype) -> Value:
    step = Build.arithmetic("mul", Build.pointwise("sub", y, x), weight, result=out)
    return Build.arithmetic("add", x, step, result=out)


def isnan(x: Value, *, out: torch.dtype) -> Value:
    return Build.comparison("ne", x, x)


OPERATORS: dict[str, Any] = {
    **{f"aten.{name}": unary(name) for name in _UNARY},
    **{f"aten.{name}": compare(name) for name in _COMPARE},
    "aten.add": add,
    "aten.sub": sub,
    "aten.rsub": rsub,
    "aten.mul": mul,
    "aten.div": div,
    "aten.pow": power,
    "aten.multiply": mul,
    "aten.subtract": sub,
    "aten.divide": div,
    "aten.true_divide": div,
    "aten.reciprocal": reciprocal,
    "aten.square": square,
    "aten.sign": sign,
    "aten.where": where,
    "aten.masked_fill": masked_fill,
    "aten.maximum": maximum,
    "aten.minimum": minimum,
    "aten.clamp": clamp,
    "aten.clamp_min": lambda x, low, *, out: clamp(x, low, out=out),
    "aten.clamp_max": lambda x, high, *, out: clamp(x, None, high, out=out),
    "aten.atan2": lambda x, y, *, out: Build.arithmetic("atan2", x, y, result=out),
    "aten.logical_and": logical("and"),
    "aten.logical_or": logical("or"),
    "aten.logical_not": logical("not"),
    "aten.logical_xor": logical("xor"),
    "aten.bitwise_and": bitwise("and"),
    "aten.bitwise_or": bitwise("or"),
    "aten.bitwise_not": bitwise("not"),
    "aten.__and__": bitwise("and"),
    "aten.__or__": bitwise("or"),
    "aten.bitwise_xor": bitwise("xor"),
    "aten.to": cast,
    "aten._to_copy": cast,
    "aten.type_as": cast,
    "aten.float": cast,
    "prims.convert_element_type": cast,
    "aten.relu": relu,
    "aten.silu": silu,
    "aten.gelu": gelu,
    "aten.leaky_relu": leaky_relu,
    "aten.prelu": prelu,
    "aten._prelu_kernel": prelu,
    "aten.elu": elu,
    "aten.selu": selu,
    "aten.celu": lambda x, alpha=1.0, *, out: elu(x, alpha, 1.0, 1.0 / alpha, out=out),
    "aten.hardtanh": hardtanh,
    "aten.relu6": relu6,
    "aten.hardsigmoid": hardsigmoid,
    "aten.hardswish": hardswish,
    "aten.softplus": softplus,
    "aten.mish": mish,
    "aten.log_sigmoid": log_sigmoid,
    "aten.addcmul": addcmul,
    "aten.lerp": lerp,
    "aten.isnan": isnan,
}
