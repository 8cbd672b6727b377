"""Which schedules a recurrence may have on a target, and what they are estimated to take."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch

from ..graph.loops import contracted
from ..graph.order import topological
from ..graph.value import Contract, Given, Recurrence, Value
from ..kernel.execution_plan import Hints, Kernel, hint
from .extents import power_of_two
from .recurrent import LEAST
from .resident import MOST_PARTS, gates
from .schedules import Resident, Schedule, Steps
from .target import Target

#: bytes of weights with which one program that has all of them is faster than several that wait for each other
_ALONE = 64 * 1024
#: elements of a state that a program splits and multiplies at a time: more of them than 64 registers a thread are spilled
_AT_ONCE = 16384
#: bytes of shared memory that the compiler needs besides weights and state
_SPARE = 8 * 1024
#: rows of a tile from which on Triton multiplies with wgmma, whose right operand lies in shared memory
_WGMMA_ROWS = 64
#: steps of a loop without products that are written out in an elementwise kernel
_FEW_STEPS = 8


@dataclass(frozen=True)
class Extents:
    """Sizes of a recurrence for the example inputs.

    ``rows`` step apart, each product sums over ``width`` units (1 without one), of ``parts`` there are as many.
    """

    steps: int
    rows: int
    width: int
    parts: int
    dtype: torch.dtype
    weights: int  # bytes
    members: int

    @property
    def depth(self) -> int:
        """Units that a product's tile sums over: a power of two that Triton's ``dot`` takes."""
        return max(LEAST, power_of_two(self.width))


def extents(kernel: Kernel, hints: Hints) -> Extents:
    """The extents of the recurrence in ``kernel``."""
    assert kernel.loop is not None
    loop = kernel.loop.loop
    return _extents(loop, len(kernel.loop.products), loop.members or 1, hints)


def _extents(loop: Recurrence, parts: int, members: int, hints: Hints) -> Extents:
    sizes = [hint(n, hints) for n in loop.held[0].shape]
    across = next(iter(contracted(loop).values()), None)
    width = 1 if across is None else sizes[across]
    whole = [
        v
        for v, part in zip(loop.given, loop.parts, strict=True)
        if isinstance(part.op, Given) and part.op.along is None
    ]
    weights = [v for v in whole if len(v.shape) > 1]
    dtype = weights[0].dtype if weights else loop.held[0].dtype
    held = sum(math.prod(hint(n, hints) for n in v.shape) * v.dtype.itemsize for v in weights)
    return Extents(hint(loop.steps, hints), math.prod(sizes) // width, width, parts, dtype, held, members)


def fit_together(loop: Recurrence, members: int, *, target: Target, hints: Hints, layers: bool) -> bool:
    """Whether ``members`` recurrences like ``loop`` fit one launch; of ``layers`` each has the weights of its inputs, too."""
    products = [v for v in topological(list(loop.next)) if isinstance(v.op, Contract)]
    if len(products) != 1 or target.capability is None:
        return False
    right = products[0].shape[-1]
    found = _extents(loop, 0, members, hints)
    parts = hint(right, hints) // found.width
    return any(_fitting(target, found, parts, 2 if layers else 1, layers))


def rolling_pays(loop: Recurrence, target: Target, hints: Hints) -> bool:
    """Whether one launch for all steps of a loop is better than the launches of each.

    Weights that do not fit on chip are read by few programs at each step, where a product of its own has the whole GPU. Without a product
    few steps are one elementwise kernel anyway.
    """
    products: dict[Value, set[Value]] = {}
    for value in topological(list(loop.next)):
        if isinstance(value.op, Contract):
            products.setdefault(value.op.left, set()).add(value)
    if not products:
        return hint(loop.steps, hints) > _FEW_STEPS
    units = loop.held[0].shape[-1]
    widths = {value.shape[-1] / units for several in products.values() for value in several}
    several = len(widths) > 1 or any(len(values) > 1 for values in products.values())
    parts = widths.pop()
    if target.capability is None or several or not parts.is_Integer or parts > MOST_PARTS:
        return False
    return any(_fitting(target, _extents(loop, int(parts), 1, hints), int(parts), len(products), False))


def recurrences(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    """Legal schedules, the default first."""
    found = extents(kernel, hints)
    if not found.parts:
        return [Steps(rows, 0, warps) for rows, warps in ((128, 4), (64, 2), (256, 4))]
    several = kernel.loop is not None and kernel.loop.loop.members is not None
    return list(dict.fromkeys([*_residents(kernel, target, found), *([] if several else _steps(target, found))]))


def _steps(target: Target, found: Extents) -> list[Schedule]:
    """Weights that are read at each step, as many columns at a time as shared memory takes of them; a short state's stay."""
    column = found.parts * found.depth * found.dtype.itemsize
    columns = [k for k in (32, LEAST) if column * k <= target.shared_memory // 2] or [LEAST]
    stages = 2 if column * columns[0] * 2 <= target.shared_memory else 1
    warps = 8 if found.parts * found.depth <= 1024 else 16 if found.depth <= 512 else 32
    read: list[Schedule] = [Steps(LEAST, min(k, found.depth), warps, stages) for k in columns]
    read.append(Steps(LEAST, LEAST, warps // 2, stages))
    return [Steps(LEAST, 0, 4), *read] if column * found.depth <= _ALONE // 2 else read


def _residents(kernel: Kernel, target: Target, found: Extents) -> list[Schedule]:
    """With the weights on chip, where those of all units fit the programs that run at once: first one program alone, if it can."""
    products = gates(kernel)
    if not products or target.capability is None:
        return []
    assert kernel.loop is not None
    layers = kernel.loop.loop.below is not None
    alone, several = _fitting(target, found, max(map(len, products.values())), len(products), layers)
    legal = [*alone, *several]
    # Four warps took two thirds of the time of eight where that was measured (docs/performance.md); both are offered.
    halved = [dataclasses.replace(one, warps=4) for one in legal[:1] if one.warps == 8]
    return [*halved, *legal]


def _fitting(
    target: Target, found: Extents, parts: int, products: int, layers: bool
) -> tuple[list[Resident], list[Resident]]:
    """Where one program has all units, and where several have some. ``products``: how many of ``parts`` parts a step takes."""
    alone: list[Resident] = []
    several: list[Resident] = []
    for units in (16, 32, 64, 128):
        kept = power_of_two(parts) * units * found.depth * found.dtype.itemsize * products
        split = -(-found.width // units)
        programs = split * found.members
        if units >= 2 * found.depth or programs > target.multiprocessors:
            continue
        # The layer below comes from memory and the state from registers: two layouts of one place in shared memory. ptxas of
        # CUDA 12.8 and 13.0 then loses the address of one of them (read in the machine code; "illegal memory access").
        if layers and split == 1 and power_of_two(parts) * units >= _WGMMA_ROWS:
            continue
        waits = split > 1 or layers
        for rows in (16, 32, 64):
            state = rows * found.depth
            blocks = target.multiprocessors // programs
            fits = kept + state * found.dtype.itemsize * products + _SPARE <= target.shared_memory
            if fits and state <= _AT_ONCE and (not waits or -(-found.rows // rows) <= blocks):
                schedule = Resident(units, rows, blocks, 8 if kept > _ALONE // 2 else 4)
                (alone if split == 1 and kept <= _ALONE else several).append(schedule)
                break
    return alone, several
