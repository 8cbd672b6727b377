"""What of a host plan depends on parameters and buffers alone: planes of weights, packed weights, and the range that is noted with them.

With the setting ``keep_packed_weights`` these operations run once and their results are kept until a weight changes (``printing/packed.py``).
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy

from ..graph.lowered import Graph
from ..graph.order import topological
from ..graph.value import Gather, TorchCall, Value, View, input_of, operands, viewed
from ..kernel.execution_plan import Kernel
from .plan import Allocate, CallTorch, CheckIndices, Contiguous, HostPlan, Launch, TakeView
from .program import Blocks, OfAll, PowerOfTwo, Program
from .replay import capturable


def packed_operations(plan: HostPlan, graph: Graph) -> list[int]:
    """The places of the operations that need not run in every call; empty where there are none, or nothing else reads their results.

    They read parameters and buffers that no call changes and that lie in memory as kernels read them, or results of each other, and no size
    that varies. A result that forward returns is made anew in every call: the caller may write to it.
    """
    copied = {one.value for one in plan.operations if isinstance(one, Contiguous)}
    sources = {v for v in plan.inputs if input_of(v).kind in ("parameter", "buffer")} - copied - graph.updates.keys()
    refused = _given_away(graph)
    while True:
        found = _packed(plan, sources, refused)
        written = {v for i in found for v in written_by(plan.operations[i])}
        others = [one for i, one in enumerate(plan.operations) if i not in found]
        # A tensor whose pieces are stored by several launches is packed where all of these are.
        mixed = {v for one in others for v in written_by(one)} & written
        if not mixed:
            break
        refused |= mixed
    computed = {
        v for i in found if not isinstance(plan.operations[i], Allocate) for v in written_by(plan.operations[i])
    }
    read = {v for one in others for v in read_by(one)}
    from_weights = any(viewed(v) in sources for i in found for v in read_by(plan.operations[i]))
    return sorted(found) if from_weights and computed & read else []


def _packed(plan: HostPlan, sources: set[Value], refused: set[Value]) -> set[int]:
    known, views, found = set(sources), set[Value](), set[int]()
    checked = {one.kernel for one in plan.operations if isinstance(one, CheckIndices) and _gathers(one.kernel)}
    for i, one in enumerate(plan.operations):
        if isinstance(one, TakeView):
            if read_by(one) <= known | views and _static(one.value.shape):
                views.add(one.value)
            continue
        if not isinstance(one, Launch | CallTorch):
            continue
        written, read = {*written_by(one)}, read_by(one)
        if written & refused or not read <= known | views or not _static(n for v in written for n in v.shape):
            continue
        if isinstance(one, Launch):
            packs = one.kernel not in checked and _fixed(one.program)
        else:
            packs = bool(read) and not one.is_view and capturable(one)
        if packs:
            found.add(i)
            known |= written
    computed = known - sources
    return found | {i for i, one in enumerate(plan.operations) if isinstance(one, Allocate) and one.value in computed}


def read_by(operation: object) -> set[Value]:
    """What a launch or a call of torch reads, or a view is taken of."""
    if isinstance(operation, Launch):
        arguments = operation.program.arguments
        return {*arguments.pointers, *(value for value, _ in arguments.strides.values())} - {*arguments.outputs}
    if isinstance(operation, CallTorch):
        return set(operands(operation.values[0]))
    return set(operands(operation.value)) if isinstance(operation, TakeView) else set()


def written_by(operation: object) -> list[Value]:
    """What a launch or a call of torch computes, in its order."""
    if isinstance(operation, Launch):
        return list(
            dict.fromkeys(
                [*operation.program.arguments.outputs, *operation.program.zeroed, *operation.program.exchanged]
            )
        )
    return list(operation.values) if isinstance(operation, CallTorch) else []


def _given_away(graph: Graph) -> set[Value]:
    """What forward returns or assigns, what it becomes a part of, and what buffers become."""
    found = {*graph.updates.values()}
    for value in graph.output_leaves:
        while isinstance(value, Value):
            found.add(value)
            seen = isinstance(value.op, View) or (isinstance(value.op, TorchCall) and value.op.is_view)
            value = operands(value)[0] if seen else None
    return found


def _gathers(kernel: Kernel) -> bool:
    return any(isinstance(value.op, Gather) for value in topological([value for value, _ in kernel.stores]))


def _fixed(program: Program) -> bool:
    """Whether its launch depends on no size that varies; strides of what it reads may."""
    arguments = program.arguments
    sizes: list[sympy.Expr] = [*arguments.sizes, *arguments.scalars, *arguments.divisors]
    sizes += [value.extent for value in program.blocks.values() if isinstance(value, PowerOfTwo | OfAll)]
    for factor in (factor for factors in program.grid for factor in factors):
        sizes.append(factor.extent if isinstance(factor, Blocks | OfAll) else factor)
    return _static(sizes, but=arguments.strides.keys())


def _static(sizes: Iterable[sympy.Expr], but: Iterable[sympy.Symbol] = ()) -> bool:
    free: set[sympy.Symbol] = set().union(*(size.free_symbols for size in sizes))
    return not free - {*but}
