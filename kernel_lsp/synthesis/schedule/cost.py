"""What a schedule is estimated to take: bytes over bandwidth or operations over rate, in whole waves of programs.

The estimate ranks schedules of one kernel. It is no prediction of a time: caches, latency and what the compiler makes of a
kernel are not in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..graph.sizes import power_of_two_within
from ..graph.value import Contract, Value, numel, viewed
from ..kernel.execution_plan import Hints, Kernel, hint
from ..passes.float8_products import of_float8
from ..passes.tile_parts import PIXELS
from ..passes.tile_sums import TileSums
from .chain_atoms import chain_extents
from .chain_space import REGISTERS, chain_registers, chain_shared, most_columns
from .chained import hides_half
from .extents import (
    LONGEST_ROW,
    inner_atoms,
    multiplied,
    power_of_two,
    product_extents,
    share_of_places,
    split_in_tile,
    total,
)
from .folding import folded_side
from .index_work import instructions, issued
from .recurrent_space import extents
from .row_passes import times_read
from .schedules import (
    ByLines,
    Chained,
    Columns,
    Cooperative,
    Flat,
    Passes,
    Product,
    Resident,
    Rows,
    Schedule,
    Steps,
    Unrolled,
)
from .target import Target
from .tilings import chunk_length


@dataclass(frozen=True)
class Cost:
    """``bytes`` moved, ``operations``, ``programs`` in ``waves``, ``shared`` bytes of a program; ``seconds``: the estimate."""

    bytes: int
    operations: int
    programs: int
    waves: int
    shared: int
    seconds: float


def cost(kernel: Kernel, schedule: Schedule, target: Target, hints: Hints, stored: int | None = None) -> Cost:
    """What a schedule moves, computes and takes for the example inputs, by the target's rates.

    ``stored``: bytes that a product's kernel stores, where that is not what the kernel is planned to.

    Products and recurrences have models of their own. For others it is bytes / bandwidth, divided by the part of the GPU that the waves
    of programs keep busy.
    """
    if isinstance(schedule, Product):
        return _product(kernel, schedule, target, hints, stored)
    if isinstance(schedule, Chained):
        return _chain(kernel, schedule, target, hints)
    if isinstance(schedule, Steps | Resident):
        return _recurrence(kernel, schedule, target, hints)
    domain = kernel.domain
    read = sum(_bytes(v, hints) for v in kernel.leaves)
    written = sum(_bytes(v, hints) for v in dict.fromkeys(kernel.outputs))
    results, length = hint(total(domain, domain.kept), hints), hint(total(domain, domain.reduced), hints)
    lanes = 1.0  # of those that a program has, the part that does something
    if isinstance(schedule, Rows):
        programs = -(-results // schedule.rows)
        lanes = length / power_of_two(length)
    elif isinstance(schedule, Passes):
        programs = results * (-(-length // chunk_length(kernel)) if kernel.in_chunks else 1)
        read *= times_read(kernel, schedule.apart)
    elif isinstance(schedule, Cooperative):
        programs = min(schedule.programs, results * -(-length // schedule.block))
    elif isinstance(schedule, Columns):
        width = hint(total(domain, inner_atoms(kernel, hints)), hints)
        programs = results // max(1, width) * -(-width // schedule.cols)
        if not schedule.whole:
            read *= times_read(kernel)
        lanes = max(1, width) / (max(1, -(-width // schedule.cols)) * schedule.cols)
    elif isinstance(schedule, Unrolled) and schedule.inner:
        inner = hint(total(domain, domain.kept[-schedule.inner :]), hints)
        programs = results // max(1, inner) * -(-inner // schedule.block)
    elif isinstance(schedule, Flat | Unrolled):
        programs = -(-results // schedule.block)
    elif isinstance(schedule, ByLines):
        outer, rows, cols = (hint(total(domain, atoms), hints) for atoms in schedule.parts(domain.kept))
        programs = outer * -(-rows // schedule.rows) * -(-cols // schedule.cols)
    else:
        programs = -(-results // (schedule.rows * schedule.cols))
    waves, full = _waves(programs, min(target.programs, target.warps // schedule.warps), target)
    moved = read + written
    busy = moved / target.bandwidth
    if isinstance(schedule, Flat | ByLines):
        busy = max(busy, instructions(kernel, schedule, target, hints) / issued(target))
    seconds = busy / max(full * lanes, 1e-3)
    if isinstance(schedule, Cooperative):
        seconds += _EXCHANGE
    return Cost(moved, 0, programs, waves, 0, seconds)


def _waves(programs: int, fit: int, target: Target) -> tuple[int, float]:
    """Waves of programs of which ``fit`` run on a multiprocessor, and how much of the GPU they keep busy: the last is not full.

    A launch without programs counts as one program.
    """
    resident = target.multiprocessors * max(1, fit)
    waves = math.ceil(programs / resident)
    return waves, programs / (waves * resident) if waves > 1 else min(1.0, max(1, programs) / target.multiprocessors)


def _product(kernel: Kernel, schedule: Product, target: Target, hints: Hints, stored: int | None) -> Cost:
    m, n, k, batch, dtype = product_extents(kernel, hints)
    if schedule.exchanged:
        m, n = n, m
    down, across = -(-m // schedule.m), -(-n // schedule.n)
    programs = down * across * batch
    # What tiles share is read from memory once, and from L2 by every tile.
    read, written = dtype.itemsize, dtype.itemsize
    if of_float8(kernel.product):  # of float8 numbers, whatever they are multiplied as
        read, written = 1, sum(v.dtype.itemsize for v in kernel.outputs)
    left, right, deep = 4 if kernel.peaks else read, read, k  # it is rounded here
    if any(split_in_tile(kernel.product)):  # of the other one both planes are read at once, or float32, too
        right, deep = 2 * read, k // hint(kernel.product.size(kernel.product.planes), hints)
    if stored is None:
        stored = sum(_bytes(v, hints) for v in kernel.results) if kernel.folds else batch * m * n * written
    side = folded_side(kernel) if kernel.partials else None  # then the images are the batch, and all have one weight
    moved = (1 if side == "N" else batch) * m * deep * left + (1 if side == "M" else batch) * deep * n * right + stored
    through_l2 = programs * (schedule.m * left + schedule.n * right) * deep
    products = _PARTS[schedule.precision] if dtype == torch.float32 else 1
    around = kernel.product.planes if schedule.flat else kernel.product.outer
    places = math.prod(hint(kernel.product.size(letter), hints) for letter in around)
    summed = places * -(-k // places // schedule.k) * schedule.k
    share = 1.0 if schedule.flat else share_of_places(kernel.product, hints)
    operations = int(share * 2 * programs * schedule.m * schedule.n * summed * products)
    rate = target.rate(multiplied_as(dtype, schedule.precision))
    shared = (schedule.m * left + schedule.n * right) * schedule.k * schedule.stages
    fit = min(target.shared_memory // max(1, shared), target.warps // schedule.warps)
    launched = min(programs, schedule.programs or programs)
    waves, full = _waves(launched, fit, target)
    seconds = max(operations / rate / full, through_l2 / target.l2_bandwidth, moved / target.bandwidth)
    return Cost(moved, operations, launched, waves, shared, seconds)


#: Products that one in float32 is made of, by its precision.
_PARTS = {"tf32": 1, "tf32x3": 3, "bf16x6": 6, "ieee": 1}


def _chain(kernel: Kernel, schedule: Chained, target: Target, hints: Hints) -> Cost:
    """Both products and the exponentials between them, one after the other: what the compiler overlaps is not known here."""
    found = chain_extents(kernel, hints)
    down, across = -(-found.rows // schedule.m), -(-found.cols // schedule.d)
    programs = down * across * found.batch
    keys = -(-found.keys // schedule.n) * schedule.n
    if hides_half(kernel, hints):
        keys = min(keys, (keys + schedule.m + schedule.n) // 2)
    steps = programs * schedule.m * keys  # scores that are computed
    operations, busy = 0, 0.0
    for width, dtype in zip((-(-found.depth // schedule.k) * schedule.k, schedule.d), found.dtypes, strict=True):
        one = 2 * steps * width * (_PARTS[schedule.precision] if dtype == torch.float32 else 1)
        operations += one
        busy += one / target.rate(multiplied_as(dtype, schedule.precision))
    if kernel.chain is not None and kernel.chain.highest is not None:
        busy += steps * _EXPONENTIAL / target.rate("float32")
    first, second = (dtype.itemsize for dtype in found.dtypes)
    moved = found.batch * (found.rows + found.keys) * found.depth * first
    moved += found.batch * (found.keys + found.rows) * found.cols * second
    moved += sum(_bytes(v, hints) for v in kernel.leaves)
    through_l2 = programs * (schedule.m + keys) * found.depth * first + programs * keys * schedule.d * second
    if schedule.k < found.depth:  # the left operand is read again for each tile of keys
        through_l2 += programs * schedule.m * found.depth * first * (keys // schedule.n)
    shared = chain_shared(schedule, first, second)
    fit = max(1, min(target.shared_memory // max(1, shared), target.warps // schedule.warps))
    spilled = max(1.0, chain_registers(schedule, second) / REGISTERS)  # what a thread can hold beside addresses
    waves, full = _waves(programs, fit, target)
    seconds = max(busy * spilled / full, through_l2 / target.l2_bandwidth, moved / target.bandwidth)
    return Cost(moved, operations, programs, waves, shared, seconds)


#: Operations of a float32 unit that a score takes on its way to the second product: the exponential counts as eight.
_EXPONENTIAL = 16


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
        memory = sum(2 * _bytes(v, hints) for v in (op.left, op.right)) / target.bandwidth + 5 * LAUNCH
        in_planes = memory + _operations(op, hints) * 3 / (REACHED * target.rate("float16"))
        apart += in_planes if planes_pay_here else _operations(op, hints) / rate
        together += often * _operations(op, hints) / rate
    return together < apart


#: Part of the tensor cores' rate that products reach: of tiles of halves, of float32 that a kernel splits as it goes, of float32 that it rounds
#: to float16 as it goes (an estimate, from the bytes that a step moves through shared memory), of float32 of which it splits both operands into
#: planes as it goes (an estimate), and cuDNN's TF32 convolutions of tensors whose channels are not last.
REACHED, REACHED_SPLIT, REACHED_ROUNDING, REACHED_SPLITTING, REACHED_CUDNN = 0.6, 0.35, 0.4, 0.3, 0.25

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
    return with_planes < multiplied / (REACHED_SPLIT * target.rate("tf32"))


def _splitting(op: Contract, target: Target, hints: Hints, kept: Kept) -> float:
    """Seconds for the planes of both operands, and for what float16 does not hold."""
    split = [operand for operand in (op.left, op.right) if not kept(operand)]
    return sum(2 * _bytes(operand, hints) for operand in split) / target.bandwidth + (1 + 2 * len(split)) * LAUNCH


#: Rows of a thin product's smaller operand: an element of the larger one is split again for each tile of 128 of them.
_THIN = 256


def thin_pays(op: Contract, target: Target, hints: Hints) -> bool:
    """Whether a float32 product takes less time where its larger operand is split into planes in the tiles than in any other way.

    Both other ways read and write what they multiply, too.
    """
    left, right = (
        math.prod(hint(op.size(x), hints) for x in op.axes if op.varies(x) == side)
        for side in ((True, False), (False, True))
    )
    if min(left, right) > _THIN or not (left and right):
        return False
    multiplied, memory = 3 * _operations(op, hints), _memory(op, target, hints)
    planes = sum(2 * _bytes(operand, hints) for operand in (op.left, op.right)) / target.bandwidth
    before = max(memory, multiplied / (REACHED * target.rate("float16"))) + planes + 5 * LAUNCH
    as_it_is = max(memory, multiplied / (REACHED_SPLIT * target.rate("tf32")))
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
    halves, smaller = target.rate("float16"), min(_bytes(operand, hints) for operand in (op.left, op.right))
    one = max(memory, multiplied / (REACHED_ROUNDING * halves)) + 2 * smaller / target.bandwidth + 4 * LAUNCH
    return one, max(memory, multiplied / (REACHED_SPLITTING * halves)) + 3 * LAUNCH


def _memory(op: Contract, target: Target, hints: Hints) -> float:
    """Seconds in which a float32 product's operands are read and its result is written."""
    result = math.prod(hint(op.size(letter), hints) for letter in op.axes) * 4
    return (_bytes(op.left, hints) + _bytes(op.right, hints) + result) / target.bandwidth


