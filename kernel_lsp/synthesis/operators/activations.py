"""Activation functions."""

from __future__ import annotations

import math

import torch

from ..graph.build import Build, opmath
from ..graph.value import Pointwise, Value
from .elementwise import clamp
from .registry import lowers


@lowers("aten.relu", about="max(x, 0)")
def relu(x: Value, *, out: torch.dtype) -> Value:
    """``where(x < 0, 0, x)``, which keeps NaN; of integers the maximum with 0."""
    if not out.is_floating_point:
        return Build.arithmetic("maximum_int", x, 0, result=out)
    # Written so that NaN stays NaN, as torch.relu keeps it.
    value = Build.pointwise("where", Build.comparison("lt", x, 0.0), 0.0, x, dtype=out)
    value.meaning = ("relu", (x,))
    return value


@lowers("aten.silu", about="x * sigmoid(x)", formula="silu(v) = v * sigmoid(v)")
def silu(x: Value, *, out: torch.dtype) -> Value:
    """One multiplication by ``sigmoid``, in ``out``'s opmath.

    Source: Elfwing, Uchibe and Doya, Sigmoid-Weighted Linear Units, 2017.
    """
    value = Build.arithmetic("mul", x, Build.pointwise("sigmoid", x), result=out)
    value.meaning = ("silu", (x,))
    return value


@lowers(
    "aten.gelu",
    formula=(
        "gelu(v) = v * (1 + erf(v / sqrt(2))) / 2",
        "gelu_tanh(v) = v * sigmoid(2 * sqrt(2 / pi) * (v + 0.044715 * v^3))",
    ),
)
def gelu(x: Value, approximate: str = "none", *, out: torch.dtype) -> Value:
    """x * Phi(x); the tanh form as x * sigmoid(2u), since (1 + tanh u) / 2 = sigmoid(2u).

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
    """
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


@lowers("aten.leaky_relu", about="x, or slope * x where x is negative")
def leaky_relu(x: Value, slope: float = 0.01, *, out: torch.dtype) -> Value:
    """``where(x > 0, x, slope * x)``."""
    scaled = Build.pointwise("mul", x, slope)
    value = Build.pointwise("where", Build.comparison("gt", x, 0.0), x, scaled, dtype=out)
    value.meaning = ("leaky_relu", (x,))
    return value


@lowers("aten.prelu", "aten._prelu_kernel", about="leaky_relu with a slope for each channel")
def prelu(x: Value, weight: Value, *, out: torch.dtype) -> Value:
    """``weight`` has one element or as many as ``x`` [N, C, ...] has channels."""
    if len(weight.shape) == 1 and len(x.shape) > 2:
        for _ in range(len(x.shape) - 2):
            weight = Build.unsqueeze(weight, len(weight.shape))
    return Build.pointwise("where", Build.comparison("gt", x, 0.0), x, Build.pointwise("mul", x, weight), dtype=out)


@lowers("aten.elu", about="x, or alpha * (exp(x) - 1) where x is negative")
def elu(x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0, *, out: torch.dtype) -> Value:
    """``scale * where(x > 0, x, alpha * expm1(input_scale * x))``, torch's general form of elu, selu and celu.

    Source: Clevert, Unterthiner and Hochreiter, Exponential Linear Units, 2015.
    """
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


@lowers("aten.selu", about="elu with the constants of self-normalising networks")
def selu(x: Value, *, out: torch.dtype) -> Value:
    """elu with alpha 1.67326 and scale 1.05070.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.
    """
    value = elu(x, 1.6732632423543772, 1.0507009873554805, out=out)
    value.meaning = ("selu", (x,))
    return value


@lowers("aten.hardtanh", about="x within limits")
def hardtanh(x: Value, low: float = -1.0, high: float = 1.0, *, out: torch.dtype) -> Value:
    """``clamp``, shown as hardtanh in formulas."""
    value = clamp(x, float(low), float(high), out=out)
    value.meaning = ("hardtanh", (x,))
    return value


@lowers("aten.relu6", about="x from 0 to 6")
def relu6(x: Value, *, out: torch.dtype) -> Value:
    """hardtanh from 0 to 6."""
    return hardtanh(x, 0.0, 6.0, out=out)


@lowers("aten.hardsigmoid", about="x / 6 + 1/2 from 0 to 1")
def hardsigmoid(x: Value, *, out: torch.dtype) -> Value:
    """``clamp(x / 6 + 1/2, 0, 1)``; NaN stays NaN."""
    value = clamp(Build.pointwise("add", Build.pointwise("mul", x, 1.0 / 6.0), 0.5), 0.0, 1.0, out=out)
    value.meaning = ("hardsigmoid", (x,))
    return value


