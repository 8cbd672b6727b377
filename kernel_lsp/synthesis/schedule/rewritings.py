"""Whether a rewriting of the graph is estimated to pay: products that are split into planes, rounded, joined or cut in parts.

Estimates as in cost.py: bytes over bandwidth or operations over rate, and what launches take.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ..graph.functions import TO_HALF
from ..graph.sizes import power_of_two_within
from ..graph.value import Contract, Value, numel, viewed
from ..kernel.execution_plan import Hints, hint
from ..passes.float8_products import of_float8
from ..passes.planes import in_pieces
from ..passes.tile_parts import PIXELS
from ..passes.tile_sums import TileSums
from .chain_atoms import most_columns
from .cost import bytes_of
from .extents import LONGEST_ROW, multiplied, share_of_places
from .target import Target


def chain_pays(
    second: Contract, first: Contract, weights: Value, target: Target, hints: Hints, *, planes: bool
) -> bool:
    """Whether two products take less time in one kernel than with their scores in memory.

    ``planes``: float32 may be multiplied in float16 planes there. The scores are written and read once in float32, the second
    product's left operand, ``weights``, once in its dtype.
    """
    scores = hint(numel(weights.shape), hints)
    apart, together = 2 * LAUNCH + scores * 2 * (4 + weights.dtype.itemsize) / target.bandwidth, 0.0
    columns = [letter for letter in second.axes if second.varies(letter) == (False, True)]
    width = math.prod(hint(second.size(letter), hints) for letter in columns)
    times = -(-width // most_columns(weights.dtype))  # the first product, for each block of columns
    for op, often in ((first, times), (second, 1)):
        whole = multiplied(op) != torch.float32
        rate = target.rate("float16") * REACHED if whole else target.rate("tf32") * REACHED_SPLIT / 3
        planes_pay_here = planes and not whole and planes_pay(op, target, hints)
        memory = sum(2 * bytes_of(v, hints) for v in (op.left, op.right)) / target.bandwidth + 5 * LAUNCH
        in_planes = memory + _operations(op, hints) * 3 / (REACHED * target.rate("float16"))
        apart += in_planes if planes_pay_here else _operations(op, hints) / rate
        together += often * _operations(op, hints) / rate
    return together < apart


#: Part of the tensor cores' rate that products reach: of tiles of halves, of float32 that a kernel splits as it goes, of float32 that it rounds
#: to float16 as it goes (an estimate, from the bytes that a step moves through shared memory), of float32 of which it splits both operands into
#: planes as it goes (an estimate), and cuDNN's TF32 convolutions of tensors whose channels are not last.
REACHED, REACHED_SPLIT, REACHED_ROUNDING, REACHED_SPLITTING, REACHED_CUDNN = 0.6, 0.35, 0.4, 0.3, 0.25

#: The same of float32 whose tiles each step splits into float16 halves: 0.25 of 1024 x 1024 x 1024 on an H200, 0.35 of 2048 x 1024 x 4096.
REACHED_HALVES = 0.25

#: Seconds that one launch more is counted as: what it takes from Python passes beside the kernels in part.
LAUNCH = 5e-6


#: Whether what is computed of an operand is kept from call to call.
Kept = Callable[[Value], bool]


def planes_pay(op: Contract, target: Target, hints: Hints, kept: Kept = lambda operand: False) -> bool:
    """Whether a float32 product takes less time where its operands are split into float16 planes before it.

    The planes are written and read once more; a kernel that splits as it goes does so for every tile. There are five launches
    more: two that split, two that clear what they note of the range, and one for what float16 does not hold. Of an operand whose
    planes are ``kept`` from call to call there is none of this.
    """
    multiplied = 3 * _operations(op, hints)
    with_planes = _splitting(op, target, hints, kept) + multiplied / (REACHED * target.rate("float16"))
    return with_planes < _in_one_kernel(op, target, hints)


def _in_one_kernel(op: Contract, target: Target, hints: Hints) -> float:
    """Seconds that a float32 product's operations take in a kernel that splits its tiles, into TF32 or float16."""
    split, halved = _split(op, target, hints)
    return min(split, halved) if can_be_halved(op, hints) else split


