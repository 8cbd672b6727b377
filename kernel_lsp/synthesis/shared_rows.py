"""Which reductions of few long rows stay whole, since programs share their rows (``schedule/cooperative.py``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .graph.lowered import Graph
from .graph.value import Reduce, Value, numel
from .kernel.domain import Unalignable
from .kernel.execution_plan import Kernel, hint
from .passes.regions import plan
from .passes.splitting import long_reductions
from .schedule.cost import LEAST_SAVED
from .schedule.few_rows import Estimate, estimate
from .schedule.target import Target


def shareable(
    graph: Graph,
    on: Target,
    whole: Iterable[Value],
    chained: dict[Value, Value],
    folding: Callable[[Kernel], bool] | None,
) -> list[tuple[set[Value], Estimate]]:
    """The long reductions of each kernel whose rows programs could share, by a plan in which none is split, with what it is estimated to take.

    ``whole``: reductions that are not split anyway; ``chained`` and ``folding`` as in ``regions.plan``.
    """
    long = set(long_reductions(graph, graph.hints, whole))
    if not any(_read_again(value, graph) / on.bandwidth > LEAST_SAVED for value in long):
        return []
    try:
        steps = plan(graph, None, dict(chained), folding).steps
    except Unalignable:
        return []
    found: list[tuple[set[Value], Estimate]] = []
    for kernel in steps:
        if not isinstance(kernel, Kernel) or kernel.contract is not None or long.isdisjoint(kernel.folds):
            continue
        taken = estimate(kernel, on, graph.hints)
        if taken is not None and taken.close:
            found.append((long & set(kernel.folds), taken))
    return found


def _read_again(value: Value, graph: Graph) -> int:
    """Bytes of what a reduction folds."""
    assert isinstance(value.op, Reduce)
    operand = value.op.operand
    return hint(numel(operand.shape), graph.hints) * operand.dtype.itemsize
