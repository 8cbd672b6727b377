"""Recurrences: a program takes rows of the states (of a batch, say) through all steps, one after the other.

Where the body multiplies a state by a matrix, the program has all of the state. A short one stays in registers, and its weights
on chip. Of a long one the program reads what it stored of the step before, and the weights, some columns at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy
import torch

from ..graph.build import opmath
from ..graph.functions import TO_HALF
from ..graph.loops import after, before, contracted, of_member, place_in, reads_back, traced
from ..graph.names import variable_name
from ..graph.order import topological
from ..graph.sizes import ZERO, Index
from ..graph.value import Contract, Held, Recur, Value, operands
from ..kernel.arguments import Arguments
from ..kernel.build import Builder, masked, spread
from ..kernel.domain import Domain
from ..kernel.execution_plan import Hints, Kernel, Looped
from ..kernel.ir import (
    Apply,
    Arange,
    Axis,
    AxisIndex,
    Dot,
    Expr,
    Full,
    Load,
    Number,
    ProgramId,
    Ref,
    Variable,
    apply,
    plus,
)
from ..kernel.statements import Barrier, Comment, For, Set, Statement
from .elementwise import blocked, mask_of
from .extents import power_of_two, total
from .program import Blocks, Program, fixed, set_all
from .schedules import Steps
from .tilings import START

#: the least that a product takes of rows, columns and what is summed
LEAST = 16

#: the constant of a launch that says how many units of a state a program has
BLOCK_UNITS = "BLOCK_HIDDEN"


#: why units that are not there are masked once more
_SUMMED = Comment("The next step sums over all units of the tile: those beyond the last one are set to 0.")


@dataclass(frozen=True)
class Words:
    """Names along the axis of a state beside its units: of the index, its mask, how many there are, a program's block; ``several``: what they are, after a number."""

    index: str
    mask: str
    size: str
    block: str
    several: str


#: where a product takes a state's units, what is beside them is a batch
OF_BATCH = Words("batch", "batch_mask", "batch_size", "BLOCK_BATCH", "sequences of the batch")
OF_ROWS = Words("rows", "row_mask", "n_rows", "BLOCK_ROWS", "rows")


@dataclass
class Frame:
    """A recurrence that is being written: ``units`` is the axis of the state along which its products go, None without one.

    ``carried``: the states that stay in registers from step to step.
    """

    looped: Looped
    program: Program
    builder: Builder
    state: Index
    rows: Axis
    units: Axis | None
    step: Axis
    member: Axis | None  # of several recurrences, which one the program is of
    shape: tuple[Variable, ...]  # of a tile of a state
    carried: dict[Value, Variable] = field(default_factory=dict)

    @property
    def words(self) -> Words:
        """What is called what along ``rows``."""
        return OF_ROWS if self.units is None else OF_BATCH

    @property
    def tile(self) -> frozenset[Axis]:
        """The axes of a state's tile."""
        return frozenset({self.rows} if self.units is None else {self.rows, self.units})

    def trace(self, state: Value) -> Value:
        """Where every step of a state is stored."""
        place = traced(self.looped.loop, state)
        return next(v for v in self.program.arguments.outputs if isinstance(v.op, Recur) and reads_back(v.op, place))

    @property
    def begun(self) -> bool:
        """Whether a state that a step reads is stored before the first one."""
        traces = [self.trace(state).op for state in contracted(self.looped.loop)]
        return any(isinstance(op, Recur) and op.begun for op in traces)


def _is_last(value: Value, state: int) -> bool:
    return isinstance(value.op, Recur) and value.op.state == state and not value.op.each