def _split(op: Contract, target: Target, hints: Hints) -> tuple[float, float]:
    """The same in TF32, and in float16."""
    return seconds_of(_operations(op, hints), target)


def seconds_of(operations: int, target: Target) -> tuple[float, float]:
    """Seconds that operations in float32 take in a kernel that splits its tiles into TF32, and into float16."""
    multiplied = 3 * operations
    return multiplied / (REACHED_SPLIT * target.rate("tf32")), multiplied / (REACHED_HALVES * target.rate("float16"))


#: Summed elements from which, and rows and columns from which, tiles are split into float16; float32 numbers that are read at once; seconds that this
#: has to save.
_LEAST_SUM, LEAST_TILE, READ_AT_ONCE, _LEAST_GAIN = 128, 16, 4, 1e-6


def can_be_halved(op: Contract, hints: Hints) -> bool:
    """Whether its tiles may be split into float16: no convolution, rows that are read 16 bytes at once, and enough for tensor cores and their rounding."""
    if op.convolves or op.outer:
        return False
    summed = math.prod(hint(op.size(x), hints) for x in op.summed)
    return (
        summed >= _LEAST_SUM
        and min(_sides(op, hints)) >= LEAST_TILE
        and in_pieces((op.left, op.right), READ_AT_ONCE, hints)
    )


def halves_pay(op: Contract, target: Target, hints: Hints) -> bool:
    """Whether a float32 product in one kernel takes less time with its tiles split into float16 than into TF32."""
    split, halved = _split(op, target, hints)
    return can_be_halved(op, hints) and split - halved > _LEAST_GAIN


def _splitting(op: Contract, target: Target, hints: Hints, kept: Kept) -> float:
    """Seconds for the planes of both operands, and for what float16 does not hold."""
    split = [operand for operand in (op.left, op.right) if not kept(operand)]
    return sum(2 * bytes_of(operand, hints) for operand in split) / target.bandwidth + (1 + 2 * len(split)) * LAUNCH


#: Rows of a thin product's smaller operand: an element of the larger one is split again for each tile of 128 of them.
_THIN = 256


def thin_pays(op: Contract, target: Target, hints: Hints) -> bool:
    """Whether a float32 product takes less time where its larger operand is split into planes in the tiles than in any other way.

    Both other ways read and write what they multiply, too.
    """
    left, right = _sides(op, hints)
    if min(left, right) > _THIN or not (left and right):
        return False
    multiplied, memory = 3 * _operations(op, hints), _memory(op, target, hints)
    planes = sum(2 * bytes_of(operand, hints) for operand in (op.left, op.right)) / target.bandwidth
    before = max(memory, multiplied / (REACHED * target.rate("float16"))) + planes + 5 * LAUNCH
    as_it_is = max(memory, _in_one_kernel(op, target, hints))
    return min(_in_tiles(op, target, hints)) < min(before, as_it_is)


def both_pay(op: Contract, target: Target, hints: Hints) -> bool:
    """Whether a thin product takes less time where both operands are split in the tiles, and not the larger one alone."""
    one, both = _in_tiles(op, target, hints)
    return both < one


def _in_tiles(op: Contract, target: Target, hints: Hints) -> tuple[float, float]:
    """Seconds of a product whose larger operand is split in the tiles, and the other one before, as for planes; then where both are split in the tiles.

    There are four launches more: one that splits, two that clear what is noted of the range, one for what float16 does not hold. The first is not there
    for both.
    """
    multiplied, memory = 3 * _operations(op, hints), _memory(op, target, hints)
    halves, smaller = target.rate("float16"), min(bytes_of(operand, hints) for operand in (op.left, op.right))
    one = max(memory, multiplied / (REACHED_ROUNDING * halves)) + 2 * smaller / target.bandwidth + 4 * LAUNCH
    return one, max(memory, multiplied / (REACHED_SPLITTING * halves)) + 3 * LAUNCH


