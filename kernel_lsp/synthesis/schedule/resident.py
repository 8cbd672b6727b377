"""Recurrences whose weights stay on chip: the units of a state are split among programs, which exchange it through memory.

Each program keeps the rows of the weights that make its units, for all gates, one below the other: one product a step. After a
step it stores its units and counts itself; before a step it waits until all programs of its rows are counted, and reads the
whole state. So all programs have to run at once, which a cooperative launch guarantees. A program that has all units waits for
none, and keeps the state in registers.

How float32 is multiplied: ``halves.py``.
"""

from __future__ import annotations

import sympy
import torch

from ..graph.functions import TO_HALF
from ..graph.loops import contracted, made_of_numbers
from ..graph.sizes import Index
from ..graph.value import Contract, Op, Value, View
from ..kernel.access import operand_indices, reshaped_leaf
from ..kernel.arguments import Arguments
from ..kernel.build import Builder
from ..kernel.domain import Domain
from ..kernel.execution_plan import Hints, Kernel
from ..kernel.ir import (
    Apply,
    Arange,
    Axis,
    AxisIndex,
    Dot,
    Expr,
    Full,
    Number,
    ProgramId,
    Ref,
    Variable,
    apply,
    plus,
)
from ..kernel.statements import Arrive, Await, Comment, Set, Split, Statement
from .elementwise import blocked, mask_of
from .extents import power_of_two, total
from .halves import PLANES, RAISED, SPLIT, assigned, halves, largest, one_for_none
from .program import Blocks, OfAll, Program, fixed, set_all
from .recurrent import (
    BLOCK_UNITS,
    LEAST,
    OF_BATCH,
    Frame,
    advance,
    begin,
    carry,
    end,
    framed,
    name_units,
    right_dtype,
    state_load,
)
from .schedules import Resident

#: what a kernel says of the barriers between programs
_COUNTED = "Other programs read these units of the state: this one is counted when it has stored them."
_OTHERS = "Other programs have the other units of the state: wait until all are stored, then read it whole."
_BELOW = "The layer below is other programs': wait until they have stored this step of it."
#: parts of one product that ``Split`` can tell apart
MOST_PARTS = 4


def gates(kernel: Kernel) -> dict[Value, list[tuple[Value, Index]]]:
    """Of each state that is multiplied its products in a step, where they are parts of one product with a weight; else nothing.

    The weight is [parts * units, units], and the products stand in its order, as many for each state. Row g * units + u of a weight
    makes unit u of part g.
    """
    looped = kernel.loop
    assert looped is not None
    result = {}
    for state, across in contracted(looped.loop).items():
        mine = [(product, index) for product, index, _ in looped.products if _left(product) is state]
        op, unit = mine[0][0].op, kernel.domain.resolve(kernel.domain.origin[across])
        assert isinstance(op, Contract)
        if len({product for product, _ in mine}) != 1 or len(op.right.shape) != 2 or op.right_axes[1] != op.summed:
            return {}
        place, units = op.axes.index(op.right_axes[0]), state.shape[across]
        found = {sympy.expand(index[place] - unit): (product, index) for product, index in mine}
        expected = [units * g for g in range(len(found))]
        if set(found) != set(expected) or op.right.shape[0] != len(found) * units or not units.is_Integer:
            return {}
        result[state] = [found[shift] for shift in expected]
    counts = {len(found) for found in result.values()}
    return result if len(counts) == 1 and max(counts) <= MOST_PARTS else {}


def _left(product: Value) -> Value:
    assert isinstance(product.op, Contract)
    return product.op.left