def half_pays(op: Contract, target: Target, hints: Hints) -> bool:
    """Whether a float32 product takes less time where its operands are rounded to float16 before it than in TF32.

    What is rounded is read in float32, written, and read again. There are five launches more, as for planes.
    """
    moved = sum(_bytes(operand, hints) * 3 // 2 for operand in (op.left, op.right))
    operations = _operations(op, hints)
    rounded = moved / target.bandwidth + operations / (REACHED * target.rate("float16")) + 5 * LAUNCH
    return rounded < operations / (REACHED * target.rate("tf32"))


#: Part of the tensor cores' rate that a convolution with a window reaches whose elements a kernel takes one by one from where they lie: in TF32,
#: and in float32 that it splits as it goes. KernelBench level 1 #76, 64 channels, on an H100: 18.4 and 12 TFLOP/s.
_WINDOWS, _WINDOWS_SPLIT = 0.037, 0.025

#: The same of float16 where windows of few channels are split into planes as they are read: 118 GFLOP in 662 us, 443 in 1517 on an H100 (docs/performance.md).
_REACHED_WINDOWS = 0.15
#: The same of convolutions of one element in TF32: level 1 #86 and #87 and level 3 #21 take 44 to 46 TFLOP/s, since wgmma wants 32-bit operands transposed.
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
    moved = _bytes(x, hints) + 2 * _bytes(last, hints)
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
        if op.exact is not None
        else REACHED_SPLIT * target.rate("tf32") / (1 if op.tf32 else 3)
    )
    longer = empty * max(_operations(op, hints) / reached, _bytes(root, hints) / target.bandwidth * stored) + 2 * LAUNCH
    return longer < _bytes(root, hints) * (1 if stored else 2) / target.bandwidth


