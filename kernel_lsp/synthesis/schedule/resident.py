"""Recurrences whose weights stay on chip: the units of a state are split among programs, which exchange it through memory.

Each program keeps the rows of the weights that make its units, for all gates, one below the other: one product a step. After a
step it stores its units and counts itself; before a step it waits until all programs of its rows are counted, and reads the
whole state. So all programs have to run at once, which a cooperative launch guarantees. float32 is multiplied as
three products of bfloat16 parts: high * high, high * low and low * high, which leaves an error of about 2^-17 of each product.
"""

from __future__ import annotations

import sympy
import torch

from ..graph.loops import contracted
from ..graph.sizes import Index
from ..graph.value import Contract, Op, Value
from ..kernel.access import operand_indices, reshaped_leaf
from ..kernel.arguments import Arguments
from ..kernel.build import Builder
from ..kernel.domain import Domain
from ..kernel.ir import (
    Apply,
    Arange,
    Arrive,
    Await,
    Axis,
    AxisIndex,
    Dot,
    Expr,
    Full,
    Number,
    ProgramId,
    Ref,
    Set,
    Split,
    Statement,
    Variable,
    apply,
    plus,
)
from ..kernel.steps import Hints, Kernel
from .elementwise import blocked, mask_of
from .extents import power_of_two, total
from .program import Blocks, OfAll, Program, fixed, set_all
from .recurrent import LEAST, Frame, advance, begin, carry, end, framed, right_dtype, state_load
from .schedules import Resident

#: parts of one product that ``Split`` can tell apart
MOST_PARTS = 4


def gates(kernel: Kernel) -> list[tuple[Value, Index]]:
    """The products of a step, where they are parts of one product with a weight [parts * units, units], in its order; else none.

    Row g * units + u of the weight makes unit u of part g.
    """
    looped = kernel.loop
    assert looped is not None
    states, products = contracted(looped.loop), {product for product, _, _ in looped.products}
    if len(states) != 1 or len(products) != 1:
        return []
    (product,), ((state, across),) = products, states.items()
    op, unit = product.op, kernel.domain.resolve(kernel.domain.origin[across])
    assert isinstance(op, Contract)
    if len(op.right.shape) != 2 or op.right_axes[1] != op.summed or op.right_axes[0] not in op.axes:
        return []
    place, units = op.axes.index(op.right_axes[0]), state.shape[across]
    found = {sympy.expand(index[place] - unit): (product, index) for _, index, _ in looped.products}
    expected = [units * g for g in range(len(found))]
    fits = set(found) == set(expected) and len(found) <= MOST_PARTS and op.right.shape[0] == len(found) * units
    return [found[shift] for shift in expected] if fits and units.is_Integer else []


def resident(
    kernel: Kernel, name: str, arguments: Arguments, hints: Hints, stored: set[Value], schedule: Resident
) -> Program:
    """All steps by programs that wait for each other after each."""
    looped = kernel.loop
    assert looped is not None
    parts = gates(kernel)
    assert parts
    domain = kernel.domain.copy()
    program = Program(name, arguments, num_warps=schedule.warps, num_stages=1, together=True)
    frame = framed(kernel, domain, program, stored)
    ((state, _),) = contracted(looped.loop).items()
    rows, units = frame.rows, frame.units
    assert units is not None
    n_rows, n_units = total(domain, rows.atoms), total(domain, units.atoms)
    arguments.name_size(n_rows, "n_rows")
    arguments.name_size(n_units, "n_units")
    program.limits.append((n_rows, schedule.rows * schedule.blocks))
    size = program.block("UNITS", OfAll(n_units, schedule.units))
    block = program.block("BLOCK_ROWS", schedule.rows)
    program.grid = [[OfAll(n_units, schedule.units)], [Blocks(n_rows, schedule.rows)]]
    frame.shape = (size, block)
    row_block = fixed("row_block")
    program.body += set_all(
        (row_block, ProgramId(1)),
        (units.variable, blocked(ProgramId(0), size, units, (0, 2))),
        (rows.variable, blocked(Ref(row_block), block, rows, (1, 2))),
        mask_of(rows, "row_mask", arguments.size(n_rows)),
        *([] if n_units % max(LEAST, schedule.units) == 0 else [mask_of(units, "unit_mask", arguments.size(n_units))]),
    )
    arrived = Value(Op(), (n_rows,), torch.int32, "arrived")
    program.zeroed.append(arrived)
    arguments.outputs[arrived] = arguments.variable("arrived_ptr")
    counter = apply("mul", Ref(row_block), Ref(block))  # of the rows' own, as far apart as they are
    signal = Arrive(arguments.outputs[arrived], counter)
    carry(frame, in_registers=False)
    begin(frame)
    frame.builder.lines.append(signal)
    count = apply("mul", plus(Ref(frame.step.variable), Number(1)), apply("cdiv", arguments.size(n_units), Ref(size)))
    wait = Await(arguments.outputs[arrived], counter, count)
    _load_inputs(frame)
    _product(frame, domain, state, parts, wait, stored)
    advance(frame)
    frame.builder.inner.append(signal)
    end(frame)
    program.tiling = (
        f"One program has {schedule.units} units of {schedule.rows} rows: it keeps their weights on chip through all "
        "steps, and waits for the others after each."
    )
    return program


