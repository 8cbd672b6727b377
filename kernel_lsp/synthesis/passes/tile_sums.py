"""Reductions over all pixels of a convolution in parts: the product's kernel stores what each of its tiles of pixels comes to.

A mean over the pixels, or the mean and variance of a norm, then reads the parts instead of what the convolution gives; where nothing else
reads that, it is not stored at all. A variance is put together from sums of squares about each tile's own mean (Chan, Golub and LeVeque 1983).

A transposed convolution with a stride has phases, whose pixels alternate in the result: then a tile has pixels of one phase, or of two whose results lie next to
each other, and there are parts for each phase. The result may end before some phases do, so that tiles have fewer pixels, or none: how many is stored, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy
import torch

from ..graph.build import Build
from ..graph.early_reductions import Early, early
from ..graph.lowered import Graph
from ..graph.map import Guard, Map, compose, dim
from ..graph.monoids import MONOIDS
from ..graph.order import Order, order_of
from ..graph.sizes import ONE, ZERO, same, same_shape
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
from .cuts import is_cut
from .fusion import epilogues
from .splitting import Chunks, chunks_of, put_together
from .tile_parts import BY_PHASES, PIXELS

#: What a tile's elements may be reduced by alone.
_ALONE = ("sum", "max", "min", "amax", "amin")


@dataclass(frozen=True)
class Pixels:
    """How many pixels an image of a convolution's result has along each axis: ``places`` in each of its ``phases``."""

    places: Shape
    phases: Shape

    @property
    def along(self) -> Shape:
        """Those of all phases along each axis."""
        return tuple(sympy.expand(n * m) for n, m in zip(self.places, self.phases, strict=True))

    @property
    def of_phase(self) -> sympy.Expr:
        """Those of one phase."""
        return sympy.expand(sympy.prod(self.places))

    @property
    def alternate(self) -> bool:
        """Whether pixels of several phases alternate."""
        return any(n != ONE for n in self.phases)


@dataclass(frozen=True)
class _Over:
    """What a reduction over all pixels is: of ``root`` in some shape, in which ``before`` dimensions come before the pixels.

    ``squares``: its form as a sum of squares about a number. ``ends``: how many pixels along each axis are reduced, the first ones, where those are not all.
    """

    before: int
    squares: Early | None
    ends: Shape | None


@dataclass(frozen=True)
class TileSums:
    """Reductions over all pixels of ``root``, the last value that the kernel of the convolution ``product`` computes, or of its beginning.

    ``pixels``: those of one image, or of one of its phases, of which tiles are filled. ``stored``: whether that kernel stores ``root`` anyway. ``read_again``:
    whether what follows them reads it in a kernel of its own in any case; else it could be computed while a row of ``length`` elements is in registers.
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
        if product in apart or root.dtype != torch.float32 or (pixels := _pixels(op)) is None:
            continue
        of_all = numel(pixels.along)
        rank = next((n for n in range(len(root.shape), 0, -1) if same(numel(root.shape[-n:]), of_all)), None)
        if rank is None:
            continue
        every = {v: over for v in order.below(root) if (over := _over_pixels(v, root, pixels)) is not None}
        ends = next((over.ends for over in every.values()), None)
        found = {v: over for v, over in every.items() if _same_ends(over.ends, ends)}
        if not found:
            continue
        count = numel(ends or pixels.along)
        others = [
            v for v in _read_by_others(order, root, found) if ends is None or not _same_ends(_ends(v, pixels), ends)
        ]
        reduced = ((v, v.op) for v in others if isinstance(v.op, Reduce))
        over_pixels = [v for v, op in reduced if _before_pixels(op.operand.shape, op.dims, count) is not None]
        if any(not _waits(v, order, found) for v in over_pixels):
            continue  # that reads what is reduced as often
        stored = root in graph.outputs or any(v in graph.outputs for v in others)
        again = any(_apart(v) and v not in over_pixels for v in others)
        length = max(_length(v, graph) for v in found)
        if pays(TileSums(product, root, pixels.of_phase, stored, again, length)):
            if pixels.alternate:
                _split_phases(graph, root, rank, pixels, ends or pixels.along, found, chunks)
            else:
                _split(graph, root, rank, count, found, chunks)


def _pixels(op: Contract) -> Pixels | None:
    """How many pixels an image of a convolution's result has; None where it is none, or has one."""
    whole = op.written
    places = [letter for letter in op.axes if letter in PLACES]
    phases = [letter for letter in op.axes if letter in PHASES]
    ends = ["".join(places)]
    if phases:
        ends.append("".join(place + phase for place, phase in zip(places, phases, strict=True)))
    if not whole.convolves or not places or not op.axes.endswith(tuple(ends)):
        return None
    sizes = tuple(op.size(letter) for letter in places)
    found = Pixels(sizes, tuple(map(op.size, phases)) if phases else (ONE,) * len(sizes))
    return None if same(found.of_phase, ONE) else found


