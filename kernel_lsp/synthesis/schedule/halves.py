"""float32 as two halves in float16, for products of a recurrence.

float32 is multiplied as three products of a high and a low half: high * high, high * low and low * high. The halves are
float16, which have 22 bits of a number, the low one times 2^11, so that it does not vanish. What they are taken of is divided by
the largest of its row, weights once and a state before each product; a state that no step makes larger than 1 is left as it is. See
Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
performance" (2022).
"""

from __future__ import annotations

import math

import torch

from ..kernel.arguments import Arguments
from ..kernel.ir import Apply, Axis, Expr, FoldAxis, Number, Ref, apply
from ..kernel.statements import Set, Statement

#: what a low half in float16 is multiplied by: 2^11, one more than it has bits after the first
RAISED = 2048
#: the constant of a launch that says so
SPLIT = "SPLIT"
#: what a kernel says of its halves where it makes the first
PLANES = (
    "float32 as two float16 planes, high + low / SPLIT: 22 bits of a number, in three products (low times low is left out). "
    "The weight is split once, before the first step. Its rows are divided by their largest finite number, which keeps them in the range of float16."
)


def assigned(arguments: Arguments, name: str, value: Expr, statements: list[Statement]) -> Ref:
    """A new variable with a value in float32."""
    found = Ref(arguments.variable(name), value.axes, torch.float32)
    statements.append(Set(found.variable, value))
    return found


def largest(value: Expr, along: Axis, place: int) -> FoldAxis:
    """The largest magnitude along an axis, of what is finite there."""
    size = Apply("abs", (value,), torch.float32)
    finite = Apply("where", (apply("lt", size, Number(math.inf), dtype=torch.bool), size, Number(0.0)), torch.float32)
    return FoldAxis("max", finite, along, place, True, False, torch.float32)


def one_for_none(arguments: Arguments, name: str, most: Expr, statements: list[Statement]) -> Ref:
    """A variable with the largest magnitude, 1 where it is 0."""
    found = assigned(arguments, name, most, statements)
    some = apply("gt", found, Number(0.0), dtype=torch.bool)
    statements.append(Set(found.variable, Apply("where", (some, found, Number(1.0)), torch.float32)))
    return found


def halves(arguments: Arguments, value: Expr, name: str, split: Expr, statements: list[Statement]) -> tuple[Ref, Ref]:
    """The low and the high half of float32 in float16, the low one times ``split``, which is ``RAISED``."""
    if not isinstance(value, Ref):
        value = assigned(arguments, f"{name}_scaled", value, statements)
    high = Ref(arguments.variable(f"{name}_high"), value.axes, torch.float16)
    low = Ref(arguments.variable(f"{name}_low"), value.axes, torch.float16)
    rest = apply("sub", value, Apply("to_float32", (high,), torch.float32), dtype=torch.float32)
    raised = apply("mul", rest, split, dtype=torch.float32)
    statements.append(Set(high.variable, Apply("to_float16", (value,), torch.float16)))
    statements.append(Set(low.variable, Apply("to_float16", (raised,), torch.float16)))
    return low, high