def recurrent(
    kernel: Kernel, name: str, arguments: Arguments, hints: Hints, stored: set[Value], schedule: Steps
) -> Program:
    """All steps by programs that know nothing of each other."""
    looped = kernel.loop
    assert looped is not None and looped.member is None
    domain = kernel.domain.copy()
    program = Program(name, arguments, num_warps=schedule.warps, num_stages=1)
    frame = framed(kernel, domain, program, stored)
    rows, units = frame.rows, frame.units
    n_rows = total(domain, rows.atoms)
    words = frame.words
    arguments.name_size(n_rows, words.size)
    block = program.block(words.block, schedule.rows)
    lane = None if units is None else (0, 2)
    program.grid = [[Blocks(n_rows, schedule.rows)]]
    program.body += set_all(
        (rows.variable, blocked(ProgramId(0), block, rows, lane)),
        mask_of(rows, words.mask, arguments.size(n_rows)),
    )
    frame.shape = (block,)
    if units is not None:
        n_units = total(domain, units.atoms)
        name_units(arguments, n_units, len(looped.products))
        width = max(LEAST, power_of_two(int(n_units)))
        # Where one part is all, the steps are the innermost loop, of which no load may run ahead: it reads what the last stored.
        program.num_stages = schedule.stages if 0 < schedule.depth < n_units else 1
        size = program.block(BLOCK_UNITS, width)
        frame.shape = (block, size)
        program.body += set_all((units.variable, Arange(size, units, (1, 2))))
        if width != n_units:
            program.body += set_all(mask_of(units, "unit_mask", arguments.size(n_units)))
    carry(frame, in_registers=not schedule.depth)
    begin(frame)
    waiting: list[Statement] = []
    if contracted(looped.loop) and schedule.depth:
        waiting = [Comment("Threads read what other threads of the program store: all wait here for all."), Barrier()]
    frame.builder.lines += waiting if frame.begun else []
    for state in contracted(looped.loop):
        _products(frame, domain, state, schedule, stored)
    advance(frame)
    frame.builder.inner += waiting[1:] if frame.begun else waiting
    end(frame)
    how = (
        "the weights stay on chip"
        if not schedule.depth
        else "it reads the weights, and the state that it stored, at each"
    )
    program.tiling = f"One program takes {schedule.rows} {words.several} through all steps" + (
        f"; {how}." if units is not None else "."
    )
    return program


def name_units(arguments: Arguments, n_units: sympy.Expr, parts: int) -> None:
    """Name the size along which a state's products go, and its multiples: a gate's rows begin at one of them."""
    arguments.name_size(n_units, "HIDDEN", least=2)
    if n_units in arguments.static:
        arguments.name_multiples(n_units, parts)


def framed(kernel: Kernel, domain: Domain, program: Program, stored: set[Value]) -> Frame:
    """The axes of a recurrence, and a builder for its body."""
    looped, arguments = kernel.loop, program.arguments
    assert looped is not None
    state = tuple(domain.resolve(e) for e in domain.origin[:-1])
    for v, _ in kernel.stores:
        arguments.outputs[v] = arguments.variable(f"{variable_name(v)}_ptr")
    arguments.name_size(looped.loop.steps, "n_steps")
    across = {d for d in contracted(looped.loop).values()}
    assert len(across) <= 1, "states that are multiplied along different dimensions"
    unit = [e for d, e in enumerate(state) if d in across]
    unit_atoms = [a for a in domain.kept if any(a in e.free_symbols for e in unit)]
    words = OF_BATCH if across else OF_ROWS
    rows = Axis(fixed(words.index), [a for a in domain.kept if a not in unit_atoms and a != looped.member], "tile")
    units = Axis(fixed("units"), unit_atoms, "tile") if across else None
    step = Axis(fixed("step"), [looped.step] if isinstance(looped.step, sympy.Symbol) else [], "scalar")
    member = None if looped.member is None else Axis(fixed("member"), [looped.member], "grid")
    axes = [axis for axis in (step, member, rows, units) if axis is not None]
    return Frame(looped, program, Builder(domain, axes, arguments, stored, {}), state, rows, units, step, member, ())


def carry(frame: Frame, *, in_registers: bool) -> None:
    """Choose the states that stay in registers: those that are used otherwise than in a product, or stored at the end.

    ``in_registers``: all of them.
    """
    looped = frame.looped
    used = {o for v in topological(list(looped.next)) for o in operands(v) if not isinstance(v.op, Contract)}
    used |= {v for v in looped.next if isinstance(v.op, Held)}
    for place, state in enumerate(looped.loop.held):
        wanted = any(_is_last(v, place) for v in frame.program.arguments.outputs)
        if in_registers or wanted or state in used:
            frame.carried[state] = frame.program.arguments.variable(state.name or "state")


