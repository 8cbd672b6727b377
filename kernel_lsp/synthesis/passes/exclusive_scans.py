"""Exclusive scans: a scan behind zeros is the scan of its operand behind zeros, so that it is stored where it is wanted.

``cat(zeros, cumsum(x))`` and ``pad(cumsum(x), before=1)`` would store the scan, and read it again to store it one place later.
"""

from __future__ import annotations

import dataclasses

import sympy
import torch

from ..graph import maps
from ..graph.build import Build
from ..graph.lowered import Graph
from ..graph.map import Map, dim
from ..graph.monoids import MONOIDS
from ..graph.order import order_of, topological
from ..graph.sizes import ZERO, same
from ..graph.value import Concat, Scan, Value, View, constant_of


def pad_operands(graph: Graph) -> int:
    """Pad the operands of scans whose results stand behind neutral elements, and are read nowhere else. Returns how many."""
    count = 0
    users = order_of(graph.outputs).users
    for value in topological(graph.outputs):
        shifted = _shifted(value)
        if shifted is None:
            continue
        scan, map = shifted
        if len(users[scan]) != 1 or scan in graph.outputs or scan in graph.updates.values():
            continue
        op = scan.op
        assert isinstance(op, Scan)
        value.op = dataclasses.replace(op, operand=Build.view(op.operand, map, "pad"))
        value.meaning = (MONOIDS[op.kind].scanned, (value.op.operand, op.dims))
        count += 1
    return count


def _shifted(value: Value) -> tuple[Value, Map] | None:
    """The scan that ``value`` has behind neutral elements, and it as a view of the scan; None where it is something else."""
    op = value.op
    if isinstance(op, Concat) and len(op.operands) == 2:
        before, scan = op.operands
        neutral = _neutral(scan, op.dim, value.dtype)
        if neutral is None or constant_of(before) != neutral:
            return None
        margins = tuple((before.shape[d] if d == op.dim else ZERO, ZERO) for d in range(len(scan.shape)))
        return scan, maps.pad(scan.shape, margins, neutral)
    if isinstance(op, View) and isinstance(op.operand.op, Scan):
        along = op.operand.op.dims[0]
        neutral = _neutral(op.operand, along, value.dtype)
        if neutral is not None and op.map.pad == neutral and _starts_later(op.map, along):
            return op.operand, op.map
    return None


def _neutral(value: Value, along: int, dtype: torch.dtype) -> float | None:
    """The element that changes nothing in ``value``; None where that is no scan along a dimension that gives ``dtype``."""
    op = value.op
    if not isinstance(op, Scan) or op.start is not None or op.dims != (along,) or value.dtype != dtype:
        return None
    return MONOIDS[op.kind].neutral


def _starts_later(map: Map, along: int) -> bool:
    """Whether a view is its operand with so many places before its first one along a dimension, and nothing is after its end."""
    if len(map.shape) != len(map.operand) or len(map.guard) != 1:
        return False
    shift = sympy.expand(dim(along) - map.index[along])
    others = all(e == dim(d) for d, e in enumerate(map.index) if d != along)
    alike = all(same(a, b) for d, (a, b) in enumerate(zip(map.shape, map.operand, strict=True)) if d != along)
    ((guarded, low, high),) = map.guard
    to_the_end = same(sympy.expand(shift + high), map.shape[along])
    return (
        others
        and alike
        and shift.is_number
        and shift > 0
        and guarded == map.index[along]
        and low == ZERO
        and to_the_end
    )
