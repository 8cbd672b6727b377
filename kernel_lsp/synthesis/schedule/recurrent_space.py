"""Which schedules a recurrence may have on a target, and what they are estimated to take."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..graph.loops import contracted
from ..graph.value import Given
from ..kernel.steps import Hints, Kernel, hint
from .extents import power_of_two
from .recurrent import LEAST
from .resident import gates
from .schedules import Resident, Schedule, Steps
from .target import Target

#: bytes of weights with which one program that has all of them is faster than several that wait for each other
_ALONE = 64 * 1024
#: elements of a state that a program splits and multiplies at a time: more of them than 64 registers a thread are spilled
_AT_ONCE = 16384
#: bytes of shared memory that the compiler needs besides weights and state
_SPARE = 8 * 1024


@dataclass(frozen=True)
class Extents:
    """Of a recurrence for the example inputs: ``rows`` step apart, each product sums over ``width`` units (1 without one), of
    ``parts`` there are as many."""

    steps: int
    rows: int
    width: int
    parts: int
    dtype: torch.dtype
    weights: int  # bytes

    @property
    def depth(self) -> int:
        return max(LEAST, power_of_two(self.width))


def extents(kernel: Kernel, hints: Hints) -> Extents:
    looped = kernel.loop
    assert looped is not None
    loop = looped.loop
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
    return Extents(hint(loop.steps, hints), math.prod(sizes) // width, width, len(looped.products), dtype, held)


def recurrences(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    """Legal schedules, the default first."""
    found = extents(kernel, hints)
    if not found.parts:
        return [Steps(rows, 0, warps) for rows, warps in ((128, 4), (64, 2), (256, 4))]
    return list(dict.fromkeys([*_residents(kernel, target, found), *_steps(target, found)]))


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
    parts = power_of_two(len(gates(kernel)))
    if not gates(kernel) or target.capability is None:
        return []
    alone: list[Schedule] = []
    several: list[Schedule] = []
    for units in (16, 32, 64, 128):
        kept = parts * units * found.depth * found.dtype.itemsize
        split = -(-found.width // units)
        if units >= 2 * found.depth or split > target.multiprocessors:
            continue
        for rows in (16, 32, 64):
            state = rows * found.depth
            blocks = target.multiprocessors // split
            if kept + state * found.dtype.itemsize + _SPARE > target.shared_memory or state > _AT_ONCE:
                continue
            if -(-found.rows // rows) > blocks:
                continue
            warps = 8 if kept > _ALONE // 2 else 4
            (alone if split == 1 and kept <= _ALONE else several).append(Resident(units, rows, blocks, warps))
            break
    return [*alone, *several]
