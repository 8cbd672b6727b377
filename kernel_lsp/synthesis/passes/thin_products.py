"""Thin float32 products: the smaller operand becomes float16 planes before the product, the larger one in the product's tiles.

Such a product waits for the larger operand's bytes. To write planes of that costs twice what reading it costs (``planes.py``). So the product's
kernel reads it in float32, as it lies in memory, and splits the tile. Tensor cores take both planes from registers, as the left operand. Where
the smaller operand is large, too, it is split in the tiles as well, each time that a program reads it; its planes then go through shared memory.

The range of the larger operand is told as in ``pointwise.py`` (``Sample``): an element that float16 does not hold makes a sum infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy
import torch

from ..graph.lowered import Graph
from ..graph.map import Map, dims
from ..graph.names import variable_name
from ..graph.order import topological
from ..graph.sizes import ONE
from ..graph.value import Contract, Exact, Sample, Value, numel
from ..kernel.execution_plan import Hints
from .peaks import peak_of
from .planes import (
    LEAST_PEAK,
    LEFT,
    LETTER,
    MOST_PEAK,
    RIGHT,
    SCALE,
    beneath,
    chosen,
    in_pieces,
    of_each_product,
    planes_of,
    repeats,
)

#: Numbers of float16 that are read at once.
_READ_AT_ONCE = 8


def split_in_tiles(graph: Graph, wanted: Callable[[Contract], bool], both: Callable[[Contract], bool]) -> int:
    """Split the larger operand of the float32 products that are ``wanted`` in their tiles, and the smaller one before, or there too where ``both``.

    Returns how many there were.
    """
    products = [value for value in topological(graph.outputs) if isinstance(value.op, Contract) and wanted(value.op)]
    for value in products:
        assert isinstance(value.op, Contract)
        value.op = _split(value.op, graph.hints, both(value.op))
    return len(products)


def can_be_split(op: Contract, hints: Hints) -> bool:
    """Whether it is a product of float32 matrices, no convolution, whose rows in memory begin where 16 bytes of float16 are read at once."""
    if op.left.dtype != torch.float32 or op.right.dtype != torch.float32 or op.tf32 or op.convolves or op.outer:
        return False
    operands = (op.left, op.right)
    aligned = all(operand.shape for operand in operands) and in_pieces(operands, _READ_AT_ONCE, hints)
    return aligned and not any(repeats(operand, hints) for operand in operands)


def larger(op: Contract, hints: Hints) -> bool:
    """Whether the left operand has no fewer elements than the right one."""
    left, right = (numel(operand.shape).subs(hints) for operand in (op.left, op.right))
    return bool(left >= right)


def _split(op: Contract, hints: Hints, both: bool) -> Contract:
    sides = [(op.left, op.left_axes), (op.right, op.right_axes)]
    (large, large_axes), (small, small_axes) = sides if larger(op, hints) else sides[::-1]
    left, right = in_tile(large, LEFT), in_tile(small, RIGHT) if both else chosen(small, RIGHT, {})
    peaks = sample_of(large), sample_of(small) if both else peak_of(beneath(right))
    return Contract(
        left,
        right,
        LETTER + large_axes,
        LETTER + small_axes,
        op.axes,
        outer=LETTER,
        scaled=1 / SCALE,
        exact=Exact(op, peaks, LEAST_PEAK, MOST_PEAK),
    )


def in_tile(operand: Value, place: sympy.Expr) -> Value:
    """For each of the three products the plane of ``operand`` at ``place``, which no kernel stores."""
    return of_each_product(planes_of(operand), Map(operand.shape, operand.shape, dims(len(operand.shape))), place)


def sample_of(operand: Value) -> Value:
    """What the product's kernel notes of the range of ``operand``, which it splits."""
    return Value(Sample(operand), (ONE,), torch.float32, f"{variable_name(operand)}_sample")