def _over_pixels(v: Value, root: Value, pixels: Pixels) -> _Over | None:
    """How ``v`` reduces all pixels of ``root``, or the first ones of each axis; None where it does not."""
    op = v.op
    if not isinstance(op, Reduce) or op.part or v.dtype != torch.float32 or op.kind not in _ALONE:
        return None
    squares, ends = early(v, ()) if op.kind == "sum" else None, None
    element = op.operand if squares is None else squares.element
    while element is not root:
        if isinstance(element.op, View) and element.op.map.keeps_order:
            element = element.op.operand
        elif ends is None and isinstance(element.op, View) and (ends := _ends(element, pixels)) is not None:
            cut, element = element, element.op.operand
            if (
                squares is None and op.kind == "sum" and cut is op.operand
            ):  # what follows elementwise may be computed before the cut
                shape = tuple(ONE if d in op.dims else n for d, n in enumerate(element.shape))
                squares = early(Value(Reduce("sum", element, op.dims), shape, v.dtype), ())
                element = element if squares is None else squares.element
        else:
            return None
    before = _before_pixels(op.operand.shape, op.dims, numel(ends or pixels.along))
    return None if before is None else _Over(before, squares, ends)


def _ends(v: Value, pixels: Pixels) -> Shape | None:
    """How many pixels along each axis ``v`` has, where it is the beginning of what has all of several phases, and all of what comes before the pixels."""
    if not pixels.alternate or not is_cut(v):
        return None
    assert isinstance(v.op, View)
    whole, rank = v.op.map.operand, len(pixels.along)
    of_all = same_shape(whole[-rank:], pixels.along) and same_shape(whole[:-rank], v.shape[:-rank])
    return v.shape[-rank:] if of_all else None


def _same_ends(one: Shape | None, other: Shape | None) -> bool:
    return one is other if one is None or other is None else same_shape(one, other)


def _before_pixels(shape: Shape, dims: tuple[int, ...], count: sympy.Expr) -> int | None:
    """How many dimensions come before the last ones that have ``count`` elements, where all of these are among ``dims``."""
    for lead in range(len(shape)):
        if same(numel(shape[lead:]), count) and set(range(lead, len(shape))) <= set(dims):
            return lead
    return None


def _read_by_others(order: Order, root: Value, found: dict[Value, _Over]) -> list[Value]:
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


def _waits(v: Value, order: Order, found: dict[Value, _Over]) -> bool:
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


def _split(graph: Graph, root: Value, rank: int, count: sympy.Expr, found: dict[Value, _Over], chunks: Chunks) -> None:
    """``rank``: the last dimensions of ``root`` that are the pixels."""
    tiles = chunks_of(count, PIXELS, graph.hints, chunks)
    pixels = tuple(range(len(root.shape) - rank, len(root.shape)))
    kept = tuple(ONE if d in pixels else n for d, n in enumerate(root.shape))

    def part(kind: str, name: str, key: str = "") -> Value:
        return Value(Partial(kind, root, pixels, PIXELS, key), (tiles, *kept), torch.float32, name)

    parts: dict[str, Value] = {}
    for v, over in found.items():
        op, lead, one = v.op, over.before, over.squares
        assert isinstance(op, Reduce)
        shape = (tiles, *(ONE if d >= lead else n for d, n in enumerate(op.operand.shape)))
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


