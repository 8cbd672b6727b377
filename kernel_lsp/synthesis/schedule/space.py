"""Which schedules a kernel may have on a target: the one that rules choose, then others that are worth a look."""

from __future__ import annotations

import dataclasses
import math

import torch

from ..graph.value import Contract, Partial, numel
from ..kernel.execution_plan import Hints, Kernel, hint
from ..kernel.reads import calls_library
from ..passes.float8_products import of_float8
from ..passes.layout import of_few_channels
from ..passes.planes import SHORT_SUM
from ..passes.tile_parts import PIXELS
from .chain_space import chains
from .column_space import columns
from .cooperative import is_cooperative, kept_operands
from .cost import cost
from .extents import (
    LEAST_TURNED,
    LONGEST_ROW,
    alternating,
    contiguous_is_kept,
    contract_atoms,
    goes_over_windows,
    large_channel,
    power_of_two,
    product_extents,
    share_of_places,
    shared_by,
    split_in_tile,
    step_of_windows,
    total,
    transposed_atoms,
)
from .folding import whole_tiles
from .halved_space import halved
from .line_space import by_lines
from .pointwise import pointwise_tiles
from .recurrent_space import recurrences
from .rewritings import halves_pay
from .row_passes import passes
from .schedules import RESTART, Cooperative, Flat, Passes, Product, Rows, Schedule, Turned, Unrolled
from .target import Target
from .thin_tiles import thin_tiles
from .tilings import chunk_length
from .window_tiles import window_tiles


