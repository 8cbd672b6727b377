"""The host side as data: what is allocated, launched, viewed and called, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import sympy

from ..graph.lowered import Graph
from ..graph.names import variable_name
from ..graph.order import order_of, topological
from ..graph.sizes import offset, quotient
from ..graph.value import Input, Pointwise, Scalar, TorchCall, Value, View, input_of, numel, operands, viewed
from ..kernel.arguments import Arguments
from ..kernel.execution_plan import Call, Hints, HostView, Kernel, Plan, hint
from ..kernel.reads import multiplied
from ..passes.splitting import SHORTEST_CHUNK, Chunks
from .choices import Chosen, scheduled
from .contract import strided_operands
from .naming import kernel_names, name_between, read_by
from .program import Blocks, Program
from .schedules import Columns, Cooperative

#: Names for the sizes of the first tensor, by rank.
_SIZE_NAMES = {
    1: ("length",),
    2: ("n_rows", "n_cols"),
    3: ("batch", "length", "width"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}


#: Elements that offsets of 32 bits number, with room for the last block of a launch.
MOST_ELEMENTS = 2**31 - 2**16

#: Where a size is read: a dimension of an input, a number of blocks, or computed from other sizes.
Place: TypeAlias = "tuple[Value, int] | Blocks | sympy.Expr"


@dataclass(frozen=True)
class Contiguous:
    """An argument is copied unless it is contiguous."""

    value: Value


@dataclass(frozen=True)
class DefineSize:
    """A size that is computed from others gets a variable."""

    symbol: sympy.Symbol


@dataclass(frozen=True)
class Allocate:
    """Memory for ``value``, not initialised unless with zeros."""

    value: Value
    alone: bool  # the only result of its launch, and no other step reads it
    zero: bool = False  # filled with zeros


@dataclass(frozen=True)
class Launch:
    """``kernel``'s programs, which fill what was allocated before.

    ``beyond``: those that are launched in place of ``program`` where a size is larger than its ``limits`` allow; None: there is no such call.
    """

    kernel: Kernel
    program: Program
    beyond: Program | None = None

    @property
    def programs(self) -> list[Program]:
        """Of which a call launches one."""
        return [self.program, *([self.beyond] if self.beyond is not None else [])]


@dataclass(frozen=True)
class TakeView:
    """A view that torch takes of another value."""

    value: Value


@dataclass(frozen=True)
class CallTorch:
    """One operator that stays with torch; ``values`` are its results that are used, which share one ``TorchCall``."""

    values: tuple[Value, ...]

    @property
    def is_view(self) -> bool:
        """Whether it is one of complex numbers, see ``TorchCall.is_view``."""
        op = self.values[0].op
        return isinstance(op, TorchCall) and op.is_view


@dataclass(frozen=True)
class CheckIndices:
    """The indices by which ``kernel`` reads lie in their tables."""

    kernel: Kernel


@dataclass(frozen=True)
class Update:
    """``value`` becomes what ``buffer`` holds."""

    buffer: Value
    value: Value


@dataclass(frozen=True)
class InPlace:
    """A kernel stores ``value`` in the memory of ``buffer``, of which it alone reads, and each element only where it stores it."""

    buffer: Value
    value: Value


Operation = Contiguous | DefineSize | Allocate | Launch | TakeView | CallTorch | CheckIndices | Update | InPlace


@dataclass
class HostPlan:
    """``inputs``: what the host function is given, forward's own arguments first; ``contiguous``: parameters that must be so.

    ``sizes``: where each size symbol is read.
    """

    inputs: list[Value]
    sizes: dict[sympy.Symbol, Place]
    wide: bool = False  # a tensor has more elements than 32 bits can number
    contiguous: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


def host_plan(
    graph: Graph,
    plan: Plan,
    hints: Hints,
    chunks: Chunks,
    defined: dict[sympy.Symbol, sympy.Expr],
    name: str,
    chosen: Chosen,
    scattered: frozenset[str],
    check_indices: bool,
) -> HostPlan:
    """Schedule the kernels of a plan, and put all that the host does in order.

    ``chosen``: each kernel's schedule; ``chunks``: the symbols of split reductions with what each cuts; ``defined``: those that stand for other sizes; ``name``: what kernels are named after;
    ``scattered``: the Python of parameters and buffers that are not contiguous, which are copied in every call.
    """
    read = used_inputs(plan, graph)
    inputs = [*read, *_for_sizes(graph, read)]
    inputs.sort(key=lambda v: input_of(v).kind != "argument")  # what forward is given comes first
    names, sizes = _size_symbols(inputs)
    for symbol, size in defined.items():
        names[symbol], sizes[symbol] = symbol.name, size
    for symbol, (length, size) in chunks.items():
        names[symbol], sizes[symbol] = symbol.name, Blocks(length, size)
    result = HostPlan(inputs, sizes)
    in_memory = [*inputs, *(v for step in plan.steps if isinstance(step, Kernel) for v in step.outputs)]
    result.wide = any(hint(numel(v.shape), hints) > MOST_ELEMENTS for v in in_memory)
    strided = _strided(plan)
    counts = list(dict.fromkeys(n for v in inputs if not (n := numel(v.shape)).is_number))
    for value in inputs:
        op = input_of(value)
        if not value.shape or value in strided or value not in read:
            continue
        if op.kind in ("argument", "attribute") or op.source in scattered:
            result.operations.append(Contiguous(value))
        else:
            result.contiguous.append(value)
    result.operations += [DefineSize(symbol) for symbol in defined]
    replaced = _in_place(plan, graph, scattered)
    between = name_between(plan)
    wanted = kernel_names(plan, name)
    present = set(inputs)  # what is in memory by now: the plan's stored values include those of later steps
    for step in plan.steps:
        if isinstance(step, HostView):
            result.operations.append(TakeView(step.value))
        elif isinstance(step, Call):
            result.operations.append(CallTorch(tuple(step.values)))
            present.update(step.values)
        else:
            if check_indices:
                result.operations.append(CheckIndices(step))
            before = present - set(step.outputs)
            schedule, stored = chosen[step], step.outputs
            program = scheduled(step, wanted[step], Arguments(dict(names)), hints, before, schedule, strided)
            launch = Launch(step, program)
            if (
                isinstance(schedule, Columns | Cooperative)
                and schedule.beyond is not None
                and _may_exceed(program, graph)
            ):
                several = "many_rows" if isinstance(schedule, Columns) else "long_rows"
                called = f"{wanted[step].removesuffix('_kernel')}_{several}_kernel"
                given = Arguments(dict(names))
                launch = Launch(step, program, scheduled(step, called, given, hints, before, schedule.beyond, strided))
            for one in launch.programs:
                one.wide = result.wide
            if not result.wide:
                last = launch.programs[-1]  # what bounds it bounds all calls
                last.limits += [(numel(v.shape), MOST_ELEMENTS) for v in stored if not _bounded(v, counts, chunks)]
            result.operations += [InPlace(b, v) for b, v in replaced.items() if v in stored]
            result.operations += [
                Allocate(v, len(stored) == 1 and v not in between, zero=v in step.peaks)
                for v in stored
                if v not in present and v not in replaced.values()
            ]
            result.operations += [Allocate(v, False, zero=True) for v in program.zeroed]
            result.operations += [Allocate(v, False) for v in program.exchanged]
            result.operations.append(launch)
            present.update(stored)
    result.operations += [Update(b, v) for b, v in graph.updates.items() if b not in replaced]
    return result


def _may_exceed(program: Program, graph: Graph) -> bool:
    """Whether a size that ``program`` limits may be larger, by what the graph was exported for."""
    greatest = [(graph.ranges.get(extent, (0, None))[1], most) for extent, most in program.limits]
    return any(size is None or size > most for size, most in greatest)


def _in_place(plan: Plan, graph: Graph, scattered: frozenset[str]) -> dict[Value, Value]:
    """The buffers that a kernel can update where they lie, with what they become."""
    found: dict[Value, Value] = {}
    given = {viewed(leaf) for leaf in graph.output_leaves if isinstance(leaf, Value)}
    for buffer, value in graph.updates.items():
        if value in given or list(graph.updates.values()).count(value) > 1:
            continue
        if input_of(buffer).kind == "attribute":  # it may lie in memory in any way
            continue
        if input_of(buffer).source in scattered or value.shape != buffer.shape or value.dtype != buffer.dtype:
            continue
        readers = [step for step in plan.steps if buffer in read_by(step, plan.stored)]
        stores = [step for step in plan.steps if isinstance(step, Kernel) and value in step.outputs]
        if len(stores) != 1 or any(step is not stores[0] for step in readers):
            continue
        if buffer not in multiplied(stores[0], plan.stored) and _same_place(stores[0], buffer, value):
            found[buffer] = value
    return found


def _same_place(kernel: Kernel, buffer: Value, value: Value) -> bool:
    """Whether the kernel reads each element of ``buffer`` for nothing but that of ``value``, and stores that once.

    Threads that need the same element each load it: what another result needs may be loaded after it was replaced.
    """
    stored = [offset(index, value.shape) for v, index in kernel.stores if v is value]
    if buffer in topological([v for v, _ in kernel.stores if v is not value]):
        return False
    if (
        len(stored) != 1
        or kernel.loop is not None
        or kernel.whole is not None
        or kernel.cut is not None
        or kernel.in_chunks
    ):
        return False
    where = kernel.domain.resolve(stored[0])
    once = set(kernel.domain.kept) <= where.free_symbols
    places = [kernel.domain.resolve(offset(index, shape)) for v, index, shape in kernel.accesses if v is buffer]
    return once and all(place == where for place in places)


def _bounded(value: Value, counts: list[sympy.Expr], chunks: Chunks) -> bool:
    """Whether an input that is small enough leaves no more elements to ``value``; what long chunks come to is small.

    ``counts``: the elements of the inputs.
    """
    count = numel(value.shape)
    if count.is_number or any(chunks[symbol][1] >= SHORTEST_CHUNK for symbol in count.free_symbols & chunks.keys()):
        return True
    return any(count.free_symbols <= n.free_symbols and quotient(n, count) is not None for n in counts)


def used_inputs(plan: Plan, graph: Graph) -> list[Value]:
    """The graph's inputs that a kernel, a torch call, a view or an output reads, in the graph's order."""
    roots = [v for step in plan.steps if isinstance(step, Kernel) for v, _ in step.stores]
    roots += [step.contract for step in plan.steps if isinstance(step, Kernel) and step.contract]
    used: dict[Value, None] = {v: None for v in topological(roots) if isinstance(v.op, Input)}
    for step in plan.steps:
        if isinstance(step, Kernel):
            continue
        if isinstance(step, Call):
            for v in step.values:
                used.update({o: None for o in operands(v) if isinstance(o.op, Input)})
        elif isinstance(step.value.op, View) and isinstance(step.value.op.operand.op, Input):
            used[step.value.op.operand] = None
    used.update({v: None for v in (*graph.outputs, *graph.updates) if isinstance(v.op, Input)})
    return [v for v in graph.inputs if v in used]


def _for_sizes(graph: Graph, read: list[Value]) -> list[Value]:
    """Inputs that no kernel reads, but whose sizes or device are asked for: ``x.expand_as(y)``, ``return x, y.shape[0]``."""
    needed: set[sympy.Symbol] = set()
    for value in topological(graph.outputs):
        scalars = (
            [o.expr for o in value.op.operands if isinstance(o, Scalar)] if isinstance(value.op, Pointwise) else []
        )
        needed |= {symbol for size in (*value.shape, *scalars) for symbol in size.free_symbols}
    for leaf in graph.output_leaves:
        needed |= leaf.expr.free_symbols if isinstance(leaf, Scalar) else set()
    needed -= {size for value in read for size in value.shape}
    added: list[Value] = []
    for value in graph.inputs:
        if value not in read and needed & set(value.shape):
            added.append(value)
            needed -= set(value.shape)
    if not read and not added:
        added = graph.inputs[:1]
    return added


def _strided(plan: Plan) -> set[Value]:
    """Inputs that only matrix products read, through strides: they need not be contiguous."""
    strided: set[Value] = set()
    other: set[Value] = set()
    order = order_of([step.contract for step in plan.steps if isinstance(step, Kernel) and step.contract is not None])
    inputs = [v for v in order.values if isinstance(v.op, Input)]
    for step in plan.steps:
        if isinstance(step, Kernel) and step.contract is not None:
            by_stride = set(strided_operands(step, plan.stored))
            strided |= by_stride
            above = {v for v in inputs if order.above[step.contract] & order.bit(v)}
            other |= set(step.leaves) | (above - by_stride)  # equal layers are alike: none of them reads by strides
        elif isinstance(step, Kernel):
            other |= set(step.leaves)
    return strided - other


def _size_symbols(
    inputs: list[Value],
) -> tuple[dict[sympy.Symbol, str], dict[sympy.Symbol, Place]]:
    """Each size symbol's name inside kernels, and the dimension of an input that it is."""
    names: dict[sympy.Symbol, str] = {}
    sizes: dict[sympy.Symbol, Place] = {}
    for value in inputs:
        usual = _SIZE_NAMES.get(len(value.shape), tuple(f"size{i}" for i in range(len(value.shape))))
        for i, n in enumerate(value.shape):
            if isinstance(n, sympy.Symbol) and n not in names:
                names[n] = usual[i] if usual[i] not in names.values() else f"{variable_name(value)}_{usual[i]}"
                sizes[n] = (value, i)
    return names, sizes
