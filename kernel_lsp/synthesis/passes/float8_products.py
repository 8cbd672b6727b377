"""Products of float8 numbers that were converted before: they run on tensor cores without a number more rounded.

``x8.to(torch.float32) @ w8.to(torch.float32)`` is how an FP8 linear is written by hand. Every float8 is a float16 and a
bfloat16 as well (e4m3fn: 4 significant bits, 2^-9 to 448; e5m2: 3 bits, 2^-16 to 57344), so the products are the same numbers
whichever of them is multiplied. What differs is the sum:

- Where the result is rounded to half precision the float8 numbers themselves are multiplied, with sums that begin again now and
  then: their error is far below that rounding.
- A float32 result has float32's error, which tensor cores do not give for float8. They do for float16.

Scales that are multiplied in before the product are not exact; such products stay as they are.
"""

from __future__ import annotations

import torch

from ..graph.build import FLOAT8, Build
from ..graph.lowered import Graph
from ..graph.order import topological
from ..graph.value import Contract, Pointwise, Value, View


def unconverted_products(graph: Graph) -> int:
    """Let products of converted float8 numbers multiply these, or float16. Returns how many there were."""
    count = 0
    for value in topological(graph.outputs):
        op = value.op
        if not isinstance(op, Contract) or value.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            continue
        dtype = torch.float16 if value.dtype == torch.float32 else None
        left, right = _converted(op.left, dtype), _converted(op.right, dtype)
        if left is None or right is None:
            continue
        op.left, op.right, op.full_sums = left, right, dtype is not None
        count += 1
    return count


def of_float8(op: Contract) -> bool:
    """Whether what it multiplies are float8 numbers, in whichever dtype."""
    return op.full_sums or (op.left.dtype in FLOAT8 and op.right.dtype in FLOAT8)


def _converted(value: Value, dtype: torch.dtype | None) -> Value | None:
    """The float8 tensor that ``value`` has in another dtype, or is a view of, in ``dtype`` or as it is; None of all others."""
    op = value.op
    if isinstance(op, View) and not op.map.guard:
        beneath = _converted(op.operand, dtype)
        return None if beneath is None else Build.view(beneath, op.map, op.name, same_meaning=True)
    if not isinstance(op, Pointwise) or op.function not in ("to_float32", "identity"):
        return None
    (operand,) = op.operands
    if not isinstance(operand, Value):
        return None
    if operand.dtype not in FLOAT8:
        return _converted(operand, dtype)
    return operand if dtype is None else Build.pointwise("to_float16", operand, dtype=dtype)
