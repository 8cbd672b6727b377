"""Products whose kernels reduce their rows or columns: a tile has these whole, so that the product itself is never stored.

A softmax over the channels of a convolution, or their least, then takes no pass over memory of its own. Where a chunk of them is
reduced (``passes/tile_sums.py``), a tile has one chunk. Where windows of pixels are reduced, a tile has whole windows (``pooled_tiles.py``).
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import sympy

from ..graph.value import Contract
from ..kernel.execution_plan import Hints, Kernel, hint
from ..kernel.ir import Axis, Number, Variable
from .extents import alternating, contract_atoms, exchanged, multiplied, power_of_two, split_in_tile, total
from .schedules import Product
from .target import Target
from .tilings import Tiling, chunk_length

#: Products of a tile that a thread holds where it stores what they are reduced to, and where it stores as many as they are, at an address
#: each, or puts those of two phases together; and where float32 is split as it goes. They may be twice as many.
_HELD, _HELD_TO_STORE, _HELD_SPLIT = 128, 64, 32

#: Rows of which tensor cores take no fewer, and columns from which a tile is worth it.
_ROWS, _COLUMNS = 64, 32


@dataclasses.dataclass(frozen=True)
class Lines:
    """Lines of a result along its last dimensions, which its kernel reduces and stores: each ``length`` neighbours of a tile's rows, or columns (``side``).

    ``pair``: the two phases of a transposed convolution whose results alternate in a line; a tile of both (``Product.joined``) has it whole.
    """

    side: Literal["M", "N"]
    length: int
    pair: sympy.Symbol | None


def lines_of_result(kernel: Kernel, op: Contract | None = None) -> Lines | None:
    """The lines that a product's kernel reduces and stores, each of a power of two of elements; None where it reduces something else.

    ``op``: the kernel's product as a schedule takes it, where that is not as it stands in the graph.
    """
    atoms, reduced = contract_atoms(kernel, op), kernel.domain.reduced
    if not kernel.folds or kernel.partials or not reduced or not _stores_all(kernel):
        return None
    every, length = [*atoms.rows, *atoms.cols, *atoms.batch], total(kernel.domain, reduced)
    if len(set(every)) < len(every) or not length.is_Integer or power_of_two(int(length)) != length:
        return None
    pair = reduced[-1] if reduced[-1] in atoms.batch else None
    if pair is not None and alternating(kernel, atoms) != pair:
        return None
    places = reduced if pair is None else reduced[:-1]
    for side, group in (("M", atoms.rows), ("N", atoms.cols)):
        if places and len(group) > len(places) and group[-len(places) :] == places:
            return Lines("M" if side == "M" else "N", int(length), pair)
    return None


def _stores_all(kernel: Kernel) -> bool:
    """Whether it stores a result for each element that it reduces."""
    reduced = set(kernel.domain.reduced)
    return any(reduced & kernel.domain.resolve(e).free_symbols for _, index in kernel.stores for e in index)


def folded_side(kernel: Kernel, op: Contract | None = None) -> Literal["M", "N"] | None:
    """Whether a product's kernel reduces its rows or its columns, all of them, or windows or lines of these; None where it reduces something else.

    ``op``: as for ``lines_of_result``.
    """
    if (lines := lines_of_result(kernel, op)) is not None:
        return lines.side
    atoms, reduced = contract_atoms(kernel, op), kernel.domain.reduced
    if not kernel.folds or not reduced:
        return None
    if reduced in (atoms.rows, atoms.cols):
        return "M" if reduced == atoms.rows else "N"
    if length_of_windows(kernel):
        return "M" if atoms.rows[-len(reduced) :] == reduced else "N"
    return None


def length_of_windows(kernel: Kernel) -> int:
    """How many elements of a product its kernel reduces to one, where these are a window of its rows or columns; 0 where it reduces something else.

    That is also where windows go on from one row of pixels to the next, or along one axis of a transposed convolution whose other axis has phases: there
    two letters of the product go along one axis of the result, so that a tile's rows and columns are not the elements that are reduced.
    """
    atoms, reduced = contract_atoms(kernel), kernel.domain.reduced
    if not kernel.folds or kernel.partials or not reduced or reduced in (atoms.rows, atoms.cols) or _stores_all(kernel):
        return 0
    every = [*atoms.rows, *atoms.cols, *atoms.batch]
    if len(set(every)) < len(every) or reduced not in (group[-len(reduced) :] for group in (atoms.rows, atoms.cols)):
        return 0
    length = total(kernel.domain, reduced)
    return int(length) if length.is_Integer and power_of_two(int(length)) == length else 0


def of_product(tiled: list[Axis], folded: Axis, blocks: dict[str, Variable]) -> Tiling:
    """How a tile of a product is reduced along ``folded``, one of its axes, which are in the order of its dimensions."""
    shape = (blocks["M"], blocks["N"])
    return Tiling(tiled, folded, tiled.index(folded), 2, shape, None, Number(0), Number(0), [], [])


def whole_tiles(kernel: Kernel, tiles: list[Product], target: Target, hints: Hints) -> list[Product]:
    """``tiles`` with all that is reduced in each; none where they cannot have it."""
    for op in (kernel.product, exchanged(kernel.product)):
        if (lines := lines_of_result(kernel, op)) is not None:
            return _with_whole_lines(kernel, tiles, lines, op is not kernel.product, target)
    side, atoms = folded_side(kernel), contract_atoms(kernel)
    if side is None:
        return []
    if length := length_of_windows(kernel):
        return [t for t in tiles if not (t.joined or t.exchanged or (t.m if side == "M" else t.n) % length)]
    count = hint(total(kernel.domain, atoms.rows if side == "M" else atoms.cols), hints)
    if kernel.partials:
        count = chunk_length(kernel)
    stores_all = _stores_all(kernel)
    itemsize, split = multiplied(kernel.product).itemsize, any(split_in_tile(kernel.product))
    found = []
    for twice in (1, 2):
        for tile in tiles:
            held = _HELD_SPLIT if split or itemsize == 4 else _HELD_TO_STORE if stores_all or tile.joined else _HELD
            if kernel.partials:  # those of planes are summed apart, and what is reduced stays for the variance
                held = min(held, _HELD_SPLIT if kernel.product.planes else _HELD_TO_STORE)
            if tile.joined and kernel.partials:  # with more of them what follows spills
                held = min(held, 2 * tile.m * tile.n // (tile.warps * target.warp_size))
            if itemsize > 1 and not tile.exchanged and not (tile.joined and side == "M" and not kernel.partials):
                found.append(_whole(tile, side, count, twice * held, target))
    return list(dict.fromkeys(_on_chip(kernel, tile, target) for tile in found))


def _on_chip(kernel: Kernel, tile: Product, target: Target) -> Product:
    """``tile`` with no more stages than shared memory holds."""
    itemsize, split = multiplied(kernel.product).itemsize, any(split_in_tile(kernel.product))
    left, right = 4 if split or kernel.peaks else itemsize, 4 if split else itemsize
    stages = tile.stages
    while stages > 1 and (tile.m * left + tile.n * right) * tile.k * stages > target.shared_memory:
        stages -= 1
    return dataclasses.replace(tile, stages=stages)


def _with_whole_lines(
    kernel: Kernel, tiles: list[Product], lines: Lines, turned: bool, target: Target
) -> list[Product]:
    """``tiles`` with whole lines in each; then the same with eight warps, which may be larger; then no larger ones with eight.

    ``turned``: the lines are lines of the product with its operands exchanged. Those of two phases are in joined tiles alone, which what
    seldom runs has, too.
    """
    product, joined = kernel.product, lines.pair is not None
    few = any(split_in_tile(product)) or product.planes or multiplied(product).itemsize == 4
    held = (_HELD_SPLIT if few else _HELD_TO_STORE) * target.warp_size
    if kernel.exact:  # seldom runs: one tile
        tiles = [dataclasses.replace(tile, joined=joined, exchanged=turned) for tile in tiles[:1]]
    fit = [t for t in tiles if (t.joined, t.exchanged) == (joined, turned) and multiplied(product).itemsize > 1]
    found = [_in_lines(tile, lines, held) for tile in fit]
    if not kernel.exact:
        found += [_in_lines(dataclasses.replace(tile, warps=8), lines, held) for tile in fit]
        found += [dataclasses.replace(tile, warps=8) for tile in found]
    most = {tile: 2 * held * tile.warps // (2 if joined else 1) for tile in found}
    return list(dict.fromkeys(_on_chip(kernel, tile, target) for tile in most if tile.m * tile.n <= most[tile]))


def _in_lines(tile: Product, lines: Lines, held: int) -> Product:
    """``tile`` with whole lines, and as few rows, then columns, as leave no more than ``held`` products to a warp, if it can have so few."""
    both = 1 if lines.pair is None else 2
    along, most = lines.length // both, held * tile.warps // both
    whole, other = (tile.m, tile.n) if lines.side == "M" else (tile.n, tile.m)
    shortest, least = (_ROWS, _COLUMNS) if lines.side == "M" else (_COLUMNS, _ROWS)
    whole = max(whole, along)
    while whole * other > most and whole > max(along, shortest):
        whole //= 2
    while whole * other > most and other > least:
        other //= 2
    m, n = (whole, other) if lines.side == "M" else (other, whole)
    return dataclasses.replace(tile, m=m, n=n)


def _whole(tile: Product, side: str, count: int, most: int, target: Target) -> Product:
    """``tile`` with ``count`` rows, or columns, and as many of the others as leave ``most`` products to a thread."""
    whole, least = max(16, power_of_two(count)), _COLUMNS if side == "M" else _ROWS
    other, warps = (tile.n if side == "M" else tile.m), tile.warps
    both = 2 if tile.joined else 1
    while other > least and both * whole * other > most * target.warp_size * warps:
        other //= 2
    if both * whole * other > most * target.warp_size * warps:
        warps = 8
    m, n = (whole, other) if side == "M" else (other, whole)
    return dataclasses.replace(tile, m=m, n=n, warps=warps)
