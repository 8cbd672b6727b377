"""Long rows that several programs take each, in registers: a row is read once.

A program takes a block of a row, stores what its elements come to, and counts itself at the row. Then it goes back to the block that it took
before, which it has kept: once all blocks of that row are counted, it folds what they came to and stores its part of the results. So what
a program waits for was stored while it loaded the next block, and memory is never idle. Half of the programs that surely run at once are enough
for a row: other kernels may have the rest of the GPU. How many run at once on a multiprocessor follows from the registers that a thread may have.

Programs take blocks in turn, in the order of memory, as chained scans do (Merrill and Garland, "Single-pass parallel prefix scan with
decoupled look-back", 2016), and each stores what a block comes to before it waits. Of n programs that run at once, 2 n blocks in a row are stored
when all of them wait, so that none waits for ever where a row has no more than 2 n blocks. Programs that run later do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv

from ..graph.monoids import mentions
from ..graph.value import Gather, Op, Reduce, Value, numel
from ..kernel.arguments import Arguments
from ..kernel.build import Builder
from ..kernel.execution_plan import Hints, Kernel, fold_operand_index, hint
from ..kernel.ir import Arange, Axis, AxisIndex, Expr, Full, Number, Ref, Variable, apply, plus
from ..kernel.reads import computed
from ..kernel.statements import Arrive, Await, Set, Statement, Store, TakeTurn, When, While
from .block_loads import BlockLoads, alike_along
from .block_parts import Parts, Stored, nth, of_tile
from .elementwise import blocked, mask_of
from .extents import power_of_two, total
from .fold_state import finish
from .naming import name_outputs
from .program import Distinct, OfAll, PowerOfTwo, Program, fixed, set_all
from .row_passes import Running, passes
from .schedules import Cooperative
from .tilings import Tiling

#: Blocks of a row and of all rows; the number of the block that a program takes, and of the one that it took before.
N_PARTS, N_BLOCKS, BLOCK, BEFORE = fixed("n_parts"), fixed("n_blocks"), fixed("block"), fixed("block_before")


def is_cooperative(kernel: Kernel) -> bool:
    """Whether several programs can take a row.

    All that its reductions need of a block is known after one look at it, and what is stored varies along the row: of one number a row, which may be an
    average that moves, each of them would store another.
    """
    domain = kernel.domain
    if not domain.kept or kernel.in_chunks or kernel.partials or kernel.peaks or kernel.exact:
        return False
    if any(not isinstance(v.op, Reduce) or v.dtype != torch.float32 for v in kernel.folds):
        return False
    loaded = set(kernel.leaves) - set(kernel.folds)
    if any(
        isinstance(v.op, Gather) for v in computed(kernel, loaded)
    ):  # it would have to be found again where the element is
        return False
    levels = passes(kernel)
    if len(levels) != 1 or not all(of_tile(one.monoid) for one in levels[0]):
        return False
    reduced = set(domain.reduced)
    return all(reduced & set().union(*(domain.resolve(e).free_symbols for e in index)) for _, index in kernel.stores)


def kept_operands(kernel: Kernel, hints: Hints) -> list[Value]:
    """What programs keep of a block until they come back to it: the numbers that are as many as the rows have, or nearly so."""
    domain = kernel.domain
    most = hint(total(domain, domain.kept), hints) * hint(total(domain, domain.reduced), hints)
    read = dict.fromkeys(v for v, _, _ in kernel.accesses if v.dtype.is_floating_point)
    return [v for v in read if 2 * hint(numel(v.shape), hints) > most]


def cooperative(
    kernel: Kernel, name: str, arguments: Arguments, hints: Hints, stored: set[Value], schedule: Cooperative
) -> Program:
    """A reduction kernel whose rows several programs take each."""
    domain = kernel.domain
    program = Program(name, arguments, num_warps=schedule.warps, in_turn=True, programs=schedule.programs)
    program.at_once, program.registers = schedule.at_once, schedule.registers
    name_outputs(kernel, arguments)
    frame = _frame(kernel, program, schedule)
    running = [one for level in passes(kernel) for one in level]
    now = _Part(frame, "")
    found = BlockLoads(domain, now.axes, arguments, stored, kernel.placed)
    found.reduced_axis = now.cols
    found.conditions = [frame.there]
    found.record = {}
    for one in running:
        found.count(one.element, fold_operand_index(kernel, one.fold, kernel.placed[one.fold]))
    parts, length = Parts(), frame.length(found, running, Ref(now.part))
    for one in running:
        parts.add(kernel, found, one, now.tiling(), length)
    large = kept_operands(kernel, hints)
    kept = {key: ref for key, ref in found.record.items() if key[0] in large and now.cols in ref.axes}
    memory = _memory(frame, len(parts.values))
    stores: list[Statement] = [
        Store(memory, nth(number, Ref(BLOCK), Ref(N_BLOCKS)), value, ()) for number, value in enumerate(parts.values)
    ]
    before = _Part(frame, "_before")
    alike = alike_along(kernel)
    distinct = before.distinct(alike) if hint(total(domain, alike), hints) >= schedule.block else None
    held = {key: arguments.variable(f"{ref.variable.wanted}_before") for key, ref in kept.items()}
    later = BlockLoads(domain, [*before.axes, frame.places], arguments, stored, kernel.placed)
    later.reduced_axis = before.cols
    later.held = {key: Ref(held[key], frozenset({before.cols}), ref.dtype) for key, ref in kept.items()}
    if distinct is not None:
        later.distinct, later.alike = distinct, frozenset(alike)
    results = _of_row(kernel, later, frame, before, running, parts, memory)
    program.body = [
        *frame.statements,
        *(Set(v, Full((frame.size,), 0.0, torch.float32, frozenset({now.cols}))) for v in held.values()),
        Set(BEFORE, Number(-1)),
        While(
            apply("lt", Ref(BEFORE), Ref(N_BLOCKS), dtype=torch.bool),
            (
                TakeTurn(BLOCK, frame.arrived, arguments.size(frame.n_rows)),
                *now.statements(Ref(BLOCK)),
                *found.lines,
                When(frame.there, (*stores, Arrive(frame.arrived, AxisIndex(now.row)))),
                When(
                    apply("ge", Ref(BEFORE), Number(0), dtype=torch.bool),
                    (
                        *before.statements(Ref(BEFORE)),
                        Await(frame.arrived, AxisIndex(before.row), Ref(N_PARTS)),
                        *results,
                    ),
                ),
                *(Set(held[key], ref) for key, ref in kept.items()),
                Set(BEFORE, Ref(BLOCK)),
            ),
        ),
    ]
    columns, keeps = hint(frame.n_cols, hints), "keeps each in registers" if kept else "comes back to each"
    when = "until" if kept else "when"
    program.tiling = (
        f"A program takes blocks of {schedule.block} elements of rows of {columns} in turn, and {keeps} {when} all "
        "blocks of its row have been reduced."
    )
    return program


@dataclass
class _Frame:
    """What the whole kernel has: its sizes, its memory, and the variables that every turn knows."""

    kernel: Kernel
    program: Program
    schedule: Cooperative
    n_rows: sympy.Expr
    n_cols: sympy.Expr
    size: Variable
    whole: bool  # a row is a whole number of blocks, and one block under the interpreter
    arrived: Variable
    places: Axis
    parts_of_row: sympy.Expr
    statements: list[Statement] = field(default_factory=list)

    @property
    def there(self) -> Expr:
        """Whether a block was left to take."""
        return apply("lt", Ref(BLOCK), Ref(N_BLOCKS), dtype=torch.bool)

    def length(self, builder: Builder, running: list[Running], part: Expr) -> Expr:
        """The elements of block number ``part`` of a row, or of each; all blocks are full where nothing asks for it."""
        terms = [term for one in running for _, term in of_tile(one.monoid)]
        if self.whole or not any(mentions(term, {"length"}) for term in terms):
            return Ref(self.size)
        left = apply("sub", self.program.arguments.size(self.n_cols), apply("mul", part, Ref(self.size)))
        name = "lengths" if part.axes else "length"
        return builder.assign(name, apply("minimum_int", left, Ref(self.size)), torch.int32)


def _frame(kernel: Kernel, program: Program, schedule: Cooperative) -> _Frame:
    domain, arguments = kernel.domain, program.arguments
    n_rows, n_cols = total(domain, domain.kept), total(domain, domain.reduced)
    arguments.name_size(n_rows, "n_rows")
    arguments.name_size(n_cols, "n_cols")
    blocks = OfAll(n_cols, schedule.block)
    size = program.block("BLOCK", blocks)
    parts_of_row = FloorDiv(n_cols + schedule.block - 1, sympy.Integer(schedule.block))
    most = power_of_two(int(parts_of_row)) if parts_of_row.is_number else PowerOfTwo(parts_of_row)
    places_size = program.block("PARTS", most)
    program.grid = [[blocks, n_rows]]
    program.limits.append((n_cols, schedule.block * schedule.most))
    # A counter for each row, and behind them that of the turns.
    arrived = Value(Op(), (sympy.expand(n_rows + 1),), torch.int32, "arrived")
    program.zeroed.append(arrived)
    pointer = arguments.outputs[arrived] = arguments.variable("arrived_ptr")
    places = Axis(fixed("every_part"), [], "tile")
    whole = n_cols.is_number and int(n_cols) == power_of_two(int(n_cols))
    frame = _Frame(kernel, program, schedule, n_rows, n_cols, size, whole, pointer, places, parts_of_row)
    frame.statements += set_all(
        (N_PARTS, apply("cdiv", arguments.size(n_cols), Ref(size))),
        (N_BLOCKS, apply("mul", arguments.size(n_rows), Ref(N_PARTS))),
        (places.variable, Arange(places_size, places)),
    )
    places.mask = apply("lt", AxisIndex(places), Ref(N_PARTS), dtype=torch.bool)
    return frame


class _Part:
    """The row and the columns of one of the two blocks that a turn has to do with."""

    def __init__(self, frame: _Frame, suffix: str) -> None:
        domain = frame.kernel.domain
        self.frame, self.suffix = frame, suffix
        self.places: list[Statement] = []
        self.row = Axis(fixed(f"row{suffix}"), list(domain.kept), "grid")
        self.cols = Axis(fixed(f"cols{suffix}"), list(domain.reduced), "tile")
        self.part = fixed(f"part{suffix}")
        end = frame.program.arguments.size(frame.n_cols)
        self.masked = [] if frame.whole else set_all(mask_of(self.cols, f"mask{suffix}", end))

    @property
    def axes(self) -> list[Axis]:
        """Both."""
        return [self.row, self.cols]

    def statements(self, block: Expr) -> list[Statement]:
        """Where block number ``block`` lies."""
        count = Ref(N_PARTS)
        places = set_all(
            (self.row.variable, apply("offset", apply("floordiv_int", block, count))),
            (self.part, apply("mod_int", block, count)),
            (self.cols.variable, blocked(Ref(self.part), self.frame.size, self.cols)),
        )
        return [*places, *self.masked, *self.places]

    def distinct(self, inner: list[sympy.Symbol]) -> Axis:
        """The places of a block at which anything differs that is the same along the atoms ``inner``: one, or all of them."""
        frame = self.frame
        blocks = OfAll(frame.n_cols, frame.schedule.block)
        size = frame.program.block("DISTINCT", Distinct(total(frame.kernel.domain, inner), blocks))
        axis = Axis(fixed(f"places{self.suffix}"), list(frame.kernel.domain.reduced), "grid")
        place = plus(apply("mul", Ref(self.part), Ref(frame.size)), Arange(size, axis))
        last = apply("sub", frame.program.arguments.size(frame.n_cols), Number(1))
        self.places = set_all((axis.variable, apply("minimum_int", place, last)))
        return axis

    def tiling(self) -> Tiling:
        """How a block is reduced."""
        return Tiling(self.axes, self.cols, 0, 1, (self.frame.size,), self.frame.size, Number(0), Number(0), [], [])


def _memory(frame: _Frame, count: int) -> Variable:
    """Where every block's part of each of ``count`` numbers is."""
    shape = (sympy.Integer(count), frame.n_rows, frame.parts_of_row)
    value = Value(Op(), tuple(map(sympy.expand, shape)), torch.float32, "parts")
    frame.program.exchanged.append(value)
    pointer = frame.program.arguments.outputs[value] = frame.program.arguments.variable("parts_ptr")
    return pointer


def _of_row(
    kernel: Kernel,
    builder: Builder,
    frame: _Frame,
    part: _Part,
    running: list[Running],
    parts: Parts,
    memory: Variable,
) -> list[Statement]:
    """Fold what the blocks of a row came to, and store the results of one of them."""
    first = apply("mul", AxisIndex(part.row), Ref(N_PARTS))
    length = frame.length(builder, running, AxisIndex(frame.places))
    told = Stored(memory, Ref(N_BLOCKS), first, frame.places, length)
    finish([told.carried(builder, *one) for one in zip(running, parts.numbers, strict=True)], kernel, builder)
    builder.pad_hint = 0.0
    for v, index in kernel.stores:
        builder.count(v, index)
    for v, index in kernel.stores:
        builder.store(v, index, kernel.destination(v, index))
    return builder.lines
