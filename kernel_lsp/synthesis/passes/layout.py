"""Convolutions by tensor cores: the input with its channels last and its padding written out, both operands in half precision.

Then a place of the window is a shift of all rows, the channels are summed in order of memory, and no element needs a
mask. float16 has the mantissa of TF32, in which torch convolves by default, so the errors are alike as long as nothing
leaves its range.
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

#: Channels below which the channels alone are too few for a step of a tensor core.
_LEAST_CHANNELS = 16

#: The largest magnitude of a tensor of which float16 loses no more than TF32 does, relative to that magnitude: the largest
#: number it has; and where its spacing at zero, 2^-24, is an eighth of TF32's there. Much smaller numbers lose more.
_LEAST_PEAK, _MOST_PEAK = 2.0**-11, 65504.0


def channels_last(graph: Graph, worthwhile: Callable[[Contract, Value], bool]) -> int:
    """Rewrite the float32 convolutions of enough channels that are ``worthwhile``, given with their input.

    Returns how many there were.
    """
    count = 0
    for value in topological(graph.outputs):
        if isinstance(value.op, Contract) and (found := _convolution(value.op)) is not None:
            assert isinstance(value.op.right.op, View)
            if worthwhile(value.op, value.op.right.op.operand):
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
    """The product over rounded operands; None where it is no convolution of many channels in float32.

    The letters are those of ``Build.convolve``: "o" and "c" for the channels, "n" for the batch; the other summed ones go through a window.
    """
    if op.left.dtype != torch.float32 or op.right.dtype != torch.float32 or not isinstance(op.right.op, View):
        return None
    view, weight = op.right.op, op.left
    inside = [letter for letter in op.summed if letter != "c"]
    if not op.convolves or "c" not in op.summed or "g" in op.axes or not inside:
        return None
    channels = op.size("c")
    if not channels.is_number or channels < _LEAST_CHANNELS:
        return None
    x = view.operand
    padded = _written_out(x, view.map)
    if padded is None:
        return None
    last, shifts = padded
    phases = [letter for letter in op.left_axes if letter in op.axes and letter != "o"]
    order = "".join([*phases, *inside, "o", "c"])
    packed = Build.permute(weight, tuple(op.left_axes.index(letter) for letter in order))
    packed = Build.pointwise("to_float16", packed, dtype=torch.float16, name=f"{variable_name(weight)}_packed")
    back = tuple(order.index(letter) for letter in op.left_axes)
    index = tuple(view.map.index[d] + shifts[d] for d in (0, *range(2, len(x.shape)), 1))
    guard = tuple(one for one in view.map.guard if one[0] not in view.map.index)  # the others are written out
    windows = Build.view(last, Map(view.map.shape, last.shape, index, guard, 0.0 if guard else None), "window")
    peaks = tuple(peak_of(v) for v in (last, packed))
    return Contract(
        windows,
        Build.permute(packed, back),
        op.right_axes,
        op.left_axes,
        op.axes,
        outer="".join(inside),
        exact=Exact(op, peaks, _LEAST_PEAK, _MOST_PEAK, tf32=True),
    )


def _written_out(x: Value, map: Map) -> tuple[Value, list[sympy.Expr]] | None:
    """``x`` [N, C, *spatial] as [N, *reached, C] in float16 with 0 where windows leave it; and by how much each dimension shifts."""
    reached: list[sympy.Expr] = []
    shifts: list[sympy.Expr] = []
    for expr in map.index:
        ends = bounds(expr, map.ranges)
        if ends is None or map.pad not in (None, 0):
            return None
        shifts.append(sympy.expand(-ends[0]))
        reached.append(sympy.expand(ends[1] - ends[0] + 1))
    rank = len(x.shape)
    order = (0, *range(2, rank), 1)
    shape: Shape = tuple(reached[d] for d in order)
    index = tuple(dim(order.index(d)) - shifts[d] for d in range(rank))
    guards: tuple[Guard, ...] = tuple(
        (index[d], ZERO, x.shape[d]) for d in range(2, rank) if shifts[d] != ZERO or reached[d] != x.shape[d]
    )
    moved = Build.view(x, Map(shape, x.shape, index, guards, 0.0 if guards else None), "channels_last")
    name = f"{x.name}_last" if x.name else ""
    return Build.pointwise("to_float16", moved, dtype=torch.float16, name=name), shifts
