"""Thin products: where the tiles of a result are too few for a GPU, the sum is split and its parts are added up by a second kernel.

Known as split-K. The parts are added in one order, so the result is the same in every call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import sympy
from torch.utils._sympy.functions import FloorDiv

from ..graph.build import Build, opmath
from ..graph.lowered import Graph
from ..graph.map import Map, dim
from ..graph.maps import squeeze
from ..graph.order import topological
from ..graph.sizes import ZERO, quotient
from ..graph.value import Contract, Reduce, Value, View
from .layout import LEAST_CHANNELS

#: The letter of the parts.
_PARTS = "S"

#: A part whose length is not known is a multiple of this, so that tiles begin at aligned addresses.
_ALIGNED = 64


def split_products(graph: Graph, parts: Callable[[Contract], int]) -> dict[Contract, Contract]:
    """Split the sum of each product into as many ``parts``; 1 leaves it. Returns what each became.

    Left are those of several summed letters, but for convolutions in TF32, which are split by their channels, and those of rounded
    operands that have a second kernel.
    """
    found: dict[Contract, Contract] = {}
    for value in topological(graph.outputs):
        op = value.op
        if not isinstance(op, Contract) or op.exact is not None:
            continue
        letter = "c" if op.tf32 and op.convolves and not op.outer else op.summed
        if len(letter) != 1 or letter not in op.summed or op.varies(letter) != (True, True):
            continue
        n = parts(op)
        if letter != op.summed:
            n = _of_channels(op.size(letter), n)
        if n < 2:
            continue
        left, right = (
            _in_parts(v, axes, letter, n) for v, axes in ((op.left, op.left_axes), (op.right, op.right_axes))
        )
        split = dataclasses.replace(
            op,
            left=left,
            right=right,
            left_axes=_PARTS + op.left_axes,
            right_axes=_PARTS + op.right_axes,
            axes=_PARTS + op.axes,
        )
        product = Value(split, (sympy.Integer(n), *value.shape), opmath(value.dtype), "parts", node=value.node)
        product.meaning = value.meaning
        total = Value(Reduce("sum", product, (0,)), (sympy.Integer(1), *value.shape), value.dtype, value.name)
        value.op = View(squeeze(total.shape, (0,)), total, "squeeze")
        found[op] = split
    return found


def _of_channels(channels: sympy.Expr, parts: int) -> int:
    """At most so many ``parts``, a power of two, that channels are divided into evenly."""
    while parts > 1 and not (channels.is_number and channels % parts == 0 and channels // parts >= LEAST_CHANNELS):
        parts //= 2
    return parts


def _in_parts(operand: Value, axes: str, letter: str, parts: int) -> Value:
    """[parts, …]: the operand with the summed dimension cut in pieces of equal length, 0 beyond its end."""
    d = axes.index(letter)
    size, n = operand.shape[d], sympy.Integer(parts)
    exact = quotient(size, n)
    length = exact if exact is not None else _ALIGNED * FloorDiv(sympy.expand(size + _ALIGNED * n - 1), _ALIGNED * n)
    shape = (n, *operand.shape[:d], length, *operand.shape[d + 1 :])
    place = dim(0) * length + dim(d + 1)
    index = tuple(place if i == d else dim(i + 1) for i in range(len(operand.shape)))
    guard = () if exact is not None else ((place, ZERO, size),)
    return Build.view(operand, Map(shape, operand.shape, index, guard, 0.0 if guard else None), "part")
