"""Convolutions by tensor cores: the input with its channels last and its padding written out, both operands in half precision.

Then a place of the window is a shift of all rows, the channels are summed in order of memory, and no element needs a
mask. float16 has the mantissa of TF32, in which torch convolves by default, so the errors are alike as long as nothing
leaves its range.

Of few channels the places along the window's last axis are summed in one step with them: they lie next to each other. The
channels become a multiple of four, with zeros, so that each place begins at an address from which eight bytes are read at once.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy
import torch

from ..graph.build import Build
from ..graph.division import bounds
from ..graph.map import Guard, Map, dim
from ..graph.names import variable_name
from ..graph.sizes import ZERO
from ..graph.value import Contract, Exact, Graph, Shape, Value, View, topological
from .peaks import peak_of

#: Channels below which the channels alone are too few for a step of a tensor core, which adds up 16 products.
_LEAST_CHANNELS = 16

#: Few channels become a multiple of so many.
_READ_TOGETHER = 4

#: The largest magnitude of a tensor of which float16 loses no more than TF32 does, relative to that magnitude: the largest
#: number it has; and where its spacing at zero, 2^-24, is an eighth of TF32's there. Much smaller numbers lose more.
_LEAST_PEAK, _MOST_PEAK = 2.0**-11, 65504.0


def channels_last(graph: Graph, worthwhile: Callable[[Contract, Contract], bool]) -> int:
    """Rewrite the float32 convolutions for which it is ``worthwhile``, given what they are and what they would become.

    Returns how many there were.
    """
    count = 0
    for value in topological(graph.outputs):
        op = value.op
        if isinstance(op, Contract) and (found := _convolution(op)) is not None and worthwhile(op, found):
            value.op = found
            count += 1
    return count


def in_tf32(graph: Graph) -> int:
    """Let the other float32 convolutions be rounded to TF32 where they are multiplied. Returns how many there were."""
    count = 0
    for value in topological(graph.outputs):
        op = value.op
        if isinstance(op, Contract) and op.convolves and op.left.dtype == op.right.dtype == torch.float32:
            op.tf32 = True
            count += 1
    return count


def _convolution(op: Contract) -> Contract | None:
    """The product over rounded operands; None where it is no convolution in float32 of as much as a step sums up.

    The letters are those of ``Build.convolve``: "o" and "c" for the channels, "n" for the batch, "g" for groups; the other summed ones
    go through a window.
    """
    if op.left.dtype != torch.float32 or op.right.dtype != torch.float32 or not isinstance(op.right.op, View):
        return None
    view, weight = op.right.op, op.left
    inside = "".join(letter for letter in op.summed if letter != "c")
    if not op.convolves or "c" not in op.summed or not inside:
        return None
    channels = op.size("c")
    if not channels.is_number:
        return None
    few = channels < _LEAST_CHANNELS
    outer, together = (inside[:-1], inside[-1] + "c") if few else (inside, "c")
    every = channels * sympy.prod([op.size(letter) for letter in inside])
    if every.is_number and every < _LEAST_CHANNELS:  # a size that varies counts as large
        return None
    wide = -(-channels // _READ_TOGETHER) * _READ_TOGETHER if few else channels
    padded = _written_out(view, op.right_axes.index("c"), wide)
    if padded is None:
        return None
    last, index = padded
    seen = op.right_axes.replace("c", "") + "c"
    windows = _reordered(view.map, op.right_axes, seen, last, index, wide)
    order = "".join([*(x for x in op.left_axes if x in op.axes and x != "o"), *outer, "o", *together])
    packed = Build.permute(weight, tuple(op.left_axes.index(letter) for letter in order))
    if wide != channels:
        shape = (*packed.shape[:-1], wide)
        index = tuple(dim(d) for d in range(len(shape)))
        packed = Build.view(packed, Map(shape, packed.shape, index, ((index[-1], ZERO, channels),), 0.0), "padded")
    packed = Build.pointwise("to_float16", packed, dtype=torch.float16, name=f"{variable_name(weight)}_packed")
    peaks = tuple(peak_of(v) for v in (last, packed))
    exact = Exact(op, peaks, _LEAST_PEAK, _MOST_PEAK, tf32=True)
    return Contract(windows, packed, seen, order, op.axes, outer=outer, exact=exact)


def _written_out(view: View, at: int, channels: sympy.Expr) -> tuple[Value, tuple[sympy.Expr, ...]] | None:
    """What is viewed, […, C, *spatial], as […, *reached, ``channels``] in float16 with 0 where windows leave it; and the index into
    that of the window's elements. ``at``: the dimension of the channels."""
    x, map = view.operand, view.map
    reached: list[sympy.Expr] = []
    shifts: list[sympy.Expr] = []
    for expr in map.index:
        ends = bounds(expr, map.ranges)
        if ends is None or map.pad not in (None, 0):
            return None
        shifts.append(sympy.expand(-ends[0]))
        reached.append(sympy.expand(ends[1] - ends[0] + 1))
    rank = len(x.shape)
    reached[at] = channels
    order = (*range(at), *range(at + 1, rank), at)
    shape: Shape = tuple(reached[d] for d in order)
    index = tuple(dim(order.index(d)) - shifts[d] for d in range(rank))
    guards: tuple[Guard, ...] = tuple(
        (index[d], ZERO, x.shape[d]) for d in range(at, rank) if shifts[d] != ZERO or reached[d] != x.shape[d]
    )
    moved = Build.view(x, Map(shape, x.shape, index, guards, 0.0 if guards else None), "channels_last")
    name = f"{x.name}_last" if x.name else ""
    last = Build.pointwise("to_float16", moved, dtype=torch.float16, name=name)
    return last, tuple(map.index[d] + shifts[d] for d in order)


def _reordered(
    map: Map, axes: str, order: str, last: Value, index: tuple[sympy.Expr, ...], channels: sympy.Expr
) -> Value:
    """The windows of ``last``, of which ``index`` is over the dimensions ``axes`` of ``map``, with their dimensions in ``order``."""
    place = {dim(d): dim(order.index(letter)) for d, letter in enumerate(axes)}
    sizes = dict(zip(axes, map.shape, strict=True)) | {"c": channels}
    left = (one for one in map.guard if one[0] not in map.index)  # the others are written out
    guard = tuple((expr.xreplace(place), low, high) for expr, low, high in left)
    shape = tuple(sizes[letter] for letter in order)
    moved = tuple(expr.xreplace(place) for expr in index)
    return Build.view(last, Map(shape, last.shape, moved, guard, 0.0 if guard else None), "window")
