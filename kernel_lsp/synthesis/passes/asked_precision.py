"""Products that are rounded because the user asked for it: the setting ``precision``, ``tf32`` or ``half``.

TF32 and float16 have the same ten bits of mantissa, as long as nothing leaves float16's range, which is looked at in every call
(``layout.py``). float16 is rounded to the nearest, and of TF32 bits are cut off: errors that add up where all products have one sign.
Sums stay in float32.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..graph.build import Build
from ..graph.lowered import Graph
from ..graph.map import dims
from ..graph.order import topological
from ..graph.value import Contract, Exact, Value
from .layout import LEAST_PEAK, MOST_PEAK
from .peaks import peak_of
from .planes import rearranged, repeats


def in_float16(graph: Graph, worthwhile: Callable[[Contract], bool]) -> int:
    """Round the operands of the float32 products that are ``worthwhile`` to float16 before them. Returns how many there were."""
    halves: dict[Value, Value] = {}
    count = 0
    for value in _products(graph):
        op = value.op
        assert isinstance(op, Contract)
        operands = (op.left, op.right)
        if op.convolves or any(repeats(operand, graph.hints) for operand in operands) or not worthwhile(op):
            continue
        left, right = (_half(operand, halves) for operand in operands)
        peaks = tuple(dict.fromkeys(peak_of(halves[rearranged(operand)[0]]) for operand in operands))
        exact = Exact(op, peaks, LEAST_PEAK, MOST_PEAK, tf32=True)
        value.op = Contract(left, right, op.left_axes, op.right_axes, op.axes, exact=exact)
        count += 1
    return count


def in_tf32(graph: Graph) -> int:
    """Let the other float32 products be rounded to TF32 where they are multiplied. Returns how many there were."""
    found = _products(graph)
    for value in found:
        assert isinstance(value.op, Contract)
        value.op.tf32 = True
    return len(found)


def _products(graph: Graph) -> list[Value]:
    return [
        value
        for value in topological(graph.outputs)
        if isinstance(value.op, Contract)
        and value.op.left.dtype == value.op.right.dtype == torch.float32
        and not value.op.tf32
    ]


def _half(operand: Value, halves: dict[Value, Value]) -> Value:
    """``operand`` in float16. Of a view, what it views is rounded, in the order in which it lies in memory."""
    base, view = rearranged(operand)
    if base not in halves:
        name = f"{base.name}_half" if base.name else ""
        halves[base] = Build.pointwise("to_float16", base, dtype=torch.float16, name=name)
    return halves[base] if view.index == dims(len(base.shape)) else Build.view(halves[base], view, "view")