def _load_inputs(frame: Frame) -> None:
    """Load what is given to the step before waiting for the state: it does not depend on that."""
    builder, looped = frame.builder, frame.looped
    for value in looped.next:
        builder.count(value, frame.state)
    seen: set[tuple[Value, Index]] = set()

    def visit(value: Value, index: Index) -> None:
        key = builder.key(value, index)
        if key in seen or value in builder.reduced or isinstance(value.op, Contract):
            return
        seen.add(key)
        if reshaped_leaf(value, builder.stored) is not None:
            builder.value(value, index)
            return
        for operand, at in operand_indices(value, key[1], builder.domain):
            visit(operand, at)

    for value in looped.next:
        visit(value, frame.state)
    builder.uses.clear()


def _product(
    frame: Frame, domain: Domain, state: Value, parts: list[tuple[Value, Index]], wait: Await, stored: set[Value]
) -> None:
    """One product of the weights that the program holds and the state, and its parts."""
    program, builder, looped = frame.program, frame.builder, frame.looped
    arguments, op = program.arguments, parts[0][0].op
    assert isinstance(op, Contract)
    lanes, along_weight, along_state = _axes(frame, domain, len(parts), op.right.shape[0], looped.summed[state])
    # The weights, once.
    reader = Builder(domain, [lanes, along_weight], arguments, stored, {})
    reader.raw_half = True
    place = (lanes.atoms[0], looped.summed[state])
    reader.count(op.right, place)
    weight = reader.value(op.right, place)
    builder.lines += reader.lines
    half = right_dtype(op.right)
    inner = builder.inner
    inner.append(wait)
    held = state_load(frame, domain, state, [frame.step, along_state, frame.rows], stored, cache=".cg")
    loaded = Ref(arguments.variable(state.name or "state"), held.axes, held.dtype)
    inner.append(Set(loaded.variable, held))
    acc = Ref(fixed("acc"), frozenset({lanes, frame.rows, frame.step}), torch.float32)
    lane_count = next(v for v in program.blocks if v.wanted == ("LANES" if len(parts) > 1 else "UNITS"))
    inner.append(Set(acc.variable, Full((lane_count, frame.shape[1]), 0.0, torch.float32, acc.axes)))
    if half is not None:
        terms = [(weight, loaded)]
    else:
        low_weight, high_weight = _halves(arguments, weight, "weight", builder.lines)
        low_state, high_state = _halves(arguments, loaded, state.name or "state", inner)
        terms = [(high_weight, low_state), (low_weight, high_state), (high_weight, high_state)]
    inner += [Set(acc.variable, Dot(left, right, acc)) for left, right in terms]
    tile = frame.tile | {frame.step}
    if len(parts) == 1:
        builder.memo[builder.key(*parts[0])] = Ref(acc.variable, tile, torch.float32)
        return
    near = {builder.key(product, index): name for product, index, name in looped.products}
    names = [arguments.variable(f"{near[builder.key(*part)] or 'state'}_acc") for part in parts]
    spare: list[Variable | None] = [None] * (power_of_two(len(parts)) - len(parts))
    inner.append(Split((*names, *spare), acc, (frame.shape[0], frame.shape[1])))
    for part, name in zip(parts, names, strict=True):
        builder.memo[builder.key(*part)] = Ref(name, tile, torch.float32)


