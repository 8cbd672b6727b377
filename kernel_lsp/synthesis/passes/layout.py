"""Convolutions by tensor cores: the input with its channels last and its padding written out, both operands in half precision.

Then a place of the window is a shift of all rows, the channels are summed in order of memory, and no element needs a
mask. float16 has the mantissa of TF32, in which torch convolves by default, so the errors of float32 operands that are
rounded to it are alike as long as nothing leaves its range. Operands in half precision are laid out anew as they are.

Of few channels the places along the window's last axis are summed in one step with them: they lie next to each other. The
channels become a multiple of four, with zeros, so that each place begins at an address from which eight bytes are read at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import sympy
import torch

from ..graph.build import Build
from ..graph.division import Quotient, bounds
from ..graph.functions import TO_HALF
from ..graph.lowered import Graph
from ..graph.map import Guard, Map, dim, dims
from ..graph.names import variable_name
from ..graph.order import order_of, topological
from ..graph.sizes import ONE, ZERO
from ..graph.value import Contract, Exact, Pointwise, Shape, Value, View, viewed
from . import planes as three
from .peaks import peak_of

#: Channels below which the channels alone are too few for a step of a tensor core, which adds up 16 products.
LEAST_CHANNELS = 16

#: Few channels become a multiple of so many.
_READ_TOGETHER = 4

#: The largest magnitude of a tensor of which float16 loses no more than TF32 does, relative to that magnitude: the largest
#: number it has; and where its spacing at zero, 2^-24, is an eighth of TF32's there. Much smaller numbers lose more.
LEAST_PEAK, MOST_PEAK = 2.0**-11, 65504.0

#: The function that rounds to the nearest number of TF32; up to how many elements a sum takes so few steps that its tiles may be rounded.
_NEAREST, _FEW_STEPS = "to_tf32", 64


def channels_last(
    graph: Graph,
    worthwhile: Callable[[Contract, Contract], bool],
    *,
    planes: bool = False,
    dtypes: tuple[torch.dtype, ...] = (torch.float32,),
) -> int:
    """Rewrite the convolutions of ``dtypes`` for which it is ``worthwhile``, given what they are and what they would become.

    ``planes``: two of each float32 operand, for its error (``planes.py``). Else those of one element are left to ``pointwise.py``, and those of
    half precision as they are. Returns how many there were.
    """
    count = 0
    for value in topological(graph.outputs):
        op = value.op
        if not isinstance(op, Contract) or op.left.dtype not in dtypes or (is_pointwise(op) and not planes):
            continue
        if (found := _convolution(op, planes)) is not None and worthwhile(op, found):
            value.op = found
            count += 1
    return count


def is_pointwise(op: Contract) -> bool:
    """Whether it is a convolution in which each element is of one place of the input, without groups."""
    if not op.convolves or "c" not in op.left_axes or not isinstance(op.right.op, View) or op.right.op.map.guard:
        return False
    return all(letter == "c" or op.size(letter) == ONE for letter in op.left_axes if letter != "o")


def of_few_channels(op: Contract) -> bool:
    """Whether it is a convolution of or to fewer channels than a step sums up, in each group: depthwise, of an image's colours, to its classes."""
    counts = [op.size(letter) if letter in op.left_axes else ONE for letter in "co"]
    return op.convolves and any(bool(n.is_number and n < LEAST_CHANNELS) for n in counts)


def in_tf32(graph: Graph, but: Callable[[Contract], bool] = lambda op: False) -> int:
    """Let the other float32 convolutions be rounded to TF32 where they are multiplied, ``but`` for some. Returns how many there were."""
    found: list[Contract] = []
    for value in topological(graph.outputs):
        op = value.op
        if not isinstance(op, Contract) or not op.convolves or but(op):
            continue
        if op.left.dtype == op.right.dtype == torch.float32:
            op.tf32 = True
            found.append(op)
    if len(found) > 1:
        _round_to_nearest(graph, found)
    return len(found)


def _round_to_nearest(graph: Graph, ops: list[Contract]) -> None:
    """Round the operands of several products, of which tensor cores cut bits off: errors of one sign add up from layer to layer.

    Where all that reads a value rounds it, it is stored rounded; else a copy is, which takes less time than rounding each tile of a long
    sum: a 1 x 1 convolution of 192 channels takes 50 us with its tiles rounded and 22 without on an H100.
    """
    users, kept = order_of(graph.outputs).users, {*graph.outputs, *graph.updates.values()}
    rounding = set(ops)
    copies: dict[Value, Value] = {}

    def rounded_alone(value: Value) -> bool:
        """Whether a value, or its views, are multiplied in these products and nowhere else."""
        return value not in kept and all(
            user.op in rounding or (isinstance(user.op, View) and rounded_alone(user)) for user in users[value]
        )

    def copied(value: Value) -> Value:
        if isinstance(value.op, View):
            return Build.view(copied(value.op.operand), value.op.map, value.op.name)
        if value not in copies:
            copies[value] = Build.pointwise(_NEAREST, value, dtype=torch.float32, name=variable_name(value))
        return copies[value]

    for op in ops:
        read = viewed(op.right)
        long = sympy.prod([op.size(letter) for letter in op.summed])
        in_tiles = bool(long.is_number and long <= _FEW_STEPS)
        if isinstance(read.op, Pointwise) and read.op.function == _NEAREST:
            in_tiles = False  # by another of these products
        elif isinstance(read.op, Pointwise) and rounded_alone(read):
            inner, in_tiles = dataclasses.replace(read, name=""), False
            read.name, read.meaning, read.op = variable_name(read), None, Pointwise(_NEAREST, (inner,))
        elif not in_tiles:
            op.right = copied(op.right)
        op.nearest = True, in_tiles