def _memory(op: Contract, target: Target, hints: Hints) -> float:
    """Seconds in which a float32 product's operands are read and its result is written."""
    result = math.prod(hint(op.size(letter), hints) for letter in op.axes) * 4
    return (bytes_of(op.left, hints) + bytes_of(op.right, hints) + result) / target.bandwidth


def half_pays(op: Contract, target: Target, hints: Hints) -> bool:
    """Whether a float32 product takes less time where its operands are rounded to float16 before it than in TF32.

    What is rounded is read in float32, written, and read again. There are five launches more, as for planes.
    """
    moved = sum(bytes_of(operand, hints) * 3 // 2 for operand in (op.left, op.right))
    operations = _operations(op, hints)
    rounded = moved / target.bandwidth + operations / (REACHED * target.rate("float16")) + 5 * LAUNCH
    return rounded < operations / (REACHED * target.rate("tf32"))


#: Part of the tensor cores' rate that a convolution with a window reaches whose elements a kernel takes one by one from where they lie: in TF32,
#: and in float32 that it splits as it goes. 64 channels in one dimension, on an H100: 18.4 and 12 TFLOP/s.
_WINDOWS, _WINDOWS_SPLIT = 0.037, 0.025

#: The same of float16 where windows of few channels are split into planes as they are read: 118 GFLOP in 662 us, 443 in 1517 on an H100 (docs/performance.md).
_REACHED_WINDOWS = 0.15
#: The same of convolutions of one element in TF32: they take 44 to 46 TFLOP/s, since wgmma wants 32-bit operands transposed.
_POINTWISE = 0.09
#: What tensor cores add up of float16 in one step and the fewest columns of a tile; those of TF32 convolutions, by cuDNN or in one kernel, an estimate.
_FILLED, _FILLED_TF32 = (16, 16), (8, 32)


def float16_pays(op: Contract, rounded: Contract, target: Target, hints: Hints) -> bool:
    """Whether a convolution takes less time as the product of operands that were rounded, or split into planes, than in one kernel.

    ``rounded`` is that product of float16, ``op`` the convolution, which one kernel multiplies in TF32, or where nothing may be rounded in float32
    that it splits. There are five launches more, as for planes. What a step or a tile has too much is multiplied, too.
    """
    around = rounded.planes or rounded.outer
    x, last = (viewed(operand) for operand in (op.right, rounded.left))
    moved = bytes_of(x, hints) + 2 * bytes_of(last, hints)
    deep = math.prod(hint(rounded.size(letter), hints) for letter in rounded.summed if letter not in around)
    channels, columns = (hint(op.size(letter), hints) for letter in "co")
    share = share_of_places(rounded, hints)
    multiplied = share * _operations(rounded, hints) * _filled((deep, columns), _FILLED)
    seconds = moved / target.bandwidth + multiplied / (REACHED * target.rate("float16")) + 5 * LAUNCH
    otherwise = share * _operations(op, hints) * _filled((channels, columns), _FILLED_TF32)
    return seconds < otherwise / ((_WINDOWS_SPLIT if rounded.planes else _WINDOWS) * target.rate("tf32"))


def windows_pay(op: Contract, target: Target, hints: Hints) -> bool:
    """Whether a convolution of few channels takes less time where its windows are split into planes as they are read than in one kernel that splits both operands.

    There are four launches more: one that splits the weight, two that clear what is noted of the range, one for what float16 does not hold.
    """
    channels, columns = (hint(op.size(letter), hints) for letter in "co")
    multiplied = 3 * _operations(op, hints) * _filled((columns,), (_FILLED[1],))
    seconds = multiplied / (_REACHED_WINDOWS * target.rate("float16")) + 4 * LAUNCH
    otherwise = _operations(op, hints) * _filled((channels, columns), _FILLED_TF32)
    return seconds < otherwise / (_WINDOWS_SPLIT * target.rate("tf32"))


def tile_sums_pay(one: TileSums, target: Target, hints: Hints) -> bool:
    """Whether a convolution and reductions over its pixels take less time where its tiles reduce their own.

    What the convolution gives is read once less, but for rows that are read once anyway, and not written where nothing else needs it.
    The last tile of each image is not full, and there are two launches more.
    """
    op, root, stored = one.product.op, one.root, one.stored
    assert isinstance(op, Contract)
    if stored and not one.read_again and one.length <= LONGEST_ROW:
        return False
    count = hint(one.pixels, hints)
    empty = -(-count // PIXELS) * PIXELS / count - 1
    reached = (
        REACHED * target.rate("float16")
        if op.exact is not None or op.left.dtype in TO_HALF
        else REACHED_SPLIT * target.rate("tf32") / (1 if op.tf32 else 3)
    )
    longer = (
        empty * max(_operations(op, hints) / reached, bytes_of(root, hints) / target.bandwidth * stored) + 2 * LAUNCH
    )
    return longer < bytes_of(root, hints) * (1 if stored else 2) / target.bandwidth


def pointwise_pays(op: Contract, rounded: Contract, target: Target, hints: Hints) -> bool:
    """Whether a convolution of one element takes less time ``rounded`` to float16 in its tiles than in TF32.

    Both read and write the same. There are four launches more: one that rounds the weight, two that clear what is noted of the range, one for what float16 does not hold.
    """
    result = math.prod(hint(op.size(letter), hints) for letter in op.axes) * 4
    memory = (bytes_of(op.left, hints) + bytes_of(op.right, hints) + result) / target.bandwidth
    channels, columns = (hint(op.size(letter), hints) for letter in "co")
    multiplied = _operations(rounded, hints) * _filled((channels, columns), _FILLED)
    otherwise = _operations(op, hints) * _filled((channels, columns), _FILLED_TF32)
    seconds = max(memory, multiplied / (REACHED_ROUNDING * target.rate("float16"))) + 4 * LAUNCH
    return seconds < max(memory, otherwise / (_POINTWISE * target.rate("tf32")))


def _filled(sizes: tuple[int, ...], multiples: tuple[int, ...]) -> float:
    """How many times as much is computed where each of ``sizes`` becomes the next multiple."""
    return math.prod(-(-size // step) * step / size for size, step in zip(sizes, multiples, strict=True))


#: Programs on a multiprocessor from which reads of a thin product are as fast as memory; what the tile of one program covers at most.
_ENOUGH, _TILE = 4, 64
#: The shortest part of a sum: of float8, and of other numbers, of which a step takes longer. Sums of less than four of those are
#: whole: the kernel that adds the parts up takes as long as the steps that they save.
_SHORTEST_OF_FLOAT8, _SHORTEST = 1024, 256


def product_parts(op: Contract, target: Target, hints: Hints) -> int:
    """Into how many parts the sum of a product is split, so that there are enough programs: a power of two, 1 for none."""
    sizes = {letter: hint(op.size(letter), hints) for letter in op.axes + op.summed}
    tiles = 1
    for side in ((True, False), (False, True), (True, True)):
        extent = math.prod(n for letter, n in sizes.items() if letter in op.axes and op.varies(letter) == side)
        tiles *= extent if side == (True, True) else -(-extent // _TILE)
    if not tiles:  # the result has no elements
        return 1
    # 16 x 8192 x 8192 on an H100, 128 tiles: float8 takes 36 us whole and 40 in parts, planes of float32 292 whole and 114 in parts.
    float8 = of_float8(op)
    if tiles >= target.multiprocessors * (0.75 if float8 else 1.0):
        return 1
    length = math.prod(sizes[letter] for letter in op.summed)
    longest = length // (_SHORTEST_OF_FLOAT8 if float8 else _SHORTEST)
    if longest < 4 and not float8:
        return 1
    most = min(_ENOUGH * target.multiprocessors // tiles, longest)
    return power_of_two_within(most)


def _sides(op: Contract, hints: Hints) -> tuple[int, int]:
    """How many rows and columns it has."""
    rows, cols = (
        math.prod(hint(op.size(x), hints) for x in op.axes if op.varies(x) == side)
        for side in ((True, False), (False, True))
    )
    return rows, cols


def _operations(op: Contract, hints: Hints) -> int:
    return 2 * math.prod(hint(op.size(letter), hints) for letter in op.axes + op.summed)