def _split_phases(
    graph: Graph, root: Value, rank: int, pixels: Pixels, ends: Shape, found: dict[Value, _Over], chunks: Chunks
) -> None:
    """The same of several phases, for so many pixels as ``ends`` says for each axis: each part has a dimension for each axis' phases."""
    tiles = chunks_of(pixels.of_phase, PIXELS, graph.hints, chunks)
    lead = len(root.shape) - rank
    views: dict[float, Value] = {}
    parts: dict[tuple[str, str], Value] = {}

    def part(kind: str, key: str, name: str) -> Value:
        """[tiles, *lead, a place and phases for each axis]."""
        beyond = MONOIDS[kind].neutral
        if beyond not in views:
            views[beyond] = _by_phases(root, rank, pixels, ends, beyond)
        if (kind, key) not in parts:
            seen = views[beyond]
            places = tuple(range(lead, len(seen.shape), 2))
            kept = tuple(ONE if d in places else n for d, n in enumerate(seen.shape))
            parts[kind, key] = Value(Partial(kind, seen, places, PIXELS, key), (tiles, *kept), torch.float32, name)
        return parts[kind, key]

    for v, over in found.items():
        op, before = v.op, over.before
        assert isinstance(op, Reduce)
        ones = [ONE] * (len(op.operand.shape) - before - 1)
        shape = (tiles, *op.operand.shape[:before], numel(pixels.phases), *ones)
        dims = (0, *(d + 1 for d in op.dims if d < before), before + 1)
        if over.squares is None:
            known = {"acc": Build.reshape(part(op.kind, "", f"tile_{op.kind.removeprefix('a')}"), shape)}
            put_together(v, MONOIDS[op.kind], known, "result", dims)
            continue
        total, seen, squares = (
            Build.reshape(part(kind, key, f"tile_{name}"), shape)
            for kind, key, name in (
                ("sum", "", "sum"),
                ("squares", "seen", "pixels"),
                ("squares", "squares", "squares"),
            )
        )
        mean = Build.pointwise("div", total, Build.pointwise("maximum", seen, 1.0))  # some tiles have no pixel
        known = {"seen": seen, "mean": mean, "about": over.squares.about, "squares": squares}
        put_together(v, MONOIDS["squares"], known, "squares", dims)


def _by_phases(root: Value, rank: int, pixels: Pixels, ends: Shape, beyond: float) -> Value:
    """[*lead, places, phases, …] of ``root``, whose last ``rank`` dimensions are the pixels: those up to ``ends``, and ``beyond`` that is so."""
    lead = len(root.shape) - rank
    whole = (*root.shape[:lead], *pixels.along)
    pairs = list(zip(pixels.places, pixels.phases, strict=True))
    shape = (*root.shape[:lead], *(n for pair in pairs for n in pair))
    index = [dim(lead + 2 * d) * phases + dim(lead + 2 * d + 1) for d, (_, phases) in enumerate(pairs)]
    cut = zip(index, pixels.along, ends, strict=True)
    guards: tuple[Guard, ...] = tuple((place, ZERO, end) for place, size, end in cut if not same(size, end))
    map = Map(shape, whole, (*(dim(d) for d in range(lead)), *index), guards, beyond if guards else None)
    if not same_shape(whole, root.shape):
        reshaped = Build.reshape(root, whole)
        assert isinstance(reshaped.op, View)
        both = compose(map, reshaped.op.map)
        assert both is not None, "it has no guard"
        map = both
    return Build.view(root, map, BY_PHASES)
