"""Products whose kernels reduce their rows or columns: a tile has these whole, so that the product itself is never stored.

A softmax over the channels of a convolution, or their least, then takes no pass over memory of its own. Where a chunk of them is
reduced (``passes/tile_sums.py``), a tile has one chunk. Where windows of pixels are reduced, a tile has whole windows (``pooled_tiles.py``).
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from ..kernel.execution_plan import Hints, Kernel, hint
from ..kernel.ir import Axis, Number, Variable
from .extents import contract_atoms, multiplied, power_of_two, split_in_tile, total
from .schedules import Product
from .target import Target
from .tilings import Tiling, chunk_length

#: Products of a tile that a thread holds where it stores what they are reduced to, and where it stores as many as they are, at an address
#: each, or puts those of two phases together; and where float32 is split as it goes. They may be twice as many.
_HELD, _HELD_TO_STORE, _HELD_SPLIT = 128, 64, 32

#: Rows of which tensor cores take no fewer, and columns from which a tile is worth it.
_ROWS, _COLUMNS = 64, 32


def folded_side(kernel: Kernel) -> Literal["M", "N"] | None:
    """Whether a product's kernel reduces its rows or its columns, all of them or windows of these; None where it reduces something else."""
    atoms, reduced = contract_atoms(kernel), kernel.domain.reduced
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
    if not kernel.folds or kernel.partials or not reduced or reduced in (atoms.rows, atoms.cols):
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
    side, atoms = folded_side(kernel), contract_atoms(kernel)
    if side is None:
        return []
    if length := length_of_windows(kernel):
        return [t for t in tiles if not (t.joined or t.exchanged or (t.m if side == "M" else t.n) % length)]
    count = hint(total(kernel.domain, atoms.rows if side == "M" else atoms.cols), hints)
    if kernel.partials:
        count = chunk_length(kernel)
    reduced = set(kernel.domain.reduced)
    stores_all = any(reduced & kernel.domain.resolve(e).free_symbols for _, index in kernel.stores for e in index)
    itemsize, split = multiplied(kernel.product).itemsize, any(split_in_tile(kernel.product))
    sizes = 4 if split or kernel.peaks else itemsize, 4 if split else itemsize  # on chip
    found = []
    for twice in (1, 2):
        for tile in tiles:
            held = _HELD_SPLIT if split or itemsize == 4 else _HELD_TO_STORE if stores_all or tile.joined else _HELD
            if kernel.partials:  # those of planes are summed apart, and what is reduced stays for the variance
                held = min(held, _HELD_SPLIT if kernel.product.planes else _HELD_TO_STORE)
            if itemsize > 1 and not tile.exchanged and not (tile.joined and side == "M"):
                found.append(_whole(tile, side, count, twice * held, sizes, target))
    return list(dict.fromkeys(found))


def _whole(tile: Product, side: str, count: int, most: int, sizes: tuple[int, int], target: Target) -> Product:
    """``tile`` with ``count`` rows, or columns, and as many of the others as leave ``most`` products to a thread.

    ``sizes``: bytes of an element of the left operand on chip, and of the right one.
    """
    whole, least = max(16, power_of_two(count)), _COLUMNS if side == "M" else _ROWS
    other, warps = (tile.n if side == "M" else tile.m), tile.warps
    both = 2 if tile.joined else 1
    while other > least and both * whole * other > most * target.warp_size * warps:
        other //= 2
    if both * whole * other > most * target.warp_size * warps:
        warps = 8
    m, n = (whole, other) if side == "M" else (other, whole)
    stages = tile.stages
    while stages > 1 and (m * sizes[0] + n * sizes[1]) * tile.k * stages > target.shared_memory:
        stages -= 1
    return dataclasses.replace(tile, m=m, n=n, warps=warps, stages=stages)
