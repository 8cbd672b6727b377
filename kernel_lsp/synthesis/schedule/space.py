"""Which schedules a kernel may have on a target: the one that rules choose, then others that are worth a look."""

from __future__ import annotations

import dataclasses
import math

from ..kernel.steps import Hints, Kernel, hint
from .extents import (
    LONGEST_ROW,
    contiguous_is_kept,
    goes_over_windows,
    inner_atoms,
    power_of_two,
    product_extents,
    total,
    transposed_atom,
)
from .recurrent_space import recurrences
from .running import tiles_carried
from .schedules import Columns, Flat, Passes, Product, Rows, Schedule, Turned, Unrolled
from .target import Target


def space(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    """Legal schedules, the default first. ``hints``: the sizes that the default is chosen for."""
    if kernel.exact:  # seldom runs, but is compiled: a small tile
        m, n, k, _, dtype = product_extents(kernel, hints)
        return [_fitted(Product(64, 64, 32, 4, 3), m, n, k, dtype.itemsize, target)]
    if kernel.contract is not None:
        return _products(kernel, target, hints)
    if kernel.loop is not None:
        return recurrences(kernel, target, hints)
    if not kernel.folds:
        return _elementwise(kernel, hints)
    if goes_over_windows(kernel, hints):
        return [Unrolled(), Unrolled(256), Unrolled(1024)]
    if contiguous_is_kept(kernel, hints):
        return _columns(kernel, target, hints)
    return _rows(kernel, target, hints)


def _elementwise(kernel: Kernel, hints: Hints) -> list[Schedule]:
    if transposed_atom(kernel, hints) is not None:
        return [Turned(), Turned(warps=8), Turned(64, 32)]
    return [Flat(), Flat(512, 8), Flat(512, 2)]


def _rows(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    if kernel.in_chunks:
        return [Passes(4096, 8), Passes(4096, 16), Passes(4096, 4)]
    domain = kernel.domain
    length, count = hint(total(domain, domain.reduced), hints), hint(total(domain, domain.kept), hints)
    if length > LONGEST_ROW:
        return [Passes(8192, 16), Passes(8192, 32), Passes(8192, 8)]
    rows = 1
    # Several short rows a program, as long as every multiprocessor has two programs.
    if length <= 1024 and domain.kept and count >= 2 * target.multiprocessors:
        rows = max(1, min(32, 2048 // power_of_two(length), power_of_two(count // (2 * target.multiprocessors))))
    warps = 4 if power_of_two(length) * rows <= 4096 else 8
    found: list[Schedule] = [Rows(rows, warps), Rows(rows, 2 * warps), Rows(rows, warps // 2)]
    if length > 8192:
        found.append(Passes(8192, 16))
    return found


def _columns(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    domain = kernel.domain
    inner = inner_atoms(kernel, hints)
    outer = [a for a in domain.kept if a not in inner]
    length, width = hint(total(domain, domain.reduced), hints), hint(total(domain, inner), hints)
    cols = min(64, power_of_two(width))
    if hint(total(domain, outer), hints) * -(-width // cols) < 2 * target.multiprocessors:
        cols = min(cols, 32)
    rows = min(power_of_two(length), max(1, 4096 // cols), 128)
    if rows < length:  # what is carried along stays in registers beside the tile
        rows = max(1, min(rows, 8192 // cols // tiles_carried(kernel)))
    first = Columns(rows, cols)
    return [first, dataclasses.replace(first, warps=8), dataclasses.replace(first, warps=2)]


def _products(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    m, n, k, batch, dtype = product_extents(kernel, hints)
    if outer := kernel.product.outer:
        k //= math.prod(hint(kernel.product.size(letter), hints) for letter in outer)
        return _walked(kernel, m, n, k, batch, dtype.itemsize, target)
    tiles = -(-m // 128) * -(-n // 64) * batch
    first = Product(128, 64, 32, 8, 3)
    if dtype.itemsize == 2 and tiles >= 2 * target.multiprocessors:
        first = Product(128, 128, 32, 8, 3)
    elif tiles < target.multiprocessors:  # smaller tiles, so that every multiprocessor has one
        first = Product(64, 64, 32, 4, 4)
    others = [
        Product(64, 64, 16, 4, 4),
        Product(128, 128, 32, 8, 3),
        *([Product(128, 64, 32, 8, 3, "bf16x6")] if dtype.itemsize == 4 else []),
    ]
    fitted = [_fitted(tile, m, n, k, dtype.itemsize, target) for tile in [first, *others]]
    if kernel.product.tf32:
        fitted = [dataclasses.replace(tile, precision="tf32") for tile in fitted]
    return list(dict.fromkeys(fitted))


#: Summed elements after which a tensor core's float32 sum has lost so much that it should begin again: wgmma truncates.
_RESTART = 512


def _walked(kernel: Kernel, m: int, n: int, k: int, batch: int, itemsize: int, target: Target) -> list[Schedule]:
    """For products in half precision whose steps go through outer places, too: tiles as large as leaves every multiprocessor one."""
    tiles = [
        Product(128, 256, 32, 8, 3),
        Product(128, 128, 32, 8, 3),
        Product(128, 128, 32, 4, 3),
        Product(64, 128, 32, 4, 4),
        Product(64, 64, 32, 4, 4),
    ]
    enough = [tile for tile in tiles if -(-m // tile.m) * -(-n // tile.n) * batch >= target.multiprocessors]
    fitted = [_fitted(tile, m, n, k, itemsize, target) for tile in enough or tiles[-1:]]
    # A sum of a length that varies may become long.
    op = kernel.product
    varies, emulated = not all(op.size(letter).is_number for letter in op.summed), op.scaled != 1.0
    found: list[Schedule] = [dataclasses.replace(tile, restart=_restart(tile, k, varies) * emulated) for tile in fitted]
    return list(dict.fromkeys(found))[:3]


def _restart(tile: Product, k: int, varies: bool) -> int:
    """Equal chunks of whole blocks, none longer than ``_RESTART``; 0 where one is all and stays so."""
    chunks = -(-k // _RESTART)
    if chunks == 1 and varies:
        return _RESTART // tile.k * tile.k
    return -(-k // (chunks * tile.k)) * tile.k if chunks > 1 else 0


def _fitted(tile: Product, m: int, n: int, k: int, itemsize: int, target: Target) -> Product:
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