def resident(
    kernel: Kernel, name: str, arguments: Arguments, hints: Hints, stored: set[Value], schedule: Resident
) -> Program:
    """All steps by programs that wait for each other after each; one that has all units waits for none."""
    looped = kernel.loop
    assert looped is not None
    products = gates(kernel)
    assert products
    domain = kernel.domain.copy()
    program = Program(name, arguments, num_warps=schedule.warps, num_stages=1)
    frame = framed(kernel, domain, program, stored)
    rows, units = frame.rows, frame.units
    assert units is not None
    n_rows, n_units = total(domain, rows.atoms), total(domain, units.atoms)
    whole, parts = schedule.units >= n_units, len(next(iter(products.values())))
    name_units(arguments, n_units, parts)
    arguments.name_size(n_rows, OF_BATCH.size)
    size = program.block(BLOCK_UNITS, schedule.units if whole else OfAll(n_units, schedule.units))
    block = program.block(OF_BATCH.block, schedule.rows)
    program.grid = [[Blocks(n_rows, schedule.rows)]]
    program.grid = program.grid if whole else [[OfAll(n_units, schedule.units)], *program.grid]
    frame.shape = (size, block)
    row_block: Expr = ProgramId(0 if whole else 1)
    if frame.member is not None:
        assert looped.loop.members is not None
        program.body += set_all((frame.member.variable, ProgramId(len(program.grid))))
        program.grid.append([sympy.Integer(looped.loop.members)])
    if not whole or looped.loop.below is not None:
        program.body += set_all((fixed("batch_block"), row_block))
        row_block = Ref(fixed("batch_block"))
    program.body += set_all(
        (units.variable, Arange(size, units, (0, 2)) if whole else blocked(ProgramId(0), size, units, (0, 2))),
        (rows.variable, blocked(row_block, block, rows, (1, 2))),
        mask_of(rows, OF_BATCH.mask, arguments.size(n_rows)),
        *([] if n_units % max(LEAST, schedule.units) == 0 else [mask_of(units, "unit_mask", arguments.size(n_units))]),
    )
    signal, waits = _signals(frame, schedule, n_rows, n_units)
    carry(frame, in_registers=whole)
    begin(frame)
    first = signal if frame.begun else []
    frame.builder.lines += [Comment(_COUNTED), *first] if first else []
    _load_inputs(frame)
    lanes, along = _axes(frame, domain, parts, whole=whole)
    # What the layer below made is there first: this layer waits for itself last.
    for state in sorted(products, key=lambda state: state is not looped.loop.below):
        _product(frame, domain, state, products[state], waits[state], stored, lanes, along)
    advance(frame)
    frame.builder.inner += [Comment(_COUNTED), *signal] if signal and not first else signal
    end(frame)
    program.tiling = f"One program takes {schedule.rows} {OF_BATCH.several}"
    program.tiling += "" if whole else f" and {schedule.units} units of the state"
    program.tiling += " through all steps, with the recurrent weights kept on chip"
    program.tiling += ", and waits for the others after each." if program.together else "."
    program.tiling += (
        " A tile's rows are units of the state, its columns sequences; tiles of several gates lie below each other."
    )
    return program


def _signals(
    frame: Frame, schedule: Resident, n_rows: sympy.Expr, n_units: sympy.Expr
) -> tuple[list[Statement], dict[Value, Statement | None]]:
    """What ends a step, and what has to come before a state is read; None where the program has all of it itself."""
    looped, program = frame.looped, frame.program
    loop, arguments = looped.loop, program.arguments
    states = contracted(loop)
    whole = schedule.units >= n_units
    if whole and loop.below is None:
        return [], dict.fromkeys(states)
    program.together = True
    program.limits.append((n_rows, schedule.rows * schedule.blocks))
    # A counter for each block of rows, at the first of them; of layers those of the lowest come after zeros.
    counters = n_rows if loop.members is None else n_rows * (loop.members + (loop.below is not None))
    arrived = Value(Op(), (sympy.expand(counters),), torch.int32, "arrived")
    program.zeroed.append(arrived)
    pointer = arguments.outputs[arrived] = arguments.variable("arrived_ptr")
    first = apply("mul", Ref(fixed("batch_block")), Ref(frame.shape[1]))
    parts = apply("cdiv", arguments.size(n_units), Ref(frame.shape[0]))
    step: Expr = AxisIndex(frame.step)
    before = int(frame.begun)  # how often a program has stored the state before the first step
    stored = plus(step, Number(1)) if before else step
    own: Expr = first
    lower: Expr = first
    waits: dict[Value, Statement | None] = {}
    if frame.member is not None:
        member = AxisIndex(frame.member)
        lower = plus(apply("mul", member, arguments.size(n_rows)), first)
        own = (
            plus(apply("mul", plus(member, Number(1)), arguments.size(n_rows)), first)
            if loop.below is not None
            else lower
        )
    for state in states:
        if state is loop.below:
            assert frame.member is not None
            done = apply("mul", plus(step, Number(before + 1)), parts)
            waits[state] = Await(
                pointer, lower, apply("mul", done, apply("minimum_int", AxisIndex(frame.member), Number(1)))
            )
        else:
            waits[state] = None if whole else Await(pointer, own, apply("mul", stored, parts))
    return [Arrive(pointer, own)], waits


