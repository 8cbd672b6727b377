"""Reductions over all pixels of a convolution in parts: the product's kernel stores what each of its tiles of pixels comes to.

A mean over the pixels, or the mean and variance of a norm, then reads the parts instead of what the convolution gives; where nothing else
reads that, it is not stored at all. A variance is put together from sums of squares about each tile's own mean (Chan, Golub and LeVeque 1983).
"""

from __future__ import annotations

from collections.abc import Callable

import sympy
import torch

from ..graph.build import Build
from ..graph.early import early
from ..graph.lowered import Graph
from ..graph.monoids import MONOIDS
from ..graph.order import Order, order_of
from ..graph.sizes import ONE, same
from ..graph.value import Contract, Iota, Partial, Reduce, Shape, Value, View, numel
from .fusion import epilogues
from .splitting import Chunks, chunks_of, put_together
from .tile_parts import PIXELS

#: The letters of a convolution's result that are its pixels, and those of a transposed one's phases, among which pixels alternate.
_PLACES, _PHASES = frozenset("tuv"), frozenset("xyz")

#: What a tile's elements may be reduced by alone.
_ALONE = ("sum", "max", "min", "amax", "amin")


def reduce_in_tiles(
    graph: Graph, chunks: Chunks, apart: set[Value], pays: Callable[[Value, Value, sympy.Expr, bool], bool]
) -> None:
    """Split such reductions into what each tile comes to, and what these come to; ``chunks`` gets how many tiles an image has.

    ``apart``: products that share a kernel with another. ``pays``: whether it takes less time, given the product, the last value that its kernel computes,
    the pixels of an image, and whether that value is stored anyway.
    """
    order = order_of(graph.outputs)
    for root, product in epilogues(graph, order).items():
        op = product.op
        assert isinstance(op, Contract)
        if product in apart or root.dtype != torch.float32 or (count := _pixels(op)) is None:
            continue
        found = {v: lead for v in order.below(root) if (lead := _over_pixels(v, root, count)) is not None}
        if not found:
            continue
        if pays(product, root, count, _read_by_others(graph, order, root, found)):
            _split(graph, root, count, found, chunks)


def _pixels(op: Contract) -> sympy.Expr | None:
    """How many pixels an image of a convolution's result has; None where it is none, or has phases."""
    whole = op.exact.product if op.exact is not None else op
    places = [letter for letter in op.axes if letter in _PLACES]
    if not whole.convolves or not places or not _PHASES.isdisjoint(op.axes) or not op.axes.endswith("".join(places)):
        return None
    return sympy.expand(sympy.prod([op.size(letter) for letter in places]))


def _element(v: Value) -> Value | None:
    """What ``v`` reduces element by element, for a variance before the mean is subtracted; None where it is no such reduction."""
    op = v.op
    if not isinstance(op, Reduce) or op.part or v.dtype != torch.float32:
        return None
    if op.kind == "sum" and (one := early(v, ())) is not None:
        return one.element
    return op.operand if op.kind in _ALONE else None


def _over_pixels(v: Value, root: Value, count: sympy.Expr) -> int | None:
    """How many dimensions come before the pixels in what ``v`` reduces, where that is ``root`` in some shape and all pixels are reduced."""
    element = _element(v)
    if element is None:
        return None
    assert isinstance(v.op, Reduce)
    shape, dims = element.shape, v.op.dims
    while element is not root:
        if not isinstance(element.op, View) or not element.op.map.keeps_order:
            return None
        element = element.op.operand
    for lead in range(len(shape)):
        if same(numel(shape[lead:]), count) and set(range(lead, len(shape))) <= set(dims):
            return lead
    return None


def _read_by_others(graph: Graph, order: Order, root: Value, found: dict[Value, int]) -> bool:
    """Whether an output is computed from ``root`` in another way than through what is ``found``."""
    seen, stack = set(found), [root]
    while stack:
        v = stack.pop()
        if v in graph.outputs:
            return True
        if v not in seen:
            seen.add(v)
            stack += order.users.get(v, [])
    return False


def _split(graph: Graph, root: Value, count: sympy.Expr, found: dict[Value, int], chunks: Chunks) -> None:
    tiles = chunks_of(count, PIXELS, graph.hints, chunks)
    rank = next(n for n in range(len(root.shape), 0, -1) if same(numel(root.shape[-n:]), count))
    pixels = tuple(range(len(root.shape) - rank, len(root.shape)))
    kept = tuple(ONE if d in pixels else n for d, n in enumerate(root.shape))

    def part(kind: str, name: str, key: str = "") -> Value:
        return Value(Partial(kind, root, pixels, key, PIXELS), (tiles, *kept), torch.float32, name)

    parts: dict[str, Value] = {}
    for v, lead in found.items():
        op = v.op
        assert isinstance(op, Reduce)
        shape = (tiles, *(ONE if d >= lead else n for d, n in enumerate(op.operand.shape)))
        one = early(v, ())
        kind = "sum" if one is not None else op.kind
        if kind not in parts:
            parts[kind] = part(kind, f"tile_{kind.removeprefix('a')}")
        first = Build.reshape(parts[kind], shape)
        dims = (0, *(d + 1 for d in op.dims if d < lead))
        if one is None:
            put_together(v, MONOIDS[kind], {"acc": first}, "result", dims)
            continue
        if "squares" not in parts:
            parts["squares"] = part("squares", "tile_squares", "squares")
        seen = _in_each(tiles, count, len(shape))
        known = {"seen": seen, "mean": Build.pointwise("div", first, seen), "about": one.about}
        known["squares"] = Build.reshape(parts["squares"], shape)
        put_together(v, MONOIDS["squares"], known, "squares", dims)


def _in_each(tiles: sympy.Symbol, count: sympy.Expr, rank: int) -> Value:
    """How many pixels each tile has: the last one those that are left."""
    shape: Shape = (tiles, *[ONE] * (rank - 1))
    left = Value(Iota(0, count, -sympy.Integer(PIXELS)), shape, torch.int32)
    pixels = Build.cast(Build.pointwise("minimum_int", left, PIXELS, dtype=torch.int32), torch.float32)
    pixels.name = "tile_pixels"
    return pixels
