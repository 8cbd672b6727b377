"""What the synthesizer's kernels for a module would launch and move, without their text being written."""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.export import ExportedProgram

from kernel_lsp.envelope.errors import Unwritable
from kernel_lsp.errors import NothingToLower
from kernel_lsp.synthesis import LEFT
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Input, TorchCall, Value, input_of, numel
from kernel_lsp.synthesis.kernel.domain import Unalignable
from kernel_lsp.synthesis.kernel.execution_plan import Call, Kernel, Planned, hint
from kernel_lsp.synthesis.schedule.cost import cost, multiplied_as
from kernel_lsp.synthesis.schedule.extents import product_extents
from kernel_lsp.synthesis.schedule.replay import COPY, LAUNCH, NODE, REPLAY
from kernel_lsp.synthesis.schedule.rewritings import REACHED, REACHED_HALVES
from kernel_lsp.synthesis.schedule.schedules import Chained, Product, Resident, Steps
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.stages import check_writable, lowered, planned, told
from kernel_lsp.targets import Target

from .operators import Operator
from .times import AHEAD, COPIED, SMALLEST, Work, seconds, work_of

#: Share of the tensor cores' rate that float32 products reach which a kernel splits as it goes, the rows of tiles that are not full aside:
#: 4096 x 4096 x 4096 in 1846 us ("Products in float32" in docs/performance.md).
SPLIT = 0.45


@dataclass(frozen=True)
class Kernels:
    """One way to write the module: its ``launches``, those of torch among them, the ``bytes`` moved and the estimated ``seconds``.

    ``kept``: operators that stay with torch.
    """

    launches: int
    bytes: int
    operations: int
    seconds: float
    kept: tuple[str, ...]


def fastest(
    exported: ExportedProgram, operators: list[Operator], target: Target, class_name: str, precision: str = "strict"
) -> Kernels:
    """The fastest of the ways that the synthesizer offers first.

    ``operators``: what eager runs, for what stays with torch.

    Raises:
        NothingToLower, NotWritable: there is none.
    """
    with told(exported, class_name):
        found = list(_ways(exported, operators, target, class_name, precision))
    return min(found, key=lambda way: way.seconds)


def _ways(
    exported: ExportedProgram, operators: list[Operator], target: Target, class_name: str, precision: str
) -> Iterator[Kernels]:
    yield way(exported, operators, target, class_name, precision)
    called = {str(node.target).rpartition(".")[0] for node in exported.graph.nodes if node.op == "call_function"}
    for left in LEFT.values():
        if not called.isdisjoint(left):  # without them there may be no kernel, which is no error
            with contextlib.suppress(NothingToLower, Unwritable, Unalignable):
                yield way(exported, operators, target, class_name, precision, left)


def way(
    exported: ExportedProgram,
    operators: list[Operator],
    target: Target,
    class_name: str,
    precision: str = "strict",
    left: frozenset[str] = frozenset(),
    *,
    halves: bool = True,
) -> Kernels:
    """The way that leaves the operators in ``left`` to torch. ``halves``: float32 products may be made of float16 ones.

    Raises what the synthesizer's stages do.
    """
    plan = planned(lowered(exported, left, target, halves=halves, joined=True, precision=precision))
    check_writable(plan, class_name)
    works, moved, operations, launches = [], 0, 0, 0
    torchs = _by_target(operators)
    for step in plan.plan.steps:
        if isinstance(step, Kernel):
            if step.exact:  # it runs where a product in float16 does not hold: seldom
                works.append(Work(LAUNCH, SMALLEST))
                launches += 1
                continue
            one, took = _kernel(step, target, plan)
            works.append(Work(LAUNCH, took))
            moved, operations, launches = moved + one.bytes, operations + one.operations, launches + 1
        elif isinstance(step, Call):
            for call in _called(step, torchs):
                works.append(work_of(call, target))
                moved, operations, launches = (
                    moved + call.bytes,
                    operations + call.operations,
                    launches + call.launches,
                )
    return Kernels(launches, moved, operations, _in_turn(works, plan, target), tuple(sorted(set(plan.graph.kept))))


@dataclass(frozen=True)
class _One:
    bytes: int
    operations: int


def _kernel(kernel: Kernel, target: Target, plan: Planned) -> tuple[_One, float]:
    """What a kernel moves and multiplies in its default schedule, and its seconds at the shares that products reach."""
    schedule = space(kernel, target, plan.hints)[0]
    found = cost(kernel, schedule, target, plan.hints)
    if not found.programs:  # of a result without elements
        return _One(0, 0), SMALLEST
    moved = found.bytes
    if isinstance(schedule, Product | Chained):
        dtype = product_extents(kernel, plan.hints)[4]
        split = dtype == torch.float32 and schedule.precision in ("tf32x3", "bf16x6")
        reached = REACHED_HALVES if schedule.halves else SPLIT if split else REACHED
        rate = target.rate(multiplied_as(dtype, schedule)) * reached
        busy = min(1.0, found.programs / target.multiprocessors)
        # Windows overlap: what is not in the cache is read once.
        moved = sum(hint(numel(v.shape), plan.hints) * v.dtype.itemsize for v in (*kernel.leaves, *kernel.results))
        took = max(found.operations / rate / busy, moved / target.bandwidth / COPIED)
    elif isinstance(schedule, Steps | Resident):
        took = found.seconds
    else:
        took = found.seconds / COPIED
    return _One(moved, found.operations), max(took, SMALLEST)


def _by_target(operators: list[Operator]) -> dict[str, deque[list[Operator]]]:
    """What eager runs for each exported node, by the node's operator, in order."""
    nodes: dict[str, list[Operator]] = {}
    for one in operators:
        nodes.setdefault(one.node, []).append(one)
    found: dict[str, deque[list[Operator]]] = defaultdict(deque)
    for group in nodes.values():
        found[group[0].target].append(group)
    return found


def _called(step: Call, torchs: dict[str, deque[list[Operator]]]) -> list[Operator]:
    op = step.values[0].op
    assert isinstance(op, TorchCall)
    target = (op.call or op).target.removeprefix("torch.ops.")
    known = torchs.get(target)
    return known.popleft() if known else []


def _in_turn(works: list[Work], plan: Planned, target: Target) -> float:
    """Launched one by one, or replayed as a CUDA graph where that may be: whichever is shorter."""
    direct = seconds(works)
    graph = plan.graph
    if graph.updates or graph.assigned:
        return direct
    inputs = [v for v in topological(graph.outputs) if isinstance(v.op, Input) and input_of(v).kind == "argument"]
    copied = [*inputs, *(v for v in graph.output_leaves if isinstance(v, Value))]
    copies = sum(2 * hint(numel(v.shape), plan.hints) * v.dtype.itemsize for v in copied) / target.bandwidth
    gpu = sum(work.gpu + NODE for work in works) + copies
    replay = max(REPLAY + COPY * len(copied) - AHEAD, 0.0) + gpu
    return min(direct, replay)