def space(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    """Legal schedules, the default first. ``hints``: the sizes that the default is chosen for."""
    if kernel.chain is not None:
        return chains(kernel, target, hints)
    if kernel.contract is not None:
        tiles = _products(kernel, target, hints)
        return list(whole_tiles(kernel, tiles, target, hints)[:_MOST_WHOLE] if kernel.folds else tiles)
    if kernel.loop is not None:
        return recurrences(kernel, target, hints)
    if not kernel.folds:
        return _elementwise(kernel, target, hints)
    if goes_over_windows(kernel, hints):
        return _unrolled(kernel, hints)
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


def _unrolled(kernel: Kernel, hints: Hints) -> list[Schedule]:
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
        rows = max(1, min(32, 2048 // power_of_two(length), power_of_two(count // (2 * target.multiprocessors))))
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


#: Programs of a kernel that seldom has anything to do (docs/performance.md).
_MOST_PROGRAMS = 1024


def _products(kernel: Kernel, target: Target, hints: Hints) -> list[Product]:
    m, n, k, batch, dtype = product_extents(kernel, hints)
    if kernel.exact:  # seldom runs, but is compiled: a small tile
        tile = _fitted(Product(64, 64, 32, 4, 3, programs=_MOST_PROGRAMS), m, n, k, dtype.itemsize, target)
        # Also for products of few results: long sums in tf32x3 are further from eager's than is allowed there, in bf16x6 they are not.
        six = dataclasses.replace(tile, precision="bf16x6", restart=_restart(tile, k, _sum_varies(kernel.product)))
        return [six if kernel.stands_for.sides else tile]
    if kernel.product.raised and any(split_in_tile(kernel.product)):
        return window_tiles(n, k // hint(kernel.product.size(kernel.product.planes), hints))
    if any(split_in_tile(kernel.product)):
        return list(thin_tiles(m, n, k // hint(kernel.product.size(kernel.product.planes), hints), batch, target))
    if kernel.peaks:
        return list(pointwise_tiles(kernel, m, n, k, batch, target, hints))
    if of_float8(kernel.product):
        return _float8_products(kernel.product, m, n, k, batch, target)
    if (op := kernel.product).begins_again:
        return list(_begun_again(m, n, k // hint(op.size(op.planes), hints), batch, op.begins_again, target))
    if op.outer or op.exact is not None:
        around, products = (math.prod(hint(op.size(x), hints) for x in letters) for letters in (op.outer, op.planes))
        return _walked(kernel, m, n, k // around, k // products, batch, dtype.itemsize, target, hints)
    split: list[Product] = []
    # A tile of whole rows, or columns, is too wide for registers beside its halves.
    if dtype == torch.float32 and not (op.tf32 or kernel.folds) and halves_pay(op, target, hints):
        split = [_fitted(tile, m, n, k, dtype.itemsize, target) for tile in halved(m, n, batch, target)]
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
    fitted = [
        dataclasses.replace(tile, restart=_restart(tile, k, _sum_varies(kernel.product)))
        if tile.precision == "bf16x6" and k > RESTART
        else tile
        for tile in fitted
    ]
    fitted = list(dict.fromkeys(fitted))
    return [*dict.fromkeys(split), *([fitted[0], fitted[-1]] if split else fitted)]  # the last one errs the least


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


def _walked(
    kernel: Kernel, m: int, n: int, k: int, whole: int, batch: int, itemsize: int, target: Target, hints: Hints
) -> list[Product]:
    """For products in half precision whose steps go through outer places, too: tiles as large as leaves every multiprocessor one.

    ``k``: what is summed of one place, ``whole``: of all.
    """
    # One group of four warps feeds a tile of 128 x 128 better than two do: 1166 µs beside 1490 (docs/performance.md).
    # Where phases leave gaps between results, it would have 128 of them a thread at places of their own: 2888 bytes of spills.
    phases = alternating(kernel, contract_atoms(kernel)) is not None
    # Of few channels, each piece of a row has an address of its own, and a group of four warps spills (docs/performance.md).
    few = kernel.product.exact is not None and of_few_channels(kernel.product.exact.product)
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
    varies, emulated = _sum_varies(op), op.scaled != 1.0
    if emulated:
        held = ((tile, _fitted(tile, m, n, k, itemsize, target)) for tile in enough)
        enough = [tile for tile, one in held if _sums(one, target) <= _MOST_SUMS] or enough[-1:]
    fitted = list(dict.fromkeys(_fitted(tile, m, n, k, itemsize, target) for tile in enough))
    if k < whole:
        depth = min(_DEPTHS, key=lambda depth: _taken(whole, depth))
        flat = [dataclasses.replace(tile, k=depth * itemsize // 4, flat=True) for tile in enough]
        flat = list(dict.fromkeys(_fitted(tile, m, n, whole, itemsize, target) for tile in flat))
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
            restart=_restart(tile, k, varies) * emulated,
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
        pairs = dataclasses.replace(_fitted(tile, m, n, k, itemsize, target), joined=True)
        found.insert(0, pairs)
        if kernel.partials:
            # What is reduced stays in registers. Of narrow tiles four warps hold that, and took 455 µs beside 521 and 2181
            # beside 2740 (docs/performance.md); a wider one spills with four.
            narrow = pairs.m * pairs.n <= _NARROW_PAIRS
            found.insert(1 if narrow else 0, dataclasses.replace(pairs, warps=8))
    return found


def _sum_varies(op: Contract) -> bool:
    """Whether a sum's length varies, so that it may become long."""
    return not all(op.size(letter).is_number for letter in op.summed)


def _sums(tile: Product, target: Target) -> int:
    """Numbers of a thread where it has two sums for each of its results."""
    return 2 * tile.m * tile.n // (tile.warps * target.warp_size)


def _begun_again(m: int, n: int, k: int, batch: int, depth: int, target: Target) -> list[Product]:
    """For products of planes whose sum begins again in each step of ``depth``: a step takes both planes of each operand, and its own sum is in registers, too."""
    tiles = [Product(128, 128, 32, 8, 3), Product(64, 128, 32, 4, 3), Product(64, 64, 32, 4, 3)]
    if k <= SHORT_SUM:  # one step: of several programs on a multiprocessor some store while others load
        tiles = [Product(128, 64, 32, 8, 3), Product(64, 64, 32, 4, 3), Product(128, 128, 32, 8, 3)]
    enough = [tile for tile in tiles if -(-m // tile.m) * -(-n // tile.n) * batch >= target.multiprocessors]
    # Both planes of float16 are as many bytes as one of float32.
    fitted = [
        _fitted(tile, m, n, k, 4, target)
        for tile in (
            dataclasses.replace(t, k=depth, stages=t.stages * SHORT_SUM // depth) for t in enough or tiles[-1:]
        )
    ]
    return list(dict.fromkeys(dataclasses.replace(tile, together=True, restart=tile.k) for tile in fitted))


def _taken(summed: int, depth: int) -> int:
    """What steps of ``depth`` along a sum take, in elements: those that they are made for, and what a step takes beside them."""
    return -(-summed // depth) * (depth + _STEP)


def _restart(tile: Product, k: int, varies: bool) -> int:
    """Equal chunks of whole blocks, none longer than ``RESTART``; 0 where one is all and stays so."""
    chunks = -(-k // RESTART)
    if chunks == 1 and varies:
        return RESTART // tile.k * tile.k
    return -(-k // (chunks * tile.k)) * tile.k if chunks > 1 else 0


#: Summed float8 elements after which the sum is taken from the tensor cores, as cuBLAS does without "fast accumulation"; the
#: fewest that they take at a time; the rows that they take at a time.
_SHORT, _LEAST_DEPTH, _ROWS = 128, 32, 64

#: Bytes that the programs of a multiprocessor have on their way from memory, four times what a bandwidth of 25 GB/s and a latency of
#: one microsecond ask for; the most stages.
_UNDER_WAY, _MOST_STAGES = 96 * 1024, 8


def _float8_products(op: Contract, m: int, n: int, k: int, batch: int, target: Target) -> list[Product]:
    """For products of float8 numbers, also where these are multiplied as float16: tiles as deep as a line of shared memory, and deeper.

    Tensor cores take 64 rows of one operand, and from 8 columns of the other: of a thin product the longer side has to be
    the rows. Its time is that of reading the longer operand, for which many bytes have to be under way.
    """
    thin = min(m, n) <= _ROWS
    exchanged = thin and n > m
    if exchanged:
        m, n = n, m
    columns = power_of_two(n)
    deep = 64 if op.full_sums else 128  # what is converted stays in registers
    tiles = [
        Product(128, 128, deep, 8, 3),
        Product(128, 256, deep, 8, 3),
        Product(128, 64, deep, 8, 4),
        Product(64, 64, deep, 4, 4),
    ]
    if thin:
        tiles = [
            Product(_ROWS, columns, 128, 4, _MOST_STAGES),
            Product(_ROWS, columns, 256, 4, _MOST_STAGES),
            Product(_ROWS, columns, 256, 8, _MOST_STAGES),
            Product(_ROWS, columns, 512, 8, _MOST_STAGES),
            Product(2 * _ROWS, columns, 128, 4, _MOST_STAGES),
            Product(2 * _ROWS, columns, 128, 8, _MOST_STAGES),
        ]
    elif -(-m // 128) * -(-n // 128) * batch < target.multiprocessors:  # so that every multiprocessor has a tile
        tiles = tiles[2:]
    varies = _sum_varies(op)
    found: list[Product] = []
    for tile in tiles:
        depth = max(_LEAST_DEPTH, min(tile.k, power_of_two(k)))
        rows, columns = (max(16, min(most, power_of_two(size))) for most, size in ((tile.m, m), (tile.n, n)))
        held = (rows + columns) * depth
        stages = min(tile.stages, max(2, -(-k // depth)), target.shared_memory // held)
        if thin:
            programs = -(-m // rows) * -(-n // columns) * batch
            stages = min(stages, max(3, _UNDER_WAY // (-(-programs // target.multiprocessors) * held)))
        tile = dataclasses.replace(tile, m=rows, n=columns, k=depth, stages=max(1, stages), exchanged=exchanged)
        restart = _restart(tile, k, varies) if op.full_sums else min(depth, _SHORT)
        found.append(dataclasses.replace(tile, restart=0 if op.short_sums else restart))
    return list(dict.fromkeys(found))


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
