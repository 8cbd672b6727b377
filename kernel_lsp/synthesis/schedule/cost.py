"""What a schedule is estimated to take: bytes over bandwidth or operations over rate, in whole waves of programs.

The estimate ranks schedules of one kernel. It is no prediction of a time: caches, latency and what the compiler makes of a
kernel are not in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..graph.value import Value, numel
from ..kernel.execution_plan import Hints, Kernel, hint
from ..passes.float8_products import of_float8
from .chain_atoms import chain_extents
from .chain_resources import REGISTERS, chain_registers, chain_shared
from .chained import hides_half
from .extents import (
    inner_atoms,
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
from .tilings import chunk_length, with_rows


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
    read = sum(bytes_of(v, hints) for v in kernel.leaves)
    written = sum(bytes_of(v, hints) for v in dict.fromkeys(kernel.outputs))
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
        lanes_of = with_rows(kernel, schedule.rows).domain if schedule.rows > 1 else domain
        sizes = (
            total(lanes_of, lanes_of.kept[part]) for part in (slice(-schedule.inner), slice(-schedule.inner, None))
        )
        channels, size = (hint(one, hints) for one in sizes)
        programs = channels * -(-size // schedule.block)
    elif isinstance(schedule, Unrolled):
        programs = -(-results // (schedule.block * schedule.rows))
    elif isinstance(schedule, Flat):
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
        stored = sum(bytes_of(v, hints) for v in kernel.results) if kernel.folds else batch * m * n * written
    side = folded_side(kernel) if kernel.partials else None  # then the images are the batch, and all have one weight
    moved = (1 if side == "N" else batch) * m * deep * left + (1 if side == "M" else batch) * deep * n * right + stored
    through_l2 = programs * (schedule.m * left + schedule.n * right) * deep
    products = _PARTS[schedule.precision] if dtype == torch.float32 else 1
    around = kernel.product.planes if schedule.flat else kernel.product.outer
    places = math.prod(hint(kernel.product.size(letter), hints) for letter in around)
    summed = places * -(-k // places // schedule.k) * schedule.k
    share = 1.0 if schedule.flat else share_of_places(kernel.product, hints)
    operations = int(share * 2 * programs * schedule.m * schedule.n * summed * products)
    rate = target.rate(multiplied_as(dtype, schedule))
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
        busy += one / target.rate(multiplied_as(dtype, schedule))
    if kernel.chain is not None and kernel.chain.highest is not None:
        busy += steps * _EXPONENTIAL / target.rate("float32")
    first, second = (dtype.itemsize for dtype in found.dtypes)
    moved = found.batch * (found.rows + found.keys) * found.depth * first
    moved += found.batch * (found.keys + found.rows) * found.cols * second
    moved += sum(bytes_of(v, hints) for v in kernel.leaves)
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


#: seconds that programs take to wait for each other and to read what they stored: with the products of a step 5 us on an H100
_EXCHANGE = 3.5e-6
#: seconds of a step that nothing hides, since it needs what the step before gave
_LATENCY = 1.5e-6


def _recurrence(kernel: Kernel, schedule: Steps | Resident, target: Target, hints: Hints) -> Cost:
    """Steps run one after the other: each takes what one of its programs takes."""
    found = extents(kernel, hints)
    moved = sum(bytes_of(v, hints) for v in (*kernel.leaves, *kernel.outputs))
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


def multiplied_as(dtype: torch.dtype, schedule: Product | Chained) -> str:
    """The sort of number that the tensor cores multiply."""
    if dtype != torch.float32:
        return str(dtype).removeprefix("torch.")
    if schedule.halves:
        return "float16"
    return {"tf32": "tf32", "tf32x3": "tf32", "bf16x6": "bfloat16"}.get(schedule.precision, "float32")


def bytes_of(value: Value, hints: Hints) -> int:
    """Bytes of a tensor, at the sizes of ``hints``."""
    return hint(numel(value.shape), hints) * value.dtype.itemsize
