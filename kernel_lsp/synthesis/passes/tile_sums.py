"""Reductions over all pixels of a convolution in parts: the product's kernel stores what each of its tiles of pixels comes to.

A mean over the pixels, or the mean and variance of a norm, then reads the parts instead of what the convolution gives; where nothing else
reads that, it is not stored at all. A variance is put together from sums of squares about each tile's own mean (Chan, Golub and LeVeque 1983).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy
import torch

from ..graph.build import Build
from ..graph.early_reductions import early
from ..graph.lowered import Graph
from ..graph.monoids import MONOIDS
from ..graph.order import Order, order_of
from ..graph.sizes import ONE, same
from ..graph.value import (
    PHASES,
    PLACES,
    Contract,
    Iota,
    Partial,
    Reduce,
    Scan,
    Shape,
    TorchCall,
    Value,
    View,
    numel,
)
from .fusion import epilogues
from .splitting import Chunks, chunks_of, put_together
from .tile_parts import PIXELS

#: What a tile's elements may be reduced by alone.
_ALONE = ("sum", "max", "min", "amax", "amin")


@dataclass(frozen=True)
class TileSums:
    """Reductions over all ``pixels`` of ``root``, the last value that the kernel of the convolution ``product`` computes.

    ``stored``: whether that kernel stores ``root`` anyway. ``read_again``: whether what follows them reads it in a kernel of its own in any case;
    else it could be computed while a row of ``length`` elements is in registers.
    """

    product: Value
    root: Value
    pixels: sympy.Expr
    stored: bool
    read_again: bool
    length: int


def reduce_in_tiles(graph: Graph, chunks: Chunks, apart: set[Value], pays: Callable[[TileSums], bool]) -> None:
    """Split such reductions into what each tile comes to, and what these come to; ``chunks`` gets how many tiles an image has.

    ``apart``: products that share a kernel with another. ``pays``: whether it takes less time.
    """
    order = order_of(graph.outputs)
    for root, product in epilogues(graph, order).items():
        op = product.op
        assert isinstance(op, Contract)
        if product in apart or root.dtype != torch.float32 or (count := _pixels(op)) is None:
            continue
        rank = next((n for n in range(len(root.shape), 0, -1) if same(numel(root.shape[-n:]), count)), None)
        found = {v: lead for v in order.below(root) if (lead := _over_pixels(v, root, count)) is not None}
        if not found or rank is None:
            continue
        others = _read_by_others(order, root, found)
        reduced = ((v, v.op) for v in others if isinstance(v.op, Reduce))
        over_pixels = [v for v, op in reduced if _before_pixels(op.operand.shape, op.dims, count) is not None]
        if any(not _waits(v, order, found) for v in over_pixels):
            continue  # that reads what is reduced as often
        stored = root in graph.outputs or any(v in graph.outputs for v in others)
        again = any(_apart(v) and v not in over_pixels for v in others)
        length = max(_length(v, graph) for v in found)
        if pays(TileSums(product, root, count, stored, again, length)):
            _split(graph, root, rank, count, found, chunks)


def _pixels(op: Contract) -> sympy.Expr | None:
    """How many pixels an image of a convolution's result has; None where it is none, or has phases."""
    whole = op.exact.product if op.exact is not None else op
    axes = "".join(letter for letter in op.axes if letter not in PHASES or op.size(letter) != ONE)
    places = [letter for letter in axes if letter in PLACES]
    if (
        not whole.convolves
        or not places
        or any(letter in PHASES for letter in axes)
        or not axes.endswith("".join(places))
    ):
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
    return _before_pixels(shape, dims, count)


def _before_pixels(shape: Shape, dims: tuple[int, ...], count: sympy.Expr) -> int | None:
    """How many dimensions come before the last ones that have ``count`` elements, where all of these are among ``dims``."""
    for lead in range(len(shape)):
        if same(numel(shape[lead:]), count) and set(range(lead, len(shape))) <= set(dims):
            return lead
    return None


def _read_by_others(order: Order, root: Value, found: dict[Value, int]) -> list[Value]:
    """What is computed from ``root`` in another way than through what is ``found``."""
    seen, stack = set(found), list(order.users.get(root, []))
    others: list[Value] = []
    while stack:
        v = stack.pop()
        if v not in seen:
            seen.add(v)
            others.append(v)
            stack += order.users.get(v, [])
    return others


def _waits(v: Value, order: Order, found: dict[Value, int]) -> bool:
    """Whether another reduction over the pixels needs a pass after those that are ``found``; a sum of exponentials needs none after the greatest."""
    one = early(v, found)
    return any(order.above[v] & order.bit(u) for u in found) and (one is None or one.kind == "squares")


def _apart(v: Value) -> bool:
    """Whether ``v`` is not computed element by element of a row that a program has."""
    moved = isinstance(v.op, View) and not v.op.map.keeps_order
    return moved or isinstance(v.op, Reduce | Scan | Contract | TorchCall)


def _length(v: Value, graph: Graph) -> int:
    """How many elements of the example ``v`` reduces to one."""
    assert isinstance(v.op, Reduce)
    return int(numel(tuple(v.op.operand.shape[d] for d in v.op.dims)).subs(graph.hints))


def _split(graph: Graph, root: Value, rank: int, count: sympy.Expr, found: dict[Value, int], chunks: Chunks) -> None:
    """``rank``: the last dimensions of ``root`` that are the pixels."""
    tiles = chunks_of(count, PIXELS, graph.hints, chunks)
    pixels = tuple(range(len(root.shape) - rank, len(root.shape)))
    kept = tuple(ONE if d in pixels else n for d, n in enumerate(root.shape))

    def part(kind: str, name: str, key: str = "") -> Value:
        return Value(Partial(kind, root, pixels, PIXELS, key), (tiles, *kept), torch.float32, name)

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
