"""Thin products: tiles where the larger operand is split into planes as it is read, see ``passes/thin_products.py``."""

from __future__ import annotations

import dataclasses

from .extents import power_of_two
from .schedules import Product
from .target import Target

#: Bytes of an element on chip: of the larger operand in float32, of both planes of the other.
_SPLIT, _PLANES = 4, 4

#: Tiles that are offered.
_MOST = 4


def thin_tiles(m: int, n: int, k: int, batch: int, target: Target) -> list[Product]:
    """Tiles for ``m`` rows of the larger operand and ``n`` of the smaller, the default first.

    All columns in one tile up to 128, so that an element is split once. A step's own sum is in registers beside the whole one and both
    planes of the rows: 238 registers a thread with 128 x 128 and eight warps, while 256 x 128 spills (docs/performance.md). With few
    columns bytes are what takes time: small tiles, of which several are on a multiprocessor.
    """
    if n > 64:
        tiles = [
            Product(128, 128, 64, 8, 3),
            Product(128, 64, 64, 8, 3),
            Product(64, 128, 32, 4, 4),
            Product(128, 128, 32, 8, 4),
        ]
    elif n > 32:
        tiles = [
            Product(128, 64, 64, 8, 3),
            Product(64, 64, 64, 4, 3),
            Product(128, 64, 32, 8, 4),
            Product(64, 64, 32, 4, 4),
        ]
    else:
        tiles = [Product(64, 32, 64, 4, 4), Product(128, 32, 64, 4, 3), Product(64, 32, 128, 4, 3)]
    fitted = list(dict.fromkeys(_fitted(tile, m, n, k, target) for tile in tiles))

    def programs(tile: Product) -> int:
        return -(-m // tile.m) * -(-n // tile.n) * batch

    # As many programs as multiprocessors, or nearly so, before fewer.
    return sorted(fitted, key=lambda tile: programs(tile) < 0.9 * target.multiprocessors)[:_MOST]


def _fitted(tile: Product, m: int, n: int, k: int, target: Target) -> Product:
    """Never more than the problem needs, and no more stages than there are steps or than shared memory holds. The sum begins again in each step."""
    rows, columns = (max(16, min(most, power_of_two(size))) for most, size in ((tile.m, m), (tile.n, n)))
    depth = max(16, min(tile.k, power_of_two(k)))
    stages = min(tile.stages, max(2, -(-k // depth)))
    while stages > 1 and (rows * _SPLIT + columns * _PLANES) * depth * stages > target.shared_memory:
        stages -= 1
    return dataclasses.replace(tile, m=rows, n=columns, k=depth, stages=stages, together=True, restart=depth)