def begin(frame: Frame) -> None:
    """The states before the first step: loaded, and stored where every step is."""
    builder, looped = frame.builder, frame.looped
    firsts = [of_member(value, looped.member) for value in looped.loop.first]
    for value in firsts:
        builder.count(value, frame.state)
    for place, (state, first) in enumerate(zip(looped.loop.held, firsts, strict=True)):
        found = builder.value(first, frame.state)
        if isinstance(found, Number):
            found = Full(frame.shape, float(found.value), opmath(first.dtype), frame.tile)
        for axis in frame.tile:
            found = spread(found, axis)
        if state in frame.carried:
            variable = frame.carried[state]
            last, alone = (
                builder.lines[-1] if builder.lines else None,
                builder.uses[builder.key(first, frame.state)] == 1,
            )
            if isinstance(last, Set) and isinstance(found, Ref) and last.variable is found.variable and alone:
                builder.lines.pop()  # it needs no other name
                found = last.value
            builder.lines.append(Set(variable, found))
            found = Ref(variable, frame.tile, state.dtype)
            builder.reduced[state] = Ref(variable, frame.tile | {frame.step}, state.dtype)
        for v in frame.program.arguments.outputs:
            if isinstance(v.op, Recur) and v.op.each and v.op.state == place and v.op.begun:
                where = place_in(v.op, before(looped.loop, ZERO), frame.state)
                builder.lines.append(builder.stored_at(v, looped.at(*where), found))


def _products(frame: Frame, domain: Domain, state: Value, schedule: Steps, stored: set[Value]) -> None:
    """The body's products of ``state``, each a tile of rows and units: the statements of a step, and what is loaded before."""
    program, builder, units = frame.program, frame.builder, frame.units
    arguments, looped = program.arguments, frame.looped
    assert units is not None
    whole = not schedule.depth
    width = program.blocks[frame.shape[1]]
    assert isinstance(width, int)
    depth = frame.shape[1] if whole else program.block("BLOCK_K", schedule.depth)
    n_units = total(domain, units.atoms)
    ks, sum_atom = fixed("ks"), looped.summed[state]
    sides = []
    for lane in ((1, 2), (0, 2)):
        along = Axis(
            ks, [sum_atom] if isinstance(sum_atom, sympy.Symbol) else [], "tile" if whole else "loop", lane=lane
        )
        if n_units % (width if whole else schedule.depth) != 0:
            along.mask = apply("lt", AxisIndex(along), arguments.size(n_units), dtype=torch.bool)
        sides.append(along)
    inner: list[Statement] = []
    index = Arange(depth, sides[0])
    (builder.lines if whole else inner).append(Set(ks, index if whole else plus(Ref(START), index)))
    if whole:
        left: Expr = Ref(frame.carried[state], frame.tile | {frame.step}, state.dtype)
    else:
        left = _state_before(frame, domain, state, sides[0], stored, inner)
    weights = Builder(domain, [units, sides[1]], arguments, stored, {})
    weights.raw_half = True
    precision: Variable | None = None
    mine = []
    for product, at, near in looped.products:
        op = product.op
        assert isinstance(op, Contract)
        if op.left is state:
            letters = dict(zip(op.axes, at, strict=True)) | {op.summed: sum_atom}
            place = tuple(letters[letter] for letter in op.right_axes)
            weights.count(op.right, place)
            mine.append((product, op, at, place, near.name if near is not None else "state"))
    for product, op, at, place, needs in mine:
        acc = Ref(arguments.variable(f"{needs}_acc"), frame.tile | {frame.step}, torch.float32)
        builder.inner.append(Set(acc.variable, Full(frame.shape, 0.0, torch.float32, acc.axes)))
        weights.needs = [needs]
        right = weights.value(op.right, place)
        for axis in (units, sides[1]):
            right = spread(right, axis)
        half = right_dtype(op.right)
        if half is None and precision is None:
            precision = program.block("PRECISION", schedule.precision)
        factor = left if half is None or not whole else Apply(TO_HALF[half], (left,), half)
        inner += weights.inner
        weights.inner = []
        inner.append(Set(acc.variable, Dot(factor, right, acc, precision if half is None else None)))
        builder.memo[builder.key(product, at), ()] = acc
    builder.lines += weights.lines
    if whole:
        builder.inner += inner
    else:
        builder.inner.append(For(START, Number(0), arguments.size(n_units), depth, tuple(inner)))