def _load_inputs(frame: Frame) -> None:
    """Load what is given to the step before waiting for the state: it does not depend on that."""
    builder, looped = frame.builder, frame.looped
    for value in looped.next:
        builder.count(value, frame.state)
    seen: set[tuple[Value, Index]] = set()

    def visit(value: Value, index: Index, needs: str) -> None:
        key = builder.key(value, index)
        if key in seen or value in builder.reduced:
            return
        seen.add(key)
        guarded = isinstance(value.op, View) and bool(value.op.map.guard)
        if guarded or reshaped_leaf(value, builder.stored) is not None:
            builder.needs = [needs] if needs else []
            builder.value(value, index)
            return
        if isinstance(value.op, Contract):
            return
        for operand, at in operand_indices(value, key[1], builder.domain):
            visit(operand, at, needs if isinstance(value.op, View) else value.name or needs)

    for value in (*looped.gates, *looped.next):
        visit(value, frame.state, "")
    builder.needs = []
    builder.uses.clear()


def _product(
    frame: Frame,
    domain: Domain,
    state: Value,
    parts: list[tuple[Value, Index]],
    wait: Statement | None,
    stored: set[Value],
    lanes: Axis,
    along: tuple[Variable, Expr | None],
) -> None:
    """One product of the weights that the program holds and a state, and its parts."""
    program, builder, looped = frame.program, frame.builder, frame.looped
    arguments, op = program.arguments, parts[0][0].op
    assert isinstance(op, Contract)
    ks, mask = along
    summed = looped.summed[state]
    beside_weight, beside_state = (
        Axis(ks, [summed] if isinstance(summed, sympy.Symbol) else [], "tile", lane=lane) for lane in ((1, 2), (0, 2))
    )
    if mask is not None:
        for axis in (beside_weight, beside_state):
            axis.mask = apply("lt", AxisIndex(axis), mask, dtype=torch.bool)
    # The weights, once.
    reader = Builder(domain, [*filter(None, [frame.member]), lanes, beside_weight], arguments, stored, {})
    reader.raw_half = True
    place = (lanes.atoms[0], summed)
    reader.count(op.right, place)
    weight = reader.value(op.right, place)
    builder.lines += reader.lines
    half = right_dtype(op.right)
    inner = builder.inner
    name = "below" if state is looped.loop.below else f"{state.name or 'state'}_before"
    loaded: Expr
    if wait is None:
        name, loaded = state.name or "state", _kept(frame, state, beside_state)
    else:
        held = state_load(frame, domain, state, [beside_state, frame.rows], stored, ".cg")
        loaded = Ref(arguments.variable(name), held.axes, held.dtype)
        inner += [
            Comment(_BELOW if state is looped.loop.below else _OTHERS),
            wait,
            Set(loaded.variable, held),
        ]
    several = sum(other is not looped.loop.below for other in contracted(looped.loop)) > 1
    apart = "_below" if state is looped.loop.below else f"_{state.name or 'state'}" if several else ""
    total_of = arguments.variable(f"acc{apart}") if apart else fixed("acc")
    acc = Ref(total_of, frozenset({lanes, frame.rows, frame.step}), torch.float32)
    lane_count = program.multiple(power_of_two(len(parts)), frame.shape[0])
    zeros = Full((lane_count, frame.shape[1]), 0.0, torch.float32, acc.axes)
    if half is not None:
        inner.append(Set(acc.variable, Dot(weight, loaded, zeros)))
    else:
        about = Comment(PLANES)
        first = about not in builder.lines
        builder.lines += [about] if first else []
        scale: Expr = one_for_none(arguments, f"largest{apart}", largest(weight, beside_weight, 1), builder.lines)
        scaled = apply("div", weight, scale, dtype=torch.float32)
        split = Ref(next((v for v in program.blocks if v.wanted == SPLIT), None) or program.block(SPLIT, RAISED))
        low_weight, high_weight = halves(arguments, scaled, f"weight{apart}", split, builder.lines)
        if not (looped.loop.bounded and made_of_numbers(looped.loop.first[0])):  # its numbers may be of any size
            most = one_for_none(arguments, f"most_{name}", largest(loaded, beside_state, 0), inner)
            loaded = assigned(arguments, f"{name}_scaled", apply("div", loaded, most, dtype=torch.float32), inner)
            scale = apply("mul", scale, most, dtype=torch.float32)
        low_state, high_state = halves(arguments, loaded, name, split, inner)
        inner.append(Set(acc.variable, Dot(high_weight, low_state, zeros)))
        inner.append(Set(acc.variable, Dot(low_weight, high_state, acc)))
        if first:
            inner.append(
                Comment(
                    "The low parts' share, times 1 / SPLIT. The low part of an infinity is inf - inf, a NaN: it counts as 0 here."
                )
            )
        same = apply("eq", acc, acc, dtype=torch.bool)
        rest = apply("mul", acc, apply("div", Number(1), split, dtype=torch.float32), dtype=torch.float32)
        inner.append(Set(acc.variable, Apply("where", (same, rest, Number(0.0)), torch.float32)))
        inner.append(Set(acc.variable, Dot(high_weight, high_state, acc)))
        inner.append(Set(acc.variable, apply("mul", acc, scale, dtype=torch.float32)))
    tile = frame.tile | {frame.step}
    if len(parts) == 1:
        builder.memo[builder.key(*parts[0]), ()] = Ref(acc.variable, tile, torch.float32)
        return
    near = {builder.key(product, index): needs for product, index, needs in looped.products}
    needs = [near[builder.key(*part)] for part in parts]
    of = "below" if state is looped.loop.below else "acc"
    names = [arguments.variable(f"{'state' if value is None else value.name}_{of}") for value in needs]
    spare: list[Variable | None] = [None] * (power_of_two(len(parts)) - len(parts))
    inner.append(Split((*names, *spare), acc, (frame.shape[0], frame.shape[1])))
    for part, variable in zip(parts, names, strict=True):
        builder.memo[builder.key(*part), ()] = Ref(variable, tile, torch.float32)


