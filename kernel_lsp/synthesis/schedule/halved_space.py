"""Tiles of float32 products that each step splits into float16 halves, see ``halved_tiles.py``."""

from __future__ import annotations

from .schedules import Product
from .target import Target

#: The largest first, and how many are offered; the part of the multiprocessors that have to have one (docs/performance.md).
_TILES = (
    Product(128, 128, 32, 8, 3, halves=True),
    Product(128, 64, 32, 8, 4, halves=True),
    Product(64, 64, 64, 4, 3, halves=True),
    Product(64, 32, 64, 4, 4, halves=True),
    Product(64, 16, 64, 4, 4, halves=True),
)
_MOST, _BUSY = 2, 0.7


def halved(m: int, n: int, batch: int, target: Target) -> tuple[Product, ...]:
    """The largest tiles of which nearly all multiprocessors have one, then smaller ones; the smallest where there are none."""
    programs = [-(-m // tile.m) * -(-n // tile.n) * batch for tile in _TILES]
    enough = [i for i, count in enumerate(programs) if count >= _BUSY * target.multiprocessors]
    first = min(enough, default=len(_TILES) - 1)
    return _TILES[first : first + _MOST]
