"""Schedules of reductions whose results are neighbours in memory: how many columns a program takes, and whether it keeps all their rows."""

from __future__ import annotations

import dataclasses

import sympy

from ..graph.sizes import power_of_two_within
from ..graph.value import Partial
from ..kernel.execution_plan import Hints, Kernel, hint
from .extents import inner_atoms, power_of_two, total
from .row_passes import tiles_carried, times_read
from .schedules import Columns
from .target import Target

#: Elements of a tile of four warps, 32 a thread, and of eight.
_OF_FOUR, _OF_EIGHT = 4096, 8192

#: Columns of a tile; of short ones it has more, up to these, so that a thread has whole columns (docs/performance.md).
_COLUMNS, _MOST_COLUMNS = 64, 512

#: How many lanes there may be for each column where tiles have more than those.
_LANES = 1.15

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
    tall = power_of_two(length)
    loaded = _loaded(kernel, inner)
    least, tiles = min(loaded, default=4), max(1, len(loaded))
    cols, warps = _wide(tall, outer, width, sum(loaded), enough)
    if outer * -(-width // cols) < enough:
        cols = min(cols, 32)
    rows = min(tall, max(1, _OF_FOUR // cols), _MOST_ROWS)
    small = rows >= length and n_rows.is_number and not kernel.in_chunks
    walking: list[Columns] = []
    if not small:
        walking = _with_others(_walking(kernel, rows, cols, length, warps), outer, width, target, whole=rows >= length)
    # What chunks come to is little: read again it costs nothing, and kept it would bound how many chunks there may be.
    gathers = any(isinstance(v.op, Partial) for v in kernel.leaves)
    if not small and (kernel.in_chunks or gathers or times_read(kernel) == 1):
        return walking
    broad, cols = min(cols, _COLUMNS), min(cols, max(power_of_two_within(_OF_EIGHT // tall), _LEAST_BYTES // least))
    if tall * cols > _OF_FOUR and tall * cols * tiles > _fit(target, 8):
        return walking
    keeping = Columns(tall, cols, warps if tall * cols <= _OF_FOUR else 8, whole=True)
    kept = _with_others(keeping, outer, width, target, whole=True)
    if not n_rows.is_number:  # a call may have more than a tile holds
        kept = [dataclasses.replace(one, beyond=_beyond(kernel, one, broad)) for one in kept]
    return [*kept, *walking[:1]]


def _wide(tall: int, outer: int, width: int, bytes_loaded: int, enough: int) -> tuple[int, int]:
    """Columns and warps of a tile of ``tall`` rows, of each element of which so many bytes are loaded: as many columns as leave ``enough`` programs."""
    short = _OF_FOUR // (tall * max(1, bytes_loaded // 4))  # a register has four bytes
    cols, warps = min(max(_COLUMNS, min(short, _MOST_COLUMNS)), power_of_two(width)), 4
    while cols > _COLUMNS and (outer * -(-width // cols) < enough or -(-width // cols) * cols > _LANES * width):
        cols, warps = cols // 2, max(1, warps // 2)
    return cols, warps


def _fit(target: Target, warps: int) -> int:
    """Elements that so many warps keep at the most."""
    return _OF_THREAD * target.warp_size * warps


def _walking(kernel: Kernel, rows: int, cols: int, length: int, warps: int = 4) -> Columns:
    if rows < length:  # what is carried along stays in registers beside the tile
        rows = max(1, min(rows, _OF_EIGHT // cols // tiles_carried(kernel)))
    return Columns(rows, cols, warps)


def _beyond(kernel: Kernel, kept: Columns, cols: int) -> Columns:
    """The walk down ``cols`` columns where there are more rows than ``kept`` keeps."""
    rows = min(max(1, _OF_FOUR // cols), _MOST_ROWS)
    return dataclasses.replace(_walking(kernel, rows, cols, kept.most_rows + 1), above=kept.most_rows)


def _with_others(first: Columns, outer: int, width: int, target: Target, *, whole: bool) -> list[Columns]:
    """A schedule and those near it. ``whole``: its tile has all rows of the example."""
    found, programs = [first], outer * (width // (2 * first.cols))
    wide = 2 * first.rows * first.cols <= _OF_EIGHT and programs >= 2 * target.multiprocessors
    if whole and wide:
        found.append(dataclasses.replace(first, cols=2 * first.cols, warps=8))  # more that lies next to each other
    found += [dataclasses.replace(first, warps=warps) for warps in (2 * first.warps, first.warps // 2) if warps]
    if whole and first.cols > 32:
        found.append(dataclasses.replace(first, cols=32, warps=4))
    return [one for one in found if one is first or one.rows * one.cols <= _fit(target, one.warps)]


def _loaded(kernel: Kernel, inner: list[sympy.Symbol]) -> list[int]:
    """The bytes of an element of each load that varies along rows and columns."""
    found: dict[tuple[object, ...], int] = {}
    for value, index, _ in kernel.accesses:
        symbols = set().union(*(e.free_symbols for e in index))
        if symbols & set(kernel.domain.reduced) and symbols & set(inner):
            found[value, index] = value.dtype.itemsize
    return list(found.values())
