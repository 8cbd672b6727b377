"""What a product's kernel computes of each tile's elements where reductions are split by tiles (``tile_sums.py``)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..graph.build import Build
from ..graph.value import Partial, Pointwise, Value

#: Pixels of one image that a tile has.
PIXELS = 128


def of_a_tile(parts: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """What a tile's program computes for ``parts``, and all reductions that this takes, operands first.

    The number of its pixels is a sum of ones, since the last tile has fewer.
    """
    first = parts[0].op
    assert isinstance(first, Partial)
    root, dims = first.operand, first.dims
    total = Build.reduce("sum", root, dims, name="tile_sum")
    found: list[Value] = []
    order: list[Value] = []
    for value in parts:
        op = value.op
        assert isinstance(op, Partial)
        if op.part == "squares":
            ones = Value(Pointwise("constant", (1.0,)), root.shape, torch.float32)
            pixels = Build.reduce("sum", ones, dims, name="tile_pixels")
            mean = Build.pointwise("div", total, pixels, name="tile_mean")
            apart = Build.pointwise("sub", root, mean)
            squared = Build.pointwise("mul", apart, apart)
            found.append(Build.reduce("sum", squared, dims, name="tile_squares"))
            found[-1].meaning = ("squares_about_mean", (root,))
            order += [ones, pixels, total, mean, apart, squared, found[-1]]
        elif op.kind == "sum":
            found.append(total)
            order.append(total)
        else:
            found.append(Build.reduce(op.kind, root, dims, name=value.name))
            order.append(found[-1])
    return found, list(dict.fromkeys(order))
