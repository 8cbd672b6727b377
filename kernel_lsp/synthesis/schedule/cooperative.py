"""Long rows that several programs take each, in registers: a row is read once.

A program takes a block of a row, stores what its elements come to, and counts itself at the row. Then it goes back to the block that it took
before, which it has kept: once all blocks of that row are counted, it folds what they came to and stores its part of the results. So what
a program waits for was stored while it loaded the next block, and memory is never idle. Half of the programs that surely run at once are enough
for a row: other kernels may have the rest of the GPU.

Programs take blocks in turn, in the order of memory, as chained scans do (Merrill and Garland, "Single-pass parallel prefix scan with
decoupled look-back", 2016), and each stores what a block comes to before it waits. Of n programs that run at once, 2 n blocks in a row are stored
when all of them wait, so that none waits for ever where a row has no more than 2 n blocks. Programs that run later do not matter.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv

from ..graph.monoids import Monoid, Steps, mentions
from ..graph.names import variable_name
from ..graph.sizes import Index, offset
from ..graph.value import Gather, Op, Reduce, Shape, Value, numel
from ..kernel.arguments import Arguments
from ..kernel.build import Builder
from ..kernel.execution_plan import Hints, Kernel, fold_operand_index, hint
from ..kernel.ir import Arange, Axis, AxisIndex, Expr, Full, Load, Number, Ref, Variable, apply, plus
from ..kernel.reads import computed
from ..kernel.statements import Arrive, Await, Set, Statement, Store, TakeTurn, When, While
from .elementwise import blocked, mask_of
from .extents import power_of_two, total
from .fold_state import Carrying, accumulated, finish
from .naming import name_outputs
from .program import OfAll, PowerOfTwo, Program, fixed, set_all
from .reduction import element_of
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
    if len(levels) != 1 or not all(_of_tile(one.monoid) for one in levels[0]):
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
    name_outputs(kernel, arguments)
    frame = _frame(kernel, program, schedule)
    running = [one for level in passes(kernel) for one in level]
    now = _Part(frame, "")
    found = _Loads(domain, now.axes, arguments, stored, kernel.placed)
    found.reduced_axis = now.cols
    found.conditions = [frame.there]
    found.record = {}
    for one in running:
        found.count(one.element, fold_operand_index(kernel, one.fold, kernel.placed[one.fold]))
    values = [value for one in running for value in _of_block(kernel, found, one, now)]
    large = kept_operands(kernel, hints)
    kept = {key: ref for key, ref in found.record.items() if key[0] in large and now.cols in ref.axes}
    parts = _memory(frame, len(values))
    stores: list[Statement] = [Store(parts, _nth(number, Ref(BLOCK)), value, ()) for number, value in enumerate(values)]
    before = _Part(frame, "_before")
    held = {key: arguments.variable(f"{ref.variable.wanted}_before") for key, ref in kept.items()}
    later = _Loads(domain, [*before.axes, frame.places], arguments, stored, kernel.placed)
    later.reduced_axis = before.cols
    later.held = {key: Ref(held[key], frozenset({before.cols}), ref.dtype) for key, ref in kept.items()}
    results = _of_row(kernel, later, frame, before, running, parts)
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
    length, keeps = hint(frame.n_cols, hints), "keeps each in registers" if kept else "comes back to each"
    when = "until" if kept else "when"
    program.tiling = (
        f"A program takes blocks of {schedule.block} elements of rows of {length} in turn, and {keeps} {when} all "
        "blocks of its row have been reduced."
    )
    return program


@dataclass
class _Frame:
    """What the whole kernel has: its sizes, its memory, and the variables that every turn knows."""

    kernel: Kernel
    program: Program
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
    frame = _Frame(kernel, program, n_rows, n_cols, size, whole, pointer, places, parts_of_row)
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
        self.frame = frame
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
        return [*places, *self.masked]

    def tiling(self) -> Tiling:
        """How a block is reduced."""
        return Tiling(self.axes, self.cols, 0, 1, (self.frame.size,), self.frame.size, Number(0), Number(0), [], [])


#: Where an element is: the tensor, and its offset there.
_Place = tuple[Value, sympy.Expr]


class _Loads(Builder):
    """Notes what it loads in ``record``; what is in ``held`` it has already, in registers."""

    record: dict[_Place, Ref] | None = None
    held: dict[_Place, Ref] | None = None

    def load(
        self, value: Value, index: Index, name: str = "", shape: Shape | None = None, other: float | None = None
    ) -> Expr:
        """As Builder.load."""
        if other is not None or len(self.conditions) > 1:
            return super().load(value, index, name, shape, other)
        key = value, self.domain.simplify(offset(index, value.shape if shape is None else shape))
        if self.held is not None and key in self.held and not self.conditions:
            return self.held[key]
        result = super().load(value, index, name, shape, other)
        if self.record is not None and isinstance(result, Ref):
            self.record[key] = result
        return result


def _of_tile(monoid: Monoid) -> Steps:
    """What is carried of the elements of a tile; nothing where no formula is known."""
    if monoid.tile or len(monoid.carried) != 1 or len(monoid.finish) != 1:
        return monoid.tile
    term = monoid.finish[0][1]
    return ((monoid.carried[0].key, (term[0], "element")),) if isinstance(term, tuple) and len(term) == 2 else ()


def _of_block(kernel: Kernel, builder: Builder, running: Running, part: _Part) -> list[Expr]:
    """What the elements of a block come to: all that the monoid carries."""
    tiling, frame = part.tiling(), part.frame
    element = element_of(kernel, builder, running, tiling)
    if not isinstance(element, Ref):
        element = builder.assign(variable_name(running.element), element, running.element.dtype)
    length: Expr = Ref(frame.size)
    steps = _of_tile(running.monoid)
    if not frame.whole and any(mentions(term, {"length"}) for _, term in steps):
        left = apply("sub", frame.program.arguments.size(frame.n_cols), apply("mul", Ref(part.part), Ref(frame.size)))
        length = builder.assign("length", apply("minimum_int", left, Ref(frame.size)), torch.int32)
    known: dict[str, Expr] = {"element": element, "length": length}
    state = Carrying(running, tiling, accumulated(running.fold), known)
    keys = [c.key for c in running.monoid.of_lanes]
    for name, term in steps:
        value = state.term(term)
        if not isinstance(value, Ref):
            value = builder.assign(_of_part(running, name) if name in keys else name, value, state.dtype)
        known[name] = value
    return [known[key] for key in keys]


def _of_part(running: Running, key: str) -> str:
    """What a carried number of a block is called."""
    name = variable_name(running.fold) if len(running.monoid.carried) == 1 else key
    return f"{name}_part"


def _memory(frame: _Frame, count: int) -> Variable:
    """Where every block's part of each of ``count`` numbers is."""
    shape = (sympy.Integer(count), frame.n_rows, frame.parts_of_row)
    value = Value(Op(), tuple(map(sympy.expand, shape)), torch.float32, "parts")
    frame.program.exchanged.append(value)
    pointer = frame.program.arguments.outputs[value] = frame.program.arguments.variable("parts_ptr")
    return pointer