def _kept(frame: Frame, state: Value, along: Axis) -> Expr:
    """The state in registers as an operand that is summed over ``along``, rounded as its result in memory is."""
    held = Ref(frame.carried[state], frozenset({along, frame.rows, frame.step}), state.dtype)
    dtype = frame.trace(state).dtype
    return held if dtype == state.dtype else Apply(TO_HALF[dtype], (held,), dtype)


def _axes(frame: Frame, domain: Domain, parts: int, *, whole: bool) -> tuple[Axis, tuple[Variable, Expr | None]]:
    """The rows of the weights that the program holds, all parts of its units, and the indices that are summed.

    These with their end where some lie beyond it. ``whole``: the program has all units.
    """
    program, builder, units = frame.program, frame.builder, frame.units
    arguments, size = program.arguments, frame.shape[0]
    assert units is not None
    n_units = total(domain, units.atoms)
    n_lanes = n_units * parts
    row = domain.atom("n", n_lanes, reduced=False)
    lanes = Axis(units.variable if parts == 1 else fixed("weight_rows"), [row], "tile")
    depth = max(LEAST, power_of_two(int(n_units)))
    if parts == 1 and units.mask is not None:
        lanes.mask = Ref(fixed("unit_mask"), frozenset({lanes}), torch.bool)
    elif parts > 1:
        count = program.multiple(power_of_two(parts), size)
        inside: list[Expr] = []
        if whole and depth == n_units:  # the gates of the weight follow each other as they do in the tile
            builder.lines += set_all((lanes.variable, Arange(count, lanes, (0, 2))))
        else:
            gate_row, unit = _over(fixed("gate_row"), lanes), _over(fixed("unit"), lanes)
            place = apply("mod_int", gate_row, Ref(size))
            first = apply("mul", apply("floordiv_int", gate_row, Ref(size)), arguments.size(n_units))
            builder.lines += set_all(
                (gate_row.variable, Arange(count, lanes, (0, 2))),
                (unit.variable, place if whole else plus(apply("mul", ProgramId(0), Ref(size)), place)),
                (lanes.variable, plus(first, unit)),
            )
            if units.mask is not None:
                inside.append(apply("lt", unit, arguments.size(n_units), dtype=torch.bool))
        if parts != power_of_two(parts):
            inside.append(apply("lt", _over(lanes.variable, lanes), arguments.size(n_lanes), dtype=torch.bool))
        if inside:
            mask = fixed("weight_mask")
            both = inside[0] if len(inside) == 1 else apply("and", *inside, dtype=torch.bool)
            builder.lines.append(Set(mask, both))
            lanes.mask = Ref(mask, frozenset({lanes}), torch.bool)
    ks = fixed("ks")
    builder.lines.append(Set(ks, Arange(size if whole else program.block("BLOCK_K", depth), Axis(ks, [], "tile"))))
    return lanes, (ks, None if depth == n_units else arguments.size(n_units))


def _over(variable: Variable, axis: Axis) -> Ref:
    return Ref(variable, frozenset({axis}))
