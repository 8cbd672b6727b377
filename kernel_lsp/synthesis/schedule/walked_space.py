"""Tiles of products in half precision whose steps go through outer places, too: convolutions, and products of planes."""

from __future__ import annotations

import dataclasses

from ..graph.value import numel
from ..kernel.execution_plan import Hints, Kernel, hint
from ..kernel.reads import calls_library
from ..passes.layout import of_few_channels
from .extents import alternating, contract_atoms, share_of_places
from .product_fitting import fitted_tile, restart_after, sum_varies
from .schedules import RESTART, Product
from .target import Target

#: Elements of a sum in a step, of which the best is taken; elements that take as long as what a step takes beside them, an estimate; by
#: how much one way has to be better than another that has been measured.
_DEPTHS, _STEP, _CLEARLY = (64, 32, 16), 8, 0.85

#: Columns of a result from which tiles of many rows are tried, too.
_NARROW = 32

#: The tile of each of two phases whose results alternate: both are in registers at once.
_PAIRS = Product(128, 64, 32, 4, 3)

#: The same where each result takes a number of another tensor, too: with more of them a thread spills (docs/performance.md).
_PAIRS_WITH_OTHERS = Product(64, 64, 32, 4, 3)

#: The same where what follows calls libdevice: with 128 results a thread spills, with 32 it does not (docs/performance.md).
_PAIRS_WITH_LIBRARY = Product(64, 64, 32, 8, 3)

#: Results of each of two phases that four warps have registers for where both are reduced in the tile (docs/performance.md).
_NARROW_PAIRS = 128 * 32

#: Results of a tile that a group of four warps has registers for where the products of planes are summed apart.
_ONE_GROUP = 64 * 64

#: Sums that a thread has registers for, of the two that planes have for each result.
_MOST_SUMS = 128

#: Summed elements of a step of convolutions of planes where nothing is fetched ahead: what a thread has of it waits in registers.
_SHALLOW = 32


def walked(
    kernel: Kernel, m: int, n: int, k: int, whole: int, batch: int, itemsize: int, target: Target, hints: Hints
) -> list[Product]:
    """For products in half precision whose steps go through outer places, too: tiles as large as leaves every multiprocessor one.

    ``k``: what is summed of one place, ``whole``: of all.
    """
    # One group of four warps feeds a tile of 128 x 128 better than two do: 1166 µs beside 1490 (docs/performance.md).
    # Where phases leave gaps between results, it would have 128 of them a thread at places of their own: 2888 bytes of spills.
    phases = alternating(kernel, contract_atoms(kernel)) is not None
    # Of few channels, each piece of a row has an address of its own, and a group of four warps spills (docs/performance.md).
    few = of_few_channels(kernel.product.written)
    one_group = not kernel.product.planes and 64 < n <= 128 and not phases and not few
    tiles = [
        *([Product(128, 128, 32, 4, 3)] if one_group else []),
        Product(128, 256, 32, 8, 3),
        *([Product(256, 128, 32, 8, 3)] if n <= _NARROW else []),
        Product(128, 128, 32, 8, 3),
        *([Product(128, 128, 32, 4, 3)] if not phases else []),
        Product(64, 128, 32, 4, 4),
        Product(64, 64, 32, 4, 4),
    ]
    enough = [tile for tile in tiles if -(-m // tile.m) * -(-n // tile.n) * batch >= target.multiprocessors]
    enough = enough or tiles[-1:]
    op = kernel.product
    varies, emulated = sum_varies(op), op.scaled != 1.0
    if emulated:
        held = ((tile, fitted_tile(tile, m, n, k, itemsize, target)) for tile in enough)
        enough = [tile for tile, one in held if _sums(one, target) <= _MOST_SUMS] or enough[-1:]
    fitted = list(dict.fromkeys(fitted_tile(tile, m, n, k, itemsize, target) for tile in enough))
    if k < whole:
        depth = min(_DEPTHS, key=lambda depth: _taken(whole, depth))
        flat = [dataclasses.replace(tile, k=depth * itemsize // 4, flat=True) for tile in enough]
        flat = list(dict.fromkeys(fitted_tile(tile, m, n, whole, itemsize, target) for tile in flat))
        steps = max(2, -(-whole // depth) * (1 + emulated))  # more are not under way, and would take shared memory
        flat = [dataclasses.replace(tile, stages=min(tile.stages, steps)) for tile in flat]
        each, together = whole // k * share_of_places(op, hints) * _taken(k, fitted[0].k), _taken(whole, depth)
        if emulated and (varies or whole > RESTART):
            fitted, k = flat, whole  # the sum begins again after so many elements, not after so many of each place
        elif together < _CLEARLY * each:
            fitted = [flat[0], fitted[0], *flat[1:]]
        elif together < each:
            fitted = [fitted[0], flat[0], *fitted[1:]]
    walked = [
        dataclasses.replace(
            tile,
            # What is fetched ahead comes by four bytes a thread at least.
            warps=min(tile.warps, tile.n * tile.k * itemsize // (4 * target.warp_size)),
            restart=restart_after(tile, k, varies) * emulated,
        )
        for tile in fitted
    ]
    found = list(dict.fromkeys(walked))[:3]
    if emulated and op.exact is not None and op.exact.product.convolves and whole <= RESTART and not varies:
        # Each step waits for what it reads: three products a step, of planes that are read once, and a third of the steps.
        first = walked[0]
        bytes_of_step = 2 * (first.m + first.n) * first.k * itemsize
        first = dataclasses.replace(
            first,
            together=True,
            warps=8 if first.m * first.n > _ONE_GROUP else first.warps,
            stages=max(1, min(first.stages, target.shared_memory // bytes_of_step)),
        )
        # Where nothing is fetched ahead loads go through the first level of cache, and more programs share a multiprocessor.
        found[:0] = [dataclasses.replace(first, k=min(first.k, _SHALLOW), stages=1), first]
    elif k < whole and few:
        found.insert(1, dataclasses.replace(found[0], stages=1))
    if not emulated and phases:  # written by hand it took 302 µs beside 490 (docs/performance.md)
        others = any(2 * hint(numel(v.shape), hints) >= m * n * batch for v in kernel.leaves)
        tile = _PAIRS_WITH_LIBRARY if calls_library(kernel) else _PAIRS_WITH_OTHERS if others else _PAIRS
        pairs = dataclasses.replace(fitted_tile(tile, m, n, k, itemsize, target), joined=True)
        found.insert(0, pairs)
        if kernel.partials:
            # What is reduced stays in registers. Of narrow tiles four warps hold that, and took 455 µs beside 521 and 2181
            # beside 2740 (docs/performance.md); a wider one spills with four.
            narrow = pairs.m * pairs.n <= _NARROW_PAIRS
            found.insert(1 if narrow else 0, dataclasses.replace(pairs, warps=8))
    return found


def _sums(tile: Product, target: Target) -> int:
    """Numbers of a thread where it has two sums for each of its results."""
    return 2 * tile.m * tile.n // (tile.warps * target.warp_size)


def _taken(summed: int, depth: int) -> int:
    """What steps of ``depth`` along a sum take, in elements: those that they are made for, and what a step takes beside them."""
    return -(-summed // depth) * (depth + _STEP)
