"""What a product's tile takes: how much of it a problem needs, and after how many elements its sum begins again."""

from __future__ import annotations

import dataclasses

from ..graph.value import Contract
from .extents import power_of_two
from .schedules import RESTART, Product
from .target import Target


def fitted_tile(tile: Product, m: int, n: int, k: int, itemsize: int, target: Target) -> Product:
    """Never more than the problem needs, and no more stages than shared memory holds."""
    depth = tile.k * 4 // itemsize  # halves: as many bytes of each row at a time
    stages = tile.stages
    while stages > 1 and (tile.m + tile.n) * depth * itemsize * stages > target.shared_memory:
        stages -= 1
    return dataclasses.replace(
        tile,
        m=max(16, min(tile.m, power_of_two(m))),
        n=max(16, min(tile.n, power_of_two(n))),
        k=max(16, min(depth, power_of_two(k))),
        stages=stages,
    )


def sum_varies(op: Contract) -> bool:
    """Whether a sum's length varies, so that it may become long."""
    return not all(op.size(letter).is_number for letter in op.summed)


def restart_after(tile: Product, k: int, varies: bool) -> int:
    """Equal chunks of whole blocks, none longer than ``RESTART``; 0 where one is all and stays so."""
    chunks = -(-k // RESTART)
    if chunks == 1 and varies:
        return RESTART // tile.k * tile.k
    return -(-k // (chunks * tile.k)) * tile.k if chunks > 1 else 0
