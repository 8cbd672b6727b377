"""Convolutions of few channels with float32's error: windows are read in float32, as they lie in memory, and split into planes in the product's tile.

With a pass that writes planes of the input with its channels last (``layout.py``) as many bytes are written and read again as the input has, and what a step
reads of few channels are pieces of eight bytes or so. Pixels of one channel follow each other in memory, and so do the rows of a tile: read as they lie, each
load of a warp is one line. Taps of neighbouring pixels are the same elements, which come from the cache.

The weight's planes lie in memory with the output channels last. Its high plane is stored a second time, times what the low one is, so that the three
products are one sum: of two a thread has not enough registers. That holds for weights below 32 (``planes.MOST_RAISED``).

The range of the input is told as in ``pointwise.py`` (``Sample``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ..graph.build import Build
from ..graph.lowered import Graph
from ..graph.map import Map, dims
from ..graph.names import variable_name
from ..graph.order import topological
from ..graph.value import Contract, Exact, View
from .layout import LEAST_CHANNELS
from .peaks import peak_of
from .planes import LEAST_PEAK, LEFT, LETTER, MOST_PEAK, MOST_RAISED, RAISED_RIGHT, SCALE, of_each_product, planes_of
from .thin_products import in_tile, sample_of


def split_windows(graph: Graph, worthwhile: Callable[[Contract], bool]) -> int:
    """Rewrite the float32 convolutions of few channels for which it is ``worthwhile``. Returns how many there were."""
    products = [
        value
        for value in topological(graph.outputs)
        if isinstance(value.op, Contract) and can_be_split(value.op) and worthwhile(value.op)
    ]
    for value in products:
        assert isinstance(value.op, Contract)
        value.op = _split(value.op)
    return len(products)


def can_be_split(op: Contract) -> bool:
    """Whether it is a float32 convolution of few channels, neither transposed nor in groups, that sums up as much as a step of a tensor core does."""
    if not op.convolves or op.tf32 or not op.left.dtype == op.right.dtype == torch.float32:
        return False
    if not isinstance(op.right.op, View) or any(op.varies(letter) == (True, True) for letter in op.axes):
        return False
    sizes = [op.size(letter) for letter in op.summed]
    if "c" not in op.summed or {*op.left_axes} != {*op.summed, "o"} or not all(n.is_number for n in sizes):
        return False
    return bool(op.size("c") < LEAST_CHANNELS <= math.prod(sizes)) and len(op.summed) > 1


def _split(op: Contract) -> Contract:
    """The letters are those of ``Build.convolve``: "o" and "c" for the channels; the other summed ones go through a window."""
    order = "".join(letter for letter in op.right_axes if letter in op.summed) + "o"
    packed = Build.permute(op.left, tuple(op.left_axes.index(letter) for letter in order))
    packed.name = f"{variable_name(op.left)}_packed"
    planes = planes_of(packed, raised=True)
    every = Map(packed.shape, packed.shape, dims(len(order)))
    return Contract(
        in_tile(op.right, LEFT),
        of_each_product(planes, every, RAISED_RIGHT),
        LETTER + op.right_axes,
        LETTER + order,
        op.axes,
        outer=LETTER,
        scaled=1 / SCALE,
        raised=True,
        exact=Exact(op, (sample_of(op.right), peak_of(planes)), LEAST_PEAK, MOST_PEAK, most_of_last=MOST_RAISED),
    )