def _axes(frame: Frame, domain: Domain, parts: int, n_lanes: sympy.Expr, summed: sympy.Expr) -> tuple[Axis, Axis, Axis]:
    """The rows of the weight that the program holds, all parts of its units, and what is summed beside them and beside the state."""
    program, builder, units = frame.program, frame.builder, frame.units
    arguments = program.arguments
    assert units is not None
    n_units = total(domain, units.atoms)
    size = frame.shape[0]
    whole = program.blocks[size]
    assert isinstance(whole, OfAll)
    row = domain.atom("n", n_lanes, reduced=False)
    lanes = Axis(fixed("lanes"), [row], "tile")
    if parts == 1:
        builder.lines += set_all((lanes.variable, blocked(ProgramId(0), size, lanes, (0, 2))))
        if units.mask is not None:
            builder.lines += set_all(mask_of(lanes, "lane_mask", arguments.size(n_units)))
    else:
        count = program.block("LANES", OfAll(n_units, whole.size, power_of_two(parts)))
        every, unit = fixed("every"), fixed("unit")
        builder.lines += set_all(
            (every, Arange(count, lanes, (0, 2))),
            (unit, plus(apply("mul", ProgramId(0), Ref(size)), apply("mod_int", _over(every, lanes), Ref(size)))),
            (
                lanes.variable,
                plus(
                    apply("mul", apply("floordiv_int", _over(every, lanes), Ref(size)), arguments.size(n_units)),
                    _over(unit, lanes),
                ),
            ),
        )
        inside: list[Expr] = []
        if units.mask is not None:
            inside.append(apply("lt", _over(unit, lanes), arguments.size(n_units), dtype=torch.bool))
        if parts != power_of_two(parts):
            inside.append(apply("lt", _over(lanes.variable, lanes), arguments.size(n_lanes), dtype=torch.bool))
        if inside:
            mask = fixed("lane_mask")
            both = inside[0] if len(inside) == 1 else apply("and", *inside, dtype=torch.bool)
            builder.lines.append(Set(mask, both))
            lanes.mask = Ref(mask, frozenset({lanes}), torch.bool)
    depth = max(LEAST, power_of_two(int(n_units)))
    ks, constant = fixed("ks"), program.block("DEPTH", depth)
    beside_weight, beside_state = (
        Axis(ks, [summed] if isinstance(summed, sympy.Symbol) else [], "tile", lane=lane) for lane in ((1, 2), (0, 2))
    )
    builder.lines += set_all((ks, Arange(constant, beside_weight)))
    if depth != n_units:
        for along in (beside_weight, beside_state):
            along.mask = apply("lt", AxisIndex(along), arguments.size(n_units), dtype=torch.bool)
    return lanes, beside_weight, beside_state


def _over(variable: Variable, axis: Axis) -> Ref:
    return Ref(variable, frozenset({axis}))


def _halves(arguments: Arguments, value: Expr, name: str, statements: list[Statement]) -> tuple[Ref, Ref]:
    """The low and the high bfloat16 part of float32: their sum has 16 bits of it."""
    high = Ref(arguments.variable(f"{name}_high"), value.axes, torch.bfloat16)
    low = Ref(arguments.variable(f"{name}_low"), value.axes, torch.bfloat16)
    rest = apply("sub", value, Apply("to_float32", (high,), torch.float32), dtype=torch.float32)
    statements.append(Set(high.variable, Apply("to_bfloat16", (value,), torch.bfloat16)))
    statements.append(Set(low.variable, Apply("to_bfloat16", (rest,), torch.bfloat16)))
    return low, high
