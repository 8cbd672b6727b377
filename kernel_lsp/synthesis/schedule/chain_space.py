"""Which schedules a chained kernel may have, and what they take of a multiprocessor."""

from __future__ import annotations

import dataclasses

import torch

from ..kernel.execution_plan import Hints, Kernel
from .chain_atoms import chain_extents
from .extents import power_of_two
from .schedules import Chained, Schedule
from .target import Target

#: Columns of the second product that a program computes at most, and elements of the first one's sum that it holds of its rows.
_COLUMNS = {2: 512, 4: 256}
_HELD = {2: 256, 4: 128}
_LEAST = 16  # what a product of tiles takes

#: 32-bit registers that a thread can have for tiles, and with how many more some are spilled, which is better than smaller tiles.
REGISTERS, _SPILLED = 232, 320
#: Registers of a thread up to which four warps keep up with eight: with more they spill (docs/performance.md).
_FEW_WARPS = 170


def most_columns(dtype: torch.dtype) -> int:
    """Columns of the second product beyond which the first one is computed several times."""
    return _COLUMNS[dtype.itemsize]


def chain_shared(tile: Chained, first: int, second: int) -> int:
    """Bytes of shared memory: the rows' operand, and as many stages of keys and values. ``first``, ``second``: bytes of an element."""
    return tile.m * tile.k * first + tile.stages * tile.n * (tile.k * first + tile.d * second)


def chain_registers(tile: Chained, second: int) -> float:
    """Registers of a thread for the result's tile, the scores, and what is multiplied. ``second``: bytes of an element.

    Halves are multiplied from shared memory but for the scores. float32 is taken apart in registers: the rows' operand, the scores, and keys or
    values, each in two parts. Compared with what ptxas gives for an H100 this leaves out about 60 for addresses and masks.
    """
    held = tile.m * tile.d + tile.m * tile.n
    held += (
        tile.m * tile.n // 2 if second == 2 else 2 * (tile.m * tile.n + tile.n * max(tile.d, tile.k) + tile.m * tile.k)
    )
    return held / (32 * tile.warps)


def chains(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    """Tiles with as many rows as leave the multiprocessors enough to do, keys as far as registers and shared memory go; the default first."""
    found = chain_extents(kernel, hints)
    first, second = (dtype.itemsize for dtype in found.dtypes)
    half = 4 not in (first, second)
    d = max(_LEAST, min(power_of_two(found.cols), _COLUMNS[second]))
    k = power_of_two(found.depth)
    k = max(_LEAST, k if k <= _HELD[first] else 64 * 2 // first)
    tiles = [
        Chained(128, 128, d, k, 8, 3),
        Chained(128, 64, d, k, 8, 3),
        Chained(128, 128, d, k, 8, 2),
        Chained(64, 64, d, k, 4, 3),
        Chained(64, 32, d, k, 4, 2),
    ]
    few = Chained(128, 64, d, k, 4, 3)
    if chain_registers(few, second) <= _FEW_WARPS:
        tiles.insert(0, few)
    if not half:
        tiles = [
            Chained(64, 32, d, k, 4, 2, "bf16x6"),
            Chained(128, 64, d, k, 8, 2),
            Chained(128, 32, d, k, 8, 2),
            Chained(64, 32, d, k, 4, 2),
            Chained(64, 64, d, k, 4, 2),
            Chained(64, 16, d, k, 4, 2),
        ]
    if kernel.product.tf32:
        tiles = [dataclasses.replace(tile, precision="tf32") for tile in tiles]
    fitted = [_fitted(tile, found.rows, found.keys) for tile in tiles]
    kept: list[Chained] = []
    for most in (REGISTERS, _SPILLED):
        kept = kept or [t for t in fitted if _fits(t, first, second, target, most)]
    if not kept:
        least = fitted[-1]
        while not _fits(least, first, second, target, _SPILLED) and (
            least.stages > 1 or least.n > _LEAST or least.warps < 8
        ):
            least = dataclasses.replace(
                least,
                stages=max(1, least.stages - 1),
                n=max(_LEAST, least.n // 2) if least.stages == 1 else least.n,
                warps=8,
            )
        kept = [least]
    enough = [t for t in kept if -(-found.rows // t.m) * -(-found.cols // t.d) * found.batch >= target.multiprocessors]
    order = [*enough, *(t for t in sorted(kept, key=lambda t: t.m) if t not in enough)]
    return list(dict.fromkeys(order))


def _fitted(tile: Chained, rows: int, keys: int) -> Chained:
    """Never more than the problem needs."""
    return dataclasses.replace(
        tile, m=max(_LEAST, min(tile.m, power_of_two(rows))), n=max(_LEAST, min(tile.n, power_of_two(keys)))
    )


def _fits(tile: Chained, first: int, second: int, target: Target, registers: int) -> bool:
    return chain_shared(tile, first, second) <= target.shared_memory and chain_registers(tile, second) <= registers