def _state_before(
    frame: Frame, domain: Domain, state: Value, along: Axis, stored: set[Value], statements: list[Statement]
) -> Ref:
    """A part of the state that the step before stored, as a tile of rows and what is summed."""
    held = state_load(frame, domain, state, [frame.rows, along], stored)
    variable = frame.program.arguments.variable(f"{state.name or 'state'}_part")
    statements.append(Set(variable, held))
    return Ref(variable, held.axes, held.dtype, 0.0)


def state_load(
    frame: Frame, domain: Domain, state: Value, axes: list[Axis], stored: set[Value], cache: str = ""
) -> Load:
    """Of ``state`` what the step before stored, along ``axes``; of ``below`` what this step stored in the layer below."""
    looped, trace = frame.looped, frame.trace(state)
    loop, masks = looped.loop, []
    summed, op = contracted(loop)[state], trace.op
    assert isinstance(op, Recur)
    place = after(loop, looped.step) if state is loop.below else before(loop, looped.step)
    own = tuple(looped.summed[state] if d == summed else e for d, e in enumerate(frame.state))
    index = looped.at(*place_in(op, place, own))
    if state is not loop.below and not op.begun:  # zeros, which nothing stored
        masks = [apply("gt", AxisIndex(frame.step), Number(0), dtype=torch.bool)]
    if state is loop.below and frame.member is not None:
        index = (index[0] - 1, *index[1:])
        masks = [apply("gt", AxisIndex(frame.member), Number(0), dtype=torch.bool)]
    members = [] if frame.member is None else [frame.member]
    reader = Builder(domain, [frame.step, *members, *axes], frame.program.arguments, stored, {})
    where = reader.address(trace, index, trace.shape)
    for axis in axes:
        where = spread(where, axis)
    pointer = frame.program.arguments.outputs[trace]
    return Load(pointer, where, (*reader.masks(where.axes), *masks), 0.0, trace.dtype, cache)


def right_dtype(value: Value) -> torch.dtype | None:
    """The half precision that a product's right operand has, None for float32."""
    return value.dtype if value.dtype in TO_HALF else None


def advance(frame: Frame) -> None:
    """What a step does after its products: the next states are computed, stored and carried on."""
    builder, looped = frame.builder, frame.looped
    for value in looped.next:
        builder.count(value, frame.state)
    for value in looped.gates:  # in torch's order, whichever the next states ask for first
        builder.value(value, frame.state)
    found = [builder.value(value, frame.state) for value in looped.next]
    for place, result in enumerate(found):
        for v in frame.program.arguments.outputs:
            if isinstance(v.op, Recur) and v.op.each and v.op.state == place:
                where = place_in(v.op, after(looped.loop, looped.step), frame.state)
                builder.inner.append(builder.stored_at(v, looped.at(*where), result))
    for state, result in zip(looped.loop.held, found, strict=True):
        if state in frame.carried:
            in_product = state in contracted(looped.loop) and frame.units is not None and frame.units.mask is not None
            if in_product and frame.units is not None and frame.units.mask is not None:
                result = masked(result, frame.units.mask, 0.0, state.dtype)
                builder.inner += [] if _SUMMED in builder.inner else [_SUMMED]
            builder.inner.append(Set(frame.carried[state], result))


def end(frame: Frame) -> None:
    """The loop over the steps, and the states after the last one."""
    builder, looped, program = frame.builder, frame.looped, frame.program
    steps = program.arguments.size(looped.loop.steps)
    program.body += builder.lines
    program.body.append(For(frame.step.variable, Number(0), steps, Number(1), tuple(builder.inner), in_order=True))
    for v in program.arguments.outputs:
        if isinstance(v.op, Recur) and not v.op.each:
            held = Ref(frame.carried[looped.loop.held[v.op.state]], frame.tile, v.dtype)
            program.body.append(builder.stored_at(v, looped.at(*frame.state), held))