def pointwise_pays(op: Contract, rounded: Contract, target: Target, hints: Hints) -> bool:
    """Whether a convolution of one element takes less time ``rounded`` to float16 in its tiles than in TF32.

    Both read and write the same. There are four launches more: one that rounds the weight, two that clear what is noted of the range, one for what float16 does not hold.
    """
    result = math.prod(hint(op.size(letter), hints) for letter in op.axes) * 4
    memory = (_bytes(op.left, hints) + _bytes(op.right, hints) + result) / target.bandwidth
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


def _operations(op: Contract, hints: Hints) -> int:
    return 2 * math.prod(hint(op.size(letter), hints) for letter in op.axes + op.summed)


#: seconds that programs take to wait for each other and to read what they stored: with the products of a step 5 us on an H100
_EXCHANGE = 3.5e-6
#: seconds of a step that nothing hides, since it needs what the step before gave
_LATENCY = 1.5e-6


def _recurrence(kernel: Kernel, schedule: Steps | Resident, target: Target, hints: Hints) -> Cost:
    """Steps run one after the other: each takes what one of its programs takes."""
    found = extents(kernel, hints)
    moved = sum(_bytes(v, hints) for v in (*kernel.leaves, *kernel.outputs))
    blocks = -(-found.rows // schedule.rows)
    split = -(-found.width // schedule.units) if isinstance(schedule, Resident) else 1
    split *= found.members
    operations = (
        2 * found.members * found.rows * found.width**2 * found.parts * (3 if found.dtype == torch.float32 else 1)
    )
    sort = "tf32" if isinstance(schedule, Steps) and found.dtype == torch.float32 else "bfloat16"
    step = _LATENCY + operations / (split * blocks) / (target.rate(sort) / target.multiprocessors)
    kept = found.weights // split
    if split > 1:
        step += _EXCHANGE
    elif isinstance(schedule, Steps) and schedule.depth:  # a program's multiprocessor has its share of the rate of L2
        step += found.weights * target.multiprocessors / target.l2_bandwidth
        kept = 0
    waves = math.ceil(split * blocks / target.multiprocessors)
    seconds = max(found.steps * step * waves, moved / target.bandwidth)
    return Cost(moved, operations * found.steps, split * blocks, waves, kept, seconds)


def multiplied_as(dtype: torch.dtype, precision: str) -> str:
    """The sort of number that the tensor cores multiply."""
    if dtype != torch.float32:
        return str(dtype).removeprefix("torch.")
    return {"tf32": "tf32", "tf32x3": "tf32", "bf16x6": "bfloat16"}.get(precision, "float32")


def _bytes(value: Value, hints: Hints) -> int:
    return hint(numel(value.shape), hints) * value.dtype.itemsize
