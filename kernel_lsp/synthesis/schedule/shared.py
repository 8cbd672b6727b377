"""Long rows in the registers of several programs, which exchange what each reduction comes to: a row is read once.

A program stores what its own elements come to, counts itself at its row, waits until all programs of the row are counted, and folds
what they stored. It takes its row and its place in it in the order in which programs begin, as chained scans do (Merrill and
Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016): those that it waits for have begun before it, or begin
when a program of an earlier row ends. So as many as a row has must fit on the GPU at once, and no more.
"""

from __future__ import annotations

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv

from ..graph.monoids import MONOIDS, kind_of
from ..graph.names import variable_name
from ..graph.value import Op, Reduce, Value
from ..kernel.arguments import Arguments
from ..kernel.build import Builder
from ..kernel.ir import Arange, Axis, AxisIndex, Expr, FoldAxis, Load, Number, Ref, Variable, apply, plus
from ..kernel.statements import Arrive, Await, Statement, Store, TakeTurn
from ..kernel.steps import Hints, Kernel, hint
from .elementwise import mask_of
from .extents import total
from .program import OfAll, Program, fixed, set_all
from .reduction import fold_of, in_one_tile, keeps_nan
from .schedules import Shared
from .tilings import Tiling

#: What a row's programs can exchange.
_KINDS = ("sum", "max", "min", "amax", "amin")


def sharable(kernel: Kernel) -> bool:
    """Whether several programs can take a row: each of its reductions is one float32 number, and something is stored along the row."""
    domain = kernel.domain
    folds = [v.op for v in kernel.folds]
    return (
        bool(domain.kept)
        and not kernel.in_chunks
        and all(isinstance(op, Reduce) and op.kind in _KINDS and not op.part for op in folds)
        and all(v.dtype == torch.float32 for v in kernel.folds)
        and any(set(domain.reduced) & domain.resolve(sum(index)).free_symbols for _, index in kernel.stores if index)
    )


def shared(
    kernel: Kernel, name: str, arguments: Arguments, hints: Hints, stored: set[Value], schedule: Shared
) -> Program:
    """A reduction kernel whose rows several programs take each."""
    domain = kernel.domain
    program = Program(name, arguments, num_warps=schedule.warps, in_turn=True)
    for v in kernel.outputs:
        arguments.outputs[v] = arguments.variable(f"{variable_name(v)}_ptr" if len(kernel.outputs) > 1 else "out_ptr")
    n_rows, n_cols = total(domain, domain.kept), total(domain, domain.reduced)
    arguments.name_size(n_rows, "n_rows")
    arguments.name_size(n_cols, "n_cols")
    part_size = OfAll(n_cols, schedule.part)
    size = program.block("PART", part_size)
    parts = program.block("PARTS", schedule.most)
    program.grid = [[part_size, n_rows]]
    program.limits.append((n_cols, schedule.part * schedule.most))
    rounds = sum(isinstance(v.op, Reduce) for v in kernel.folds)
    # A counter for each row, and behind them that of the programs that have begun.
    arrived = _memory(program, (n_rows + 1,), torch.int32, "arrived")
    most = FloorDiv(n_cols + schedule.part - 1, sympy.Integer(schedule.part))
    partial = _memory(program, (sympy.Integer(rounds), n_rows, most), torch.float32, "row_parts")
    turn, part, count = fixed("turn"), fixed("part"), fixed("n_parts")
    row = Axis(fixed("row"), list(domain.kept), "grid")
    cols = Axis(fixed("cols"), list(domain.reduced), "tile")
    start = apply("mul", Ref(part), Ref(size))
    statements: list[Statement] = [
        *set_all((count, apply("cdiv", arguments.size(n_cols), Ref(size)))),
        TakeTurn(turn, arrived, arguments.size(n_rows)),
        *set_all(
            (row.variable, apply("floordiv_int", Ref(turn), Ref(count))),
            (part, apply("mod_int", Ref(turn), Ref(count))),
            (cols.variable, plus(start, Arange(size, cols))),
            mask_of(cols, "mask", arguments.size(n_cols)),
        ),
    ]
    places = Axis(fixed("every_part"), [], "tile")
    statements += set_all((places.variable, Arange(parts, places)))
    places.mask = apply("lt", AxisIndex(places), Ref(count), dtype=torch.bool)
    tiling = Tiling([row, cols], cols, 0, 1, (size,), size, Ref(part), Ref(part), statements, [])
    builder = Builder(domain, tiling.axes, arguments, stored, kernel.placed)
    builder.reduced_axis = cols
    done: list[Value] = []

    def exchanged(v: Value, own: Expr) -> Expr:
        """What the programs of a row come to together: own parts are stored, and those of all are folded."""
        op, number = fold_of(v), len(done)
        done.append(v)
        first = apply("mul", _at_row(arguments, number, n_rows, row), Ref(count))
        held = builder.assign(f"{variable_name(v)}_part", own, torch.float32)
        builder.lines += [
            Store(partial, plus(first, Ref(part)), held, ()),
            Arrive(arrived, AxisIndex(row)),
            Await(arrived, AxisIndex(row), _times(number + 1, Ref(count))),
        ]
        neutral = MONOIDS[kind_of(op.kind, floating=True)].neutral
        masks = (places.mask,) if places.mask is not None else ()
        found = Load(partial, plus(first, AxisIndex(places)), masks, neutral, torch.float32, ".cg")
        term = builder.assign(f"{variable_name(v)}_parts", found, torch.float32)
        return FoldAxis(op.kind, term, places, 0, False, keeps_nan(v), torch.float32)

    program.body = [*statements, *in_one_tile(kernel, builder, tiling, exchanged)]
    length = hint(n_cols, hints)
    program.tiling = f"One program takes {schedule.part} elements of a row of {length} columns, keeps them in registers, and exchanges with the row's other programs what each reduction comes to."
    return program


def _memory(program: Program, shape: tuple[sympy.Expr, ...], dtype: torch.dtype, name: str) -> Variable:
    """Memory of zeros that the programs share."""
    value = Value(Op(), tuple(map(sympy.expand, shape)), dtype, name)
    program.zeroed.append(value)
    pointer = program.arguments.outputs[value] = program.arguments.variable(f"{name}_ptr")
    return pointer


def _at_row(arguments: Arguments, number: int, n_rows: sympy.Expr, row: Axis) -> Expr:
    if number == 0:
        return AxisIndex(row)
    return plus(_times(number, arguments.size(n_rows)), AxisIndex(row))


def _times(number: int, expr: Expr) -> Expr:
    return expr if number == 1 else apply("mul", Number(number), expr)
