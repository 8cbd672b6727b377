"""What a product's kernel computes of each tile's elements where reductions are split by tiles (``tile_sums.py``)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import torch

from ..graph.build import Build, number_or_size
from ..graph.division import bounds
from ..graph.map import Map
from ..graph.monoids import MONOIDS
from ..graph.order import Order
from ..graph.value import Iota, Partial, Pointwise, Value, View

#: Pixels of one image that a tile has; of a transposed convolution with a stride, of one image's phase.
PIXELS = 128

#: What a view is called that shows a value phase by phase, and beyond its last pixels what leaves a reduction as it is.
BY_PHASES = "phases"


def by_phases(value: Value) -> bool:
    """Whether ``value`` shows what a product with phases completes phase by phase, for the sake of parts."""
    return isinstance(value.op, View) and value.op.name == BY_PHASES


def map_of_phases(parts: Sequence[Value]) -> Map | None:
    """Where what completes the product has the elements that ``parts`` reduce, where these see it phase by phase."""
    first = parts[0].op if parts else None
    if not isinstance(first, Partial) or not isinstance(first.operand.op, View) or not by_phases(first.operand):
        return None
    return first.operand.op.map


def root_of(part: Value) -> Value:
    """What completes the product whose tiles ``part`` has the parts of."""
    assert isinstance(part.op, Partial)
    operand = part.op.operand
    if not by_phases(operand):
        return operand
    assert isinstance(operand.op, View)
    return operand.op.operand


def partials_of(order: Order, root: Value) -> list[Value]:
    """What the tiles of the product that ``root`` completes come to."""
    users = order.users.get(root, [])
    read = [*users, *(u for v in users if by_phases(v) for u in order.users.get(v, []))]
    return [v for v in read if isinstance(v.op, Partial) and v.op.length == PIXELS]


def of_a_tile(parts: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """What a tile's program computes for ``parts``, and all reductions that this takes, operands first.

    The number of its pixels is a sum of ones, since the last tile has fewer, and of phases any tile may.
    """
    first = parts[0].op
    assert isinstance(first, Partial)
    root, dims, inside = first.operand, first.dims, None
    if by_phases(root):
        root, inside = _phases(root)

    def among(value: Value, other: float = 0.0) -> Value:
        """``value``, and ``other`` where a phase has no such pixel."""
        return value if inside is None else Build.pointwise("where", inside, value, other, dtype=value.dtype)

    def of_tile(kind: str, value: Value, name: str, meaning: str) -> Value:
        result = Build.reduce(kind, among(value, MONOIDS[kind].neutral), dims, name=name)
        result.meaning = (f"{meaning}_of_tile", (root,)) if inside is not None else None
        return result

    total = of_tile("sum", root, "tile_sum", "sum")
    ones = Value(Pointwise("constant", (1.0,)), root.shape, torch.float32)
    pixels = of_tile("sum", ones, "tile_pixels", "pixels")
    found: list[Value] = []
    order: list[Value] = []
    for value in parts:
        op = value.op
        assert isinstance(op, Partial)
        if op.part == "squares":
            mean = Build.pointwise("div", total, pixels, name="tile_mean")
            apart = Build.pointwise("sub", root, mean)
            squared = Build.pointwise("mul", apart, apart)
            counted = among(squared)
            found.append(Build.reduce("sum", counted, dims, name="tile_squares"))
            found[-1].meaning = ("squares_about_mean", (root,))
            order += [ones, pixels, total, mean, apart, squared, counted, found[-1]]
        elif op.part == "seen":
            found.append(pixels)
            order.append(pixels)
        elif op.kind == "sum":
            found.append(total)
            order.append(total)
        else:
            found.append(of_tile(op.kind, root, value.name, op.kind))
            order.append(found[-1])
    return found, list(dict.fromkeys(order))


def _phases(value: Value) -> tuple[Value, Value | None]:
    """What is viewed phase by phase, and whether there is such a pixel (None: always), in that shape."""
    assert isinstance(value.op, View)
    map = value.op.map
    whole = Build.view(value.op.operand, dataclasses.replace(map, guard=(), pad=None), BY_PHASES)
    ends: list[Value] = []
    for place, _, end in map.guard:
        found = bounds(place, map.ranges)
        assert found is not None, "a place and a phase"
        size = found[1] + 1
        places = Build.view(Value(Iota(0), (size,), torch.int32), Map(map.shape, (size,), (place,)), "place")
        ends.append(Build.pointwise("lt", places, number_or_size(end), dtype=torch.bool))
    inside = functools.reduce(lambda a, b: Build.pointwise("and", a, b, dtype=torch.bool), ends) if ends else None
    if inside is not None:
        inside.name = "inside"
    return whole, inside