def _convolution(op: Contract, planes: bool) -> Contract | None:
    """The product over operands with their channels last, rounded where they are float32; None where it is no convolution of as much as a step sums up.

    The letters are those of ``Build.convolve``: "o" and "c" for the channels, "n" for the batch, "g" for groups; the other summed ones
    go through a window.
    """
    dtype = op.left.dtype
    if op.right.dtype != dtype or not isinstance(op.right.op, View) or op.tf32:
        return None
    view, weight = op.right.op, op.left
    inside = "".join(letter for letter in op.summed if letter != "c")
    if not op.convolves or "c" not in op.summed or not inside:
        return None
    channels = op.size("c")
    if not channels.is_number:
        return None
    few = channels < LEAST_CHANNELS
    outer, together = (inside[:-1], inside[-1] + "c") if few else (inside, "c")
    every = channels * sympy.prod([op.size(letter) for letter in inside])
    if every.is_number and every < LEAST_CHANNELS:  # a size that varies counts as large
        return None
    wide = -(-channels // _READ_TOGETHER) * _READ_TOGETHER if few else channels
    written = _written_out(view, op.right_axes.index("c"), wide)
    if written is None:
        return None
    last, index = written
    seen = op.right_axes.replace("c", "") + "c"
    windows = _reordered(view.map, op.right_axes, seen, last.shape, index, wide)
    order = "".join([*(x for x in op.left_axes if x in op.axes and x != "o"), *outer, "o", *together])
    packed = Build.permute(weight, tuple(op.left_axes.index(letter) for letter in order))
    if wide != channels:
        shape = (*packed.shape[:-1], wide)
        guard = ((dim(len(shape) - 1), ZERO, channels),)
        packed = Build.view(packed, Map(shape, packed.shape, dims(len(shape)), guard, 0.0), "padded")
    name = view.operand.name
    names = f"{name}_last" if name else "", f"{variable_name(weight)}_packed"
    lengths = tuple(_lengths(op, view.map, outer))
    if planes:
        last.name, packed.name = names
        return _of_planes(op, last, windows, packed, seen, order, outer, lengths)
    half = dtype if dtype in TO_HALF else torch.float16
    last, packed = (
        Build.pointwise(TO_HALF[half], v, dtype=half, name=name) for v, name in zip((last, packed), names, strict=True)
    )
    result = Contract(Build.view(last, windows, "window"), packed, seen, order, op.axes, outer=outer, lengths=lengths)
    if dtype == half:  # the elements are what they were
        result.full_sums, result.convolution = op.full_sums, op
    else:
        result.exact = Exact(op, (peak_of(last), peak_of(packed)), LEAST_PEAK, MOST_PEAK, tf32=True)
    return result


def _lengths(op: Contract, windows: Map, outer: str) -> Iterator[tuple[str, sympy.Expr]]:
    """Of a transposed convolution, whose phases take different numbers of the weight's elements: how many each takes along ``outer`` letters."""
    phases = [letter for letter in op.axes if op.varies(letter) == (True, True)]
    result = {dim(op.right_axes.index(letter)): dim(op.axes.index(letter)) for letter in phases}
    for expr, low, high in (one for one in windows.guard if one[0] not in windows.index):  # the others are written out
        for letter in outer:
            tap = dim(op.right_axes.index(letter))
            step = sympy.expand(expr).coeff(tap, 1)
            start = sympy.expand(expr - step * tap)
            if low == ZERO and step.is_Integer and step > 0 and start.free_symbols <= result.keys():
                yield letter, Quotient(sympy.expand(high - 1 - start + step).xreplace(result), step)


def _of_planes(
    op: Contract,
    last: Value,
    windows: Map,
    packed: Value,
    seen: str,
    order: str,
    outer: str,
    lengths: tuple[tuple[str, sympy.Expr], ...],
) -> Contract:
    """The three products of two planes of each operand."""
    left, right = three.planes_of(last), three.planes_of(packed)
    exact = Exact(op, (peak_of(left), peak_of(right)), three.LEAST_PEAK, three.MOST_PEAK)
    return Contract(
        three.of_each_product(left, windows, three.LEFT),
        three.of_each_product(right, Map(packed.shape, packed.shape, dims(len(order))), three.RIGHT),
        three.LETTER + seen,
        three.LETTER + order,
        op.axes,
        outer=three.LETTER + outer,
        scaled=1 / three.SCALE,
        lengths=lengths,
        exact=exact,
    )


def _written_out(view: View, at: int, channels: sympy.Expr) -> tuple[Value, tuple[sympy.Expr, ...]] | None:
    """What is viewed, […, C, *spatial], as […, *reached, ``channels``], and the index into that of the window's elements.

    It is 0 where windows leave it. ``at``: the dimension of the channels.
    """
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
    last = Build.view(x, Map(shape, x.shape, index, guards, 0.0 if guards else None), "channels_last")
    return last, tuple(map.index[d] + shifts[d] for d in order)


def _reordered(
    map: Map, axes: str, order: str, last: Shape, index: tuple[sympy.Expr, ...], channels: sympy.Expr
) -> Map:
    """The windows of a tensor of shape ``last``, with their dimensions in ``order``. ``index``: over the dimensions ``axes`` of ``map``."""
    place = {dim(d): dim(order.index(letter)) for d, letter in enumerate(axes)}
    sizes = dict(zip(axes, map.shape, strict=True)) | {"c": channels}
    left = (one for one in map.guard if one[0] not in map.index)  # the others are written out
    guard = tuple((expr.xreplace(place), low, high) for expr, low, high in left)
    shape = tuple(sizes[letter] for letter in order)
    return Map(shape, last, tuple(expr.xreplace(place) for expr in index), guard, 0.0 if guard else None)
