"""Short running sums are added up in float64: exponentials of them have their error times what the sums come to.

The decays of a state space model are exp(s[i] - s[j]) of sums of some tens of numbers, in chunks of 64 or so. Such a kernel is bound by what
it loads and stores, and a sum that is rounded once is no further from the right one than eager's.
"""

from __future__ import annotations

import torch

from ..graph.build import Build
from ..graph.lowered import Graph
from ..graph.order import topological
from ..graph.value import Scan, Value

#: Elements up to which a scan is short: in float64 a thread holds twice as many registers.
LONGEST = 512


def add_in_float64(graph: Graph) -> int:
    """Have running sums of float32 of a known length up to ``LONGEST`` computed in float64, and rounded once. Returns how many."""
    count = 0
    for value in topological(graph.outputs):
        op = value.op
        if not isinstance(op, Scan) or op.kind != "sum" or op.start is not None or value.dtype != torch.float32:
            continue
        (along,) = op.dims
        length = op.operand.shape[along]
        if op.operand.dtype != torch.float32 or not length.is_number or length > LONGEST:
            continue
        whole = Value(Scan("sum", Build.cast(op.operand, torch.float64), op.dims), value.shape, torch.float64)
        value.op = Build.cast(whole, torch.float32).op
        count += 1
    return count
