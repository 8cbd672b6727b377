"""Elementwise operators, and tensors filled with one number.

Operators that torch tags as pointwise need no line here.
"""

from __future__ import annotations

from typing import Any

from .carry import Call, Carry, broadcast, require

#: reduction="none" of the losses
_NONE = 0


def elementwise(call: Call) -> Carry:
    """Tensors broadcast against each other from the right; the result has their common shape."""
    rank = len(call.shapes[0])
    require(all(len(shape) == rank for shape in call.shapes), f"{call.name}: its results differ in rank")
    return broadcast(call.tensors(), rank, call.name)


def filled(call: Call) -> Carry | None:
    """The same number everywhere: the size may depend on the symbol, the number must not."""
    for key in ("fill_value", "value"):
        require(call.symbol not in getattr(call.get(key), "free_symbols", ()), f"{call.name} computes with the size")
    for dim, n in enumerate(call.shapes[0]):
        if n == call.symbol:
            return Carry(dim)
    return None


def filled_like(call: Call) -> Carry | None:
    """As the tensor whose shape is taken: all elements are equal."""
    return call.first.carry


def loss(call: Call) -> Carry:
    """A loss that is not reduced is elementwise."""
    require(call["reduction"] == _NONE, f"{call.name} averages over everything")
    return elementwise(call)


def _prelu(call: Call) -> Carry:
    carry = call.only("self")
    weight = call["weight"]
    require(carry.dim != 1 or all(n == 1 for n in weight.shape), "aten.prelu: its weight is by channel")
    return carry


RULES: dict[str, Any] = {
    **{
        f"aten.{name}": elementwise
        for name in [
            *("add", "sub", "rsub", "mul", "div", "true_divide", "divide", "multiply", "subtract", "square"),
            *("where", "masked_fill", "clamp", "clip", "clamp_min", "clamp_max", "lerp", "addcmul", "addcdiv"),
            *("selu", "relu6", "celu", "mish", "silu", "hardswish", "hardtanh", "hardsigmoid", "softplus", "softsign"),
            *("log_sigmoid", "hardshrink", "softshrink", "tanhshrink", "threshold", "elu", "leaky_relu", "gelu"),
            *("to", "_to_copy", "clone", "contiguous", "alias", "detach", "detach_", "lift_fresh_copy", "type_as"),
            *("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout"),
            *("float_power", "arctan2", "nan_to_num", "isfinite", "isclose", "logical_and", "logical_or"),
        ]
    },
    **{f"aten.{name}": filled for name in ["zeros", "ones", "full", "new_zeros", "new_ones", "new_full"]},
    **{f"aten.{name}": filled_like for name in ["zeros_like", "ones_like", "full_like"]},
    **{
        f"aten.{name}": loss
        for name in ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div"]
    },
    "aten.binary_cross_entropy_with_logits": loss,
    "aten.soft_margin_loss": loss,
    "aten.prelu": _prelu,
}
