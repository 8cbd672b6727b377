"""Schedules of reductions whose results are neighbours in memory: how many columns a program takes, and whether it keeps all their rows."""

from __future__ import annotations

import dataclasses

import sympy

from ..graph.sizes import power_of_two_within
from ..kernel.execution_plan import Hints, Kernel, hint
from .extents import inner_atoms, power_of_two, total
from .row_passes import tiles_carried, times_read
from .schedules import Columns
from .target import Target

#: Elements of a tile of four warps, 32 a thread, and of eight.
_OF_FOUR, _OF_EIGHT = 4096, 8192

#: Elements that a thread keeps of all its tiles at the most.
_OF_THREAD = 64

#: Bytes that a row of a tile has at least where tiles are made narrower so that all rows fit: two sectors of memory.
_LEAST_BYTES = 64

#: The most rows of a tile whose kernel reads its operand once anyway.
_MOST_ROWS = 128


def columns(kernel: Kernel, target: Target, hints: Hints) -> list[Columns]:
    """The default first: all rows are kept where they fit, and where a walk would read them again or their number is known."""
    domain, enough = kernel.domain, 2 * target.multiprocessors
    inner = inner_atoms(kernel, hints)
    outer = hint(total(domain, [a for a in domain.kept if a not in inner]), hints)
    n_rows = total(domain, domain.reduced)
    length, width = hint(n_rows, hints), hint(total(domain, inner), hints)
    tall, cols = power_of_two(length), min(64, power_of_two(width))
    if outer * -(-width // cols) < enough:
        cols = min(cols, 32)
    rows = min(tall, max(1, _OF_FOUR // cols), _MOST_ROWS)
    small = rows >= length and n_rows.is_number
    walking = [] if small and not kernel.in_chunks else _walking(kernel, rows, cols, length)
    if kernel.in_chunks or (times_read(kernel) == 1 and not small):
        return walking
    least, tiles = _tiles(kernel, inner)
    cols = min(cols, max(power_of_two_within(_OF_EIGHT // tall), _LEAST_BYTES // least))
    if tall * cols > _OF_FOUR and tall * cols * tiles > _fit(target, 8):
        return walking
    return [*_keeping(tall, cols, outer, width, target), *walking[:1]]


def _fit(target: Target, warps: int) -> int:
    """Elements that so many warps keep at the most."""
    return _OF_THREAD * target.warp_size * warps


def _keeping(rows: int, cols: int, outer: int, width: int, target: Target) -> list[Columns]:
    """Tiles of all rows, the default first."""
    first = Columns(rows, cols, 4 if rows * cols <= _OF_FOUR else 8, whole=True)
    found = [first]
    if 2 * rows * cols <= _OF_EIGHT and outer * (width // (2 * cols)) >= 2 * target.multiprocessors:
        found.append(Columns(rows, 2 * cols, 8, whole=True))  # more that lies next to each other
    found += [dataclasses.replace(first, warps=warps) for warps in (2 * first.warps, first.warps // 2)]
    if cols > 32:
        found.append(Columns(rows, 32, 4, whole=True))
    return [one for one in found if one is first or rows * one.cols <= _fit(target, one.warps)]


def _walking(kernel: Kernel, rows: int, cols: int, length: int) -> list[Columns]:
    """Tiles of some rows, the default first."""
    if rows < length:  # what is carried along stays in registers beside the tile
        rows = max(1, min(rows, _OF_EIGHT // cols // tiles_carried(kernel)))
    first = Columns(rows, cols)
    return [first, dataclasses.replace(first, warps=8), dataclasses.replace(first, warps=2)]


def _tiles(kernel: Kernel, inner: list[sympy.Symbol]) -> tuple[int, int]:
    """Of the loads that vary along rows and columns, the bytes of the least element, and how many there are."""
    found: dict[tuple[object, ...], int] = {}
    for value, index, _ in kernel.accesses:
        symbols = set().union(*(e.free_symbols for e in index))
        if symbols & set(kernel.domain.reduced) and symbols & set(inner):
            found[value, index] = value.dtype.itemsize
    return min(found.values(), default=4), max(1, len(found))
