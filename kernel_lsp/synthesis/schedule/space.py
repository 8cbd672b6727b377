"""Which schedules a kernel may have on a target: the one that rules choose, then others that are worth a look."""

from __future__ import annotations

import dataclasses

from ..graph.value import Partial
from ..kernel.execution_plan import Hints, Kernel, hint
from ..passes.tile_parts import PIXELS
from .chain_space import chains
from .column_space import columns
from .cooperative import is_cooperative, kept_operands
from .cost import cost
from .extents import (
    LEAST_TURNED,
    LONGEST_ROW,
    contiguous_is_kept,
    goes_over_windows,
    large_channel,
    power_of_two,
    rows_that_share,
    shared_by,
    step_of_windows,
    total,
    transposed_atoms,
)
from .folding import whole_tiles
from .line_space import by_lines
from .product_space import products
from .recurrent_space import recurrences
from .row_passes import passes
from .schedules import Cooperative, Flat, Passes, Rows, Schedule, Turned, Unrolled
from .target import Target
from .tilings import chunk_length, with_rows


def space(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    """Legal schedules, the default first. ``hints``: the sizes that the default is chosen for."""
    if kernel.chain is not None:
        return chains(kernel, target, hints)
    if kernel.contract is not None:
        tiles = products(kernel, target, hints)
        return list(whole_tiles(kernel, tiles, target, hints)[:_MOST_WHOLE] if kernel.folds else tiles)
    if kernel.loop is not None:
        return recurrences(kernel, target, hints)
    if not kernel.folds:
        return _elementwise(kernel, target, hints)
    if goes_over_windows(kernel, hints):
        return _unrolled(kernel, target, hints)
    if contiguous_is_kept(kernel, hints):
        return list(columns(kernel, target, hints))
    return _rows(kernel, target, hints)


def _elementwise(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    if turned := transposed_atoms(kernel, hints):
        rows = hint(total(kernel.domain, turned), hints)
        if rows < LEAST_TURNED:
            cols = power_of_two(hint(kernel.domain.size[kernel.domain.kept[-1]], hints))
            return list(dict.fromkeys(Turned(power_of_two(rows), min(cols, wide)) for wide in (128, 64, 256)))
        return [Turned(), Turned(warps=8), Turned(64, 32)]
    flat = [Flat(), Flat(512, 8), Flat(512, 2)]
    across = shared_by(kernel, hints, target.l2)
    if across and total(kernel.domain, kernel.domain.kept[across:]) % flat[0].block == 0:
        flat.insert(0, dataclasses.replace(flat[0], across=across))
    if lines := by_lines(kernel, target, hints):
        one, other = (cost(kernel, schedule, target, hints).seconds for schedule in (flat[0], lines[0]))
        return [*lines, *flat] if one - other > LEAST_SAVED else [flat[0], lines[0], *flat[1:]]
    return list(flat)


#: Seconds that lines have to be estimated to save for them to come first: less is not worth a longer text.
LEAST_SAVED = 5e-6


#: Elements of a result from which on what belongs to its channel is loaded apart by default.
_MANY = 9

#: One result a thread, for windows that lie two or more elements apart: what neighbouring threads load lies next to each other then, as far as
#: it can. With four results a thread, which Triton chooses for the sake of the store, a load of a warp is spread over four times as
#: many lines. Of windows that lie one element apart those are in the first level of cache by then (docs/performance.md).
_ONE_EACH = Unrolled(256, 8)


#: Elements of a window from which on a block has one column a thread: what is loaded of a window stays in registers.
_LARGE_WINDOW = 32

#: Threads that a multiprocessor has at least, where each has several rows: with fewer it waits for memory.
_BUSY = 512


def _unrolled(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    """Several rows a lane first where their windows share elements and there are lanes enough; last where these are too few."""
    rows, alone = rows_that_share(kernel, hints), _row_by_row(kernel, hints)
    if rows == 1 or len(passes(kernel)) > 1:
        return alone
    together = _in_rows(kernel, rows, hints)
    results = hint(total(kernel.domain, kernel.domain.kept), hints)
    if results >= rows * target.multiprocessors * _BUSY:
        return [*together, *alone[:2]]
    return [*alone[:3], together[0]]


def _in_rows(kernel: Kernel, rows: int, hints: Hints) -> list[Schedule]:
    """Several rows a lane, with blocks of one channel where its columns fill them well."""
    length = hint(total(kernel.domain, kernel.domain.reduced), hints)
    blocks = [Unrolled(256), Unrolled(128), Unrolled(512)]
    if length >= _LARGE_WINDOW:
        blocks = [Unrolled(128), Unrolled(256), Unrolled(128, 2)]
    found = [dataclasses.replace(one, rows=rows) for one in blocks]
    inner = large_channel(with_rows(kernel, rows), hints, found[0].block, in_rows=True)
    if inner:
        found = [dataclasses.replace(one, inner=inner) for one in found]
    return list(found)


def _row_by_row(kernel: Kernel, hints: Hints) -> list[Schedule]:
    """Also blocks of one channel where that is large: a weight of the channel is loaded once then, and in pooling a division is saved."""
    found = [Unrolled(), Unrolled(256), Unrolled(1024)]
    if step_of_windows(kernel, hints) > 1:
        found.insert(0, _ONE_EACH)
    inner = large_channel(kernel, hints, Unrolled().block)
    if inner:
        apart = [dataclasses.replace(one, inner=inner) for one in found]
        many = hint(total(kernel.domain, kernel.domain.reduced), hints) >= _MANY
        weights = any(
            not set(kernel.domain.kept[-inner:]) & set().union(*(e.free_symbols for e in index))
            for _, index, _ in kernel.accesses
        )
        found = [*apart, Unrolled(256)] if many and weights else [*found, Unrolled(512, 8), apart[0], apart[-1]]
    return list(found)


#: 16 elements a thread under way are so many registers that a multiprocessor has one such program. Where L2 holds a row for each of them, by
#: this part of it, the next pass over a row reads no memory.
_ONE_A_MULTIPROCESSOR, _OF_L2 = Passes(16384, 32), 0.75

#: Rows that a program takes at the most; more of short ones of a known length, so that it has so many elements.
_ROWS, _ELEMENTS_OF_SHORT_ROWS = 32, 1024


def _longest_element(kernel: Kernel) -> int:
    """Bytes of an element of the largest dtype that it reads."""
    return max(value.dtype.itemsize for value, _, _ in kernel.accesses)


def _rows(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    if kernel.in_chunks:
        block = min(4096, chunk_length(kernel))
        return [Passes(block, 8), Passes(block, 16), Passes(block, 4)]
    domain = kernel.domain
    length, count = hint(total(domain, domain.reduced), hints), hint(total(domain, domain.kept), hints)
    if any(isinstance(v.op, Partial) and v.op.length == PIXELS for v in kernel.leaves):
        # Tiles of images that may become larger than a row in registers.
        block = max(128, min(4096, power_of_two(length)))
        return [Passes(block, 4), Passes(block, 8), Passes(block, 2)]
    if length > LONGEST_ROW:
        held = length * _longest_element(kernel) * target.multiprocessors <= _OF_L2 * target.l2
        walked: list[Schedule] = [Passes(8192, 16), *([_ONE_A_MULTIPROCESSOR] if held else []), Passes(8192, 32)]
        return _with_shared_rows(kernel, walked, length, target, hints)
    rows = 1
    # Several short rows a program, as long as every multiprocessor has two programs.
    if length <= 1024 and domain.kept and count >= 2 * target.multiprocessors:
        known = total(domain, domain.reduced).is_number  # else a call may have rows that are much longer
        most = max(_ROWS, _ELEMENTS_OF_SHORT_ROWS // power_of_two(length)) if known else _ROWS
        rows = max(1, min(most, 2048 // power_of_two(length), power_of_two(count // (2 * target.multiprocessors))))
    warps = 4 if power_of_two(length) * rows <= 4096 else 8
    found: list[Schedule] = [Rows(rows, warps), Rows(rows, 2 * warps), Rows(rows, warps // 2)]
    if length > 8192:
        found.append(Passes(8192, 16))
        if len(passes(kernel)) < len(passes(kernel, apart=True)):
            found.append(Passes(8192, 16, apart=True))
    return found


#: Elements of a block of a row that programs share, where a program keeps one operand of it, and programs that run at once on a multiprocessor; of
#: half the elements, too. So a thread has 168 and 96 registers (docs/performance.md).
_SHARED = ((8192, 3), (4096, 5))
_SHARING_WARPS = 4


def _with_shared_rows(
    kernel: Kernel, walked: list[Schedule], length: int, target: Target, hints: Hints
) -> list[Schedule]:
    """Also rows that several programs take each; first where that is estimated to save enough."""
    operands = power_of_two(len(kept_operands(kernel, hints)))
    known = target.capability is not None  # else nothing is known of how many programs run at once
    varies = not total(kernel.domain, kernel.domain.reduced).is_number
    walk = next(one for one in walked if isinstance(one, Passes)) if varies else None
    shared: list[Schedule] = []
    for elements, at_once in _SHARED if known and operands <= _MOST_KEPT and is_cooperative(kernel) else ():
        block, programs = elements // operands, at_once * target.multiprocessors
        if -(-length // block) < programs:
            registers = target.registers // (at_once * _SHARING_WARPS * target.warp_size) // 8 * 8
            shared.append(Cooperative(block, programs, programs - 1, _SHARING_WARPS, at_once, registers, walk))
    if not shared:
        return [*walked, Passes(8192, 8)]
    one, other = (cost(kernel, schedule, target, hints).seconds for schedule in (walked[0], shared[0]))
    return [*shared, *walked] if one - other > LEAST_SAVED else [walked[0], *shared, *walked[1:]]


#: Operands of a block that a program keeps at the most.
_MOST_KEPT = 2


#: Tiles that are offered of a product whose kernel reduces its rows or columns.
_MOST_WHOLE = 4