@lowers("aten.hardswish", about="x * hardsigmoid(x)")
def hardswish(x: Value, *, out: torch.dtype) -> Value:
    """``x * hardsigmoid(x)``, the gate in ``out``'s opmath.

    Source: Howard et al., Searching for MobileNetV3, 2019.
    """
    gate = hardsigmoid(x, out=opmath(out))
    gate.meaning = None
    value = Build.arithmetic("mul", x, gate, result=out)
    value.meaning = ("hardswish", (x,))
    return value


def _softplus(x: Value) -> Value:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which neither overflows nor loses small results."""
    tail = Build.pointwise("log1p", Build.pointwise("exp", Build.pointwise("neg", Build.pointwise("abs", x))))
    return Build.pointwise("add", Build.pointwise("maximum", x, 0.0), tail)


@lowers("aten.softplus", about="log(1 + exp(beta * x)) / beta")
def softplus(x: Value, beta: float = 1.0, threshold: float = 20.0, *, out: torch.dtype) -> Value:
    """``x`` itself where ``beta * x`` is above ``threshold``, as torch has it."""
    scaled = x if beta == 1 else Build.pointwise("mul", x, float(beta))
    smooth = _softplus(scaled)
    if beta != 1:
        smooth = Build.pointwise("div", smooth, float(beta))
    value = Build.pointwise("where", Build.comparison("gt", scaled, float(threshold)), x, smooth, dtype=out)
    value.meaning = ("softplus", (x,))
    return value


def _mish_gate(x: Value, out: torch.dtype) -> Value:
    """tanh(log(1 + exp(x))) as n / (n + 2) with n = e * (e + 2) and e = exp(x), without a logarithm; 1 from x = 20 on."""
    e = Build.pointwise("exp", Build.pointwise("minimum", x, 20.0))
    n = Build.pointwise("mul", e, Build.pointwise("add", e, 2.0))
    return Build.arithmetic("div", n, Build.pointwise("add", n, 2.0), result=out)


@lowers("aten.mish", about="x * tanh(softplus(x))")
def mish(x: Value, *, out: torch.dtype) -> Value:
    """``_mish_gate`` times x, the gate in ``out``'s opmath.

    Source: Misra, Mish, 2019.
    """
    value = Build.arithmetic("mul", x, _mish_gate(x, opmath(out)), result=out)
    value.meaning = ("mish", (x,))
    return value


@lowers("aten.tanh", about="tanh(x); of a softplus as in mish")
def tanh(x: Value, *, out: torch.dtype) -> Value:
    """libdevice's function, but for a ``mish`` that is written out: there two functions of libdevice would cost more than the rest."""
    base = _argument_of_softplus(x)
    if base is None or not out.is_floating_point:
        return Build.arithmetic("tanh", x, result=out)
    value = _mish_gate(base, out)
    value.meaning = ("tanh", (x,))
    return value


def _argument_of_softplus(value: Value) -> Value | None:
    """x where ``value`` is log(1 + exp(x)), up to an x from which on the hyperbolic tangent of either is 1; else None."""
    if not isinstance(value.op, Pointwise) or value.meaning is None or value.meaning[0] != "softplus":
        return None
    (base,) = value.meaning[1]
    condition = value.op.operands[0]
    assert isinstance(condition, Value) and isinstance(condition.op, Pointwise)
    compared, threshold = condition.op.operands
    return base if compared is base and isinstance(threshold, float) and threshold >= 20.0 else None


@lowers("aten.log_sigmoid", about="log(sigmoid(x))")
def log_sigmoid(x: Value, *, out: torch.dtype) -> Value:
    """min(x, 0) - log1p(exp(-|x|))."""
    tail = Build.pointwise("log1p", Build.pointwise("exp", Build.pointwise("neg", Build.pointwise("abs", x))))
    value = Build.arithmetic("sub", Build.pointwise("minimum", x, 0.0), tail, result=out)
    value.meaning = ("log_sigmoid", (x,))
    return value


@lowers("aten.celu", about="x, or alpha * (exp(x / alpha) - 1) where x is negative")
def celu(x: Value, alpha: float = 1.0, *, out: torch.dtype) -> Value:
    """elu with ``input_scale`` 1 / alpha.

    Source: Barron, Continuously Differentiable Exponential Linear Units, 2017.
    """
    return elu(x, alpha, 1.0, 1.0 / alpha, out=out)
