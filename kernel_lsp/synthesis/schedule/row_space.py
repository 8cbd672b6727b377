"""Schedules of rows that several programs share."""

from __future__ import annotations

import dataclasses

from ..kernel.execution_plan import Hints, Kernel, hint
from ..passes.splitting import SPLIT_RESULTS
from .cooperative import is_cooperative, kept_operands
from .cost import LEAST_SAVED, cost
from .extents import power_of_two, total
from .row_bytes import streams
from .schedules import Cooperative, Passes, Schedule
from .target import Target

#: Elements of a block of a row that programs share, where a program keeps one operand of it, and programs that run at once on a multiprocessor. So a
#: thread has 168 and 96 registers, and the last as many as there are: for what is long to compute (docs/performance.md).
_SHARED = ((8192, 3), (4096, 5), (8192, 2))
_SHARING_WARPS = 4

#: The most registers that a thread can have.
_OF_THREAD = 255

#: Operands of a block that a program keeps at the most.
_MOST_KEPT = 2


def with_shared_rows(
    kernel: Kernel, walked: list[Schedule], length: int, target: Target, hints: Hints
) -> list[Schedule]:
    """Also rows that several programs take each; first where that is estimated to save enough."""
    operands = power_of_two(len(kept_operands(kernel, hints)))
    known = target.capability is not None  # else nothing is known of how many programs run at once
    varies = not total(kernel.domain, kernel.domain.reduced).is_number
    walk = next(one for one in walked if isinstance(one, Passes)) if varies else None
    shared: list[Cooperative] = []
    for elements, at_once in _SHARED if known and operands <= _MOST_KEPT and is_cooperative(kernel) else ():
        block, programs = elements // operands, at_once * target.multiprocessors
        registers = target.registers // (at_once * _SHARING_WARPS * target.warp_size) // 8 * 8
        registers = registers if registers <= _OF_THREAD else 0
        streamed = streams(kernel, target, hints)
        one = Cooperative(block, programs, 0, _SHARING_WARPS, at_once, registers, walk, streamed=streamed)
        either = (one, dataclasses.replace(one, together=True))
        bounded = [dataclasses.replace(o, most=o.of_multiprocessor * target.multiprocessors - 1) for o in either]
        shared += [o for o in bounded if -(-length // block) <= o.most][:1]
    shared += [dataclasses.replace(o, streamed=False) for o in shared[:1] if o.streamed]  # what is measured decides
    if not shared:
        return [*walked, Passes(8192, 8)]
    if hint(total(kernel.domain, kernel.domain.kept), hints) < SPLIT_RESULTS and not varies:
        return list(shared)  # of one program a row most of the GPU would be idle
    alone, several = (cost(kernel, schedule, target, hints).seconds for schedule in (walked[0], shared[0]))
    return [*shared, *walked] if alone - several > LEAST_SAVED else [walked[0], *shared, *walked[1:]]
