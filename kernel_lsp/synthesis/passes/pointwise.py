"""Convolutions of one element: products whose left operand is read in float32, as it lies in memory, and rounded to float16 in the tile.

No kernel goes over the input before the product: that costs as much as a product that waits for memory. The elements of a channel follow each
other in memory, and so do the rows of a tile. Tensor cores take the rounded operand from registers.

To note the largest magnitude on the way takes more registers and a second look at the tile (docs/performance.md). So the product's kernel looks at
its sums, which are not finite where an element was rounded to infinity, and at some elements (``Sample``).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..graph.build import Build
from ..graph.lowered import Graph
from ..graph.map import Map, dim, dims
from ..graph.names import variable_name
from ..graph.order import topological
from ..graph.sizes import ONE, ZERO
from ..graph.value import Contract, Exact, Sample, Value, View
from .layout import LEAST_CHANNELS, LEAST_PEAK, MOST_PEAK, is_pointwise
from .peaks import peak_of


def rounded_in_tiles(graph: Graph, worthwhile: Callable[[Contract, Contract], bool]) -> int:
    """Rewrite the float32 convolutions of one element for which it is ``worthwhile``, given what they are and what they would become.

    Returns how many there were.
    """
    halves: dict[Value, Value] = {}
    count = 0
    for value in topological(graph.outputs):
        op = value.op
        if isinstance(op, Contract) and (found := _rounded(op, halves)) is not None and worthwhile(op, found):
            value.op = found
            count += 1
    return count


def _rounded(op: Contract, halves: dict[Value, Value]) -> Contract | None:
    """The product of the operands in float16; None where ``op`` is no such convolution in float32 of enough channels.

    The letters are those of ``Build.convolve``, as in ``layout.py``.
    """
    if op.left.dtype != torch.float32 or op.right.dtype != torch.float32 or op.tf32 or not is_pointwise(op):
        return None
    channels = op.size("c")
    if not (channels.is_number and channels >= LEAST_CHANNELS):
        return None
    assert isinstance(op.right.op, View)
    x = op.right.op.operand
    places = [letter for letter in op.right_axes if letter in op.axes and letter not in op.left_axes]
    left_axes = "".join([*places, "c"])
    map = _without_ones(op.right.op.map, op.right_axes, left_axes)
    seen = Build.view(_in_float16(x, halves), map, "select")
    packed = Build.view(op.left, _without_ones(_whole(op.left), op.left_axes, "oc"), "reshape", same_meaning=True)
    packed = Build.pointwise("to_float16", packed, dtype=torch.float16, name=f"{variable_name(op.left)}_packed")
    sample = Value(Sample(Build.view(x, map, "select")), (ONE,), torch.float32, f"{variable_name(x)}_sample")
    exact = Exact(op, (sample, peak_of(packed)), LEAST_PEAK, MOST_PEAK, tf32=True)
    return Contract(seen, packed, left_axes, "oc", op.axes, exact=exact)


def _in_float16(x: Value, halves: dict[Value, Value]) -> Value:
    """``x`` in float16. Of views what lies in memory is rounded, so that a kernel can do so where it reads that."""
    if x not in halves:
        if isinstance(x.op, View) and not x.op.map.guard:
            halves[x] = Build.view(_in_float16(x.op.operand, halves), x.op.map, x.op.name)
        else:
            halves[x] = Build.pointwise("to_float16", x, dtype=torch.float16, name=f"{variable_name(x)}_half")
    return halves[x]


def _whole(value: Value) -> Map:
    return Map(value.shape, value.shape, dims(len(value.shape)))


def _without_ones(map: Map, axes: str, left: str) -> Map:
    """``map``, whose dimensions are ``axes``, with those of ``left`` alone, in their order; the others have size one."""
    place = {dim(d): dim(left.index(letter)) if letter in left else ZERO for d, letter in enumerate(axes)}
    shape = tuple(map.shape[axes.index(letter)] for letter in left)
    return Map(shape, map.operand, tuple(e.xreplace(place) for e in map.index))
