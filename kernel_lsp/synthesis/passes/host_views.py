"""Views that torch takes of stored values, instead of a kernel that stores them."""

from __future__ import annotations

from ..graph.value import Contract, Partial, Pointwise, Recur, TorchCall, Value, View, operands, viewed

#: What is stored by steps of its own, never inside another kernel.
APART = TorchCall | Contract | Partial | Recur


def _of_all_steps(value: Value) -> bool:
    """Whether it is the steps of a recurrence, without what they began with, or those of one of its members."""
    names = []
    while isinstance(value.op, View):
        names.append(value.op.name)
        value = value.op.operand
    return isinstance(value.op, Recur) and value.op.each and names in (["slice"], ["select"], ["slice", "select"])


def filled(value: Value) -> bool:
    """Whether it is one number everywhere: what torch makes of that is contiguous, and some of its operators ask for it."""
    value = viewed(value)
    return isinstance(value.op, Pointwise) and not operands(value)


def on_host(value: Value, products: dict[Value, Value]) -> bool:
    """Whether a stored value is better a view that torch takes of another one than a kernel's own store.

    ``products``: the values that complete a matrix product.
    """
    op = value.op
    if isinstance(op, View) and op.name in ("slice", "select") and _of_all_steps(value):
        return True
    if not isinstance(op, View) or op.name not in ("permute", "reshape", "unsqueeze", "squeeze", "expand"):
        return False
    if value.dtype != op.operand.dtype:
        return False  # it is rounded where it is stored
    base = viewed(op.operand)
    if op.name in ("squeeze", "unsqueeze") and not isinstance(base.op, APART) and base not in products:
        return False  # the kernel stores the final shape itself
    if op.name != "reshape":
        return True
    below = op.operand
    while isinstance(below.op, View):
        if below.op.name not in ("reshape", "unsqueeze", "squeeze"):
            return False  # reshaping a permuted view copies; let the kernel write the final layout
        below = below.op.operand
    return True
