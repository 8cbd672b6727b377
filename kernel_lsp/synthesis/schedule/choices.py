"""A kernel with its schedule as a program, and which schedules of a module are worth measuring against each other."""

from __future__ import annotations

import dataclasses

from ..graph.value import Value, numel
from ..kernel.arguments import Arguments
from ..kernel.execution_plan import Hints, Kernel, hint
from .chained import chained
from .contract import contract
from .cooperative import cooperative
from .cost import cost
from .elementwise import elementwise
from .extents import product_extents
from .program import Program, needed
from .recurrent import recurrent
from .reduction import reduction
from .resident import resident
from .rewritings import LAUNCH
from .schedules import ByLines, Chained, Cooperative, Flat, Product, Resident, Schedule, Steps, Turned
from .space import space
from .target import Target
from .verify import verify

#: The schedule of each kernel of a module.
Chosen = dict[Kernel, Schedule]


def scheduled(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    schedule: Schedule,
    strided: set[Value],
) -> Program:
    """The kernel as a program.

    Raises:
        verify.Malformed: it would not mean anything, which is a bug.
    """
    if isinstance(schedule, Product):
        program = contract(kernel, name, arguments, hints, stored, strided, schedule)
    elif isinstance(schedule, Chained):
        program = chained(kernel, name, arguments, hints, stored, strided, schedule)
    elif isinstance(schedule, Flat | Turned | ByLines):
        program = elementwise(kernel, name, arguments, hints, stored, schedule)
    elif isinstance(schedule, Steps):
        program = recurrent(kernel, name, arguments, hints, stored, schedule)
    elif isinstance(schedule, Cooperative):
        program = cooperative(kernel, name, arguments, hints, stored, schedule)
    elif isinstance(schedule, Resident):
        program = resident(kernel, name, arguments, hints, stored, schedule)
    else:
        program = reduction(kernel, name, arguments, hints, stored, schedule)
    program.body = needed(program.body)
    verify(program)
    return program


def ranked(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    """The kernel's schedules: the default, then the others by what they are estimated to take."""
    first, *others = space(kernel, target, hints)
    return [first, *sorted(others, key=lambda schedule: cost(kernel, schedule, target, hints).seconds)]


def folding_pays(kernel: Kernel, target: Target, hints: Hints) -> bool:
    """Whether a product's kernel that reduces its rows or columns takes less time than one that stores the product, and another after it.

    That one reads the product at least once, and stores what the other would.
    """
    if not (tiles := space(kernel, target, hints)):
        return False
    alone = dataclasses.replace(kernel, folds=[])
    m, n, _, batch, _ = product_extents(kernel, hints)
    assert kernel.contract is not None
    between = m * n * batch * kernel.contract.dtype.itemsize
    after = between + sum(hint(numel(v.shape), hints) * v.dtype.itemsize for v in kernel.outputs)
    apart = cost(alone, space(alone, target, hints)[0], target, hints, stored=between).seconds
    return cost(kernel, tiles[0], target, hints).seconds < apart + after / target.bandwidth + LAUNCH


def choices(kernels: list[Kernel], target: Target, hints: Hints) -> list[tuple[str, Chosen]]:
    """(label, schedules) of a module, the default first. What differs from it is another schedule for one sort of kernel."""
    spaces = {kernel: ranked(kernel, target, hints) for kernel in kernels}
    default = {kernel: found[0] for kernel, found in spaces.items()}
    result: list[tuple[str, Chosen]] = [("", default)]
    sorts = dict.fromkeys(type(schedule) for schedule in default.values())
    for sort in sorted(sorts, key=lambda sort: sort not in (Product, Chained)):
        mine = [kernel for kernel in kernels if isinstance(default[kernel], sort) and not kernel.exact]
        for i in range(1, max(len(spaces[kernel]) for kernel in mine)):
            other = {kernel: spaces[kernel][min(i, len(spaces[kernel]) - 1)] for kernel in mine}
            words = "; ".join(dict.fromkeys(str(schedule) for schedule in other.values()))
            result.append((words, default | other))
    return result
