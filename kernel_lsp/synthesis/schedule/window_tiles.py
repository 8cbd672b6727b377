"""Convolutions whose windows are split into planes as they are read: tiles, see ``passes/windows_in_tiles.py``."""

from __future__ import annotations

import dataclasses

from .extents import power_of_two
from .schedules import RESTART, Product


def window_tiles(n: int, k: int) -> list[Product]:
    """Tiles for ``n`` output channels and sums of ``k`` elements, the default first.

    Each thread reads elements of its rows, four bytes of each, and splits them. Whether what the next step needs is fetched ahead decides most, and which is
    better is not the same for all sizes (docs/performance.md), so both are offered.
    """
    if n > 64:
        tiles = [Product(128, 128, 32, 8, 2), Product(128, 64, 16, 4, 3), Product(128, 64, 32, 4, 1)]
    elif n > 32:
        tiles = [Product(128, 64, 16, 4, 3), Product(128, 64, 32, 4, 1)]
    else:
        tiles = [Product(128, 32, 32, 4, 1), Product(128, 32, 16, 4, 3)]
    found = (
        dataclasses.replace(
            tile,
            n=max(16, min(tile.n, power_of_two(n))),
            k=max(16, min(tile.k, power_of_two(k))),
            together=True,
            restart=RESTART if k > RESTART else 0,
        )
        for tile in tiles
    )
    return list(dict.fromkeys(found))