def _nth(number: int, place: Expr) -> Expr:
    """Where the part of a number is that is at ``place`` among those of its kind."""
    if number == 0:
        return place
    count = Ref(N_BLOCKS)
    return plus(count if number == 1 else apply("mul", Number(number), count), place)


def _of_row(
    kernel: Kernel,
    builder: Builder,
    frame: _Frame,
    part: _Part,
    running: list[Running],
    parts: Variable,
) -> list[Statement]:
    """Fold what the blocks of a row came to, and store the results of one of them."""
    tiling = Tiling([frame.places], frame.places, 0, 1, (), None, Number(0), Number(0), [], [])
    states: list[Carrying] = []
    numbers = itertools.count()
    assert frame.places.mask is not None
    for one in running:
        known: dict[str, Expr] = {}
        for carried in one.monoid.of_lanes:
            first = _nth(next(numbers), apply("mul", AxisIndex(part.row), Ref(N_PARTS)))
            place, start = plus(first, AxisIndex(frame.places)), float(carried.start)
            load = Load(parts, place, (frame.places.mask,), start, torch.float32, ".cg")
            known[carried.key] = builder.assign(f"{_of_part(one, carried.key)}s", load, torch.float32)
        states.append(Carrying(one, tiling, accumulated(one.fold), known))
    finish(states, kernel, builder)
    builder.pad_hint = 0.0
    for v, index in kernel.stores:
        builder.count(v, index)
    for v, index in kernel.stores:
        builder.store(v, index, kernel.destination(v, index))
    return builder.lines
