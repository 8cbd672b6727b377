"""How a reduction is tiled, by where the contiguous elements lie and how long the reduced extent is.

- rows: the reduced elements are contiguous. One program holds one row (or several short ones) in registers.
- long rows: as rows, but the row does not fit in registers; each dependent reduction takes a pass over the row.
- unrolled: few elements a result, among those of others. A program goes through them for a block of results.
- columns: a kept dimension is contiguous. A program holds a tile of columns, whole or walking down the reduced extent.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import sympy
from torch.utils._sympy.functions import FloorDiv

from ..graph.sizes import quotient
from ..graph.value import Partial
from ..kernel.execution_plan import Hints, Kernel, hint
from ..kernel.ir import Arange, Axis, Expr, Number, ProgramId, Ref, Variable, apply, plus
from ..kernel.statements import Statement
from ..passes.splitting import CHUNK
from .elementwise import blocked, mask_of
from .extents import LONGEST_ROW, inner_atoms, power_of_two, total
from .program import Blocks, PowerOfTwo, Program, fixed, set_all
from .schedules import Columns, Passes, Rows, Unrolled

#: The variable of a loop along the reduced extent, and a program's chunk of it.
START, CHUNK_PLACE = fixed("start"), fixed("chunk")

#: Which of a lane's results it is.
ROW = sympy.Symbol("row", integer=True, nonnegative=True)


@dataclass
class Tiling:
    """How a reduction runs. ``place``: the dimension of the tile (of ``rank``) that is reduced; ``shape``: the tile's constants.

    ``statements`` set the index variables up, ``loop`` those of each round; the loop goes from ``begin`` to ``end`` by ``step``,
    or is written out where there is none. ``rows``: the axis of a loop around it, which is written out, over the results of a lane; with its end.
    """

    axes: list[Axis]
    reduced: Axis
    place: int
    rank: int
    shape: tuple[Variable, ...]
    step: Variable | None
    begin: Expr
    end: Expr
    statements: list[Statement]
    loop: list[Statement]
    rows: tuple[Axis, Expr] | None = None

    @property
    def vectors(self) -> frozenset[Axis]:
        """The axes that a tile's shape has."""
        return frozenset(axis for axis in self.axes if axis.vector)


def row_tiling(kernel: Kernel, program: Program, hints: Hints, schedule: Rows | Passes) -> Tiling:
    """Reduced elements are neighbours in memory: programs take rows, whole in registers (``Rows``) or block by block (``Passes``).

    It sets grid, warps, constants and limits of ``program``.
    """
    domain, arguments = kernel.domain, program.arguments
    n_rows, n_cols = total(domain, domain.kept), total(domain, domain.reduced)
    arguments.name_size(n_cols, "n_cols")
    length, looped = hint(n_cols, hints), isinstance(schedule, Passes)
    per_program = schedule.rows if isinstance(schedule, Rows) else 1
    cols = Axis(fixed("cols"), list(domain.reduced), "loop" if looped else "tile")
    end = arguments.size(n_cols)
    statements: list[Statement] = []
    axes: list[Axis] = []
    shape: list[Variable] = []
    rank, place = (2, 1) if per_program > 1 else (1, 0)
    if per_program > 1:
        arguments.name_size(n_rows, "n_rows")
        shape.append(program.block("ROWS", per_program))
        rows = Axis(fixed("rows"), list(domain.kept), "tile")
        statements += set_all(
            (rows.variable, blocked(ProgramId(0), shape[0], rows, (0, 2))),
            mask_of(rows, "row_mask", arguments.size(n_rows)),
        )
        axes.append(rows)
        program.grid = [[Blocks(n_rows, per_program)]]
    elif domain.kept:
        row = Axis(fixed("row"), list(domain.kept), "grid")
        statements += set_all((row.variable, ProgramId(1 if kernel.in_chunks else 0)))
        axes.append(row)
        program.grid = [[n_rows]]
    lane = (1, 2) if rank == 2 else None
    loop: list[Statement] = []
    begin: Expr = Number(0)
    last = end
    if isinstance(schedule, Passes):
        step = program.block("BLOCK", schedule.block)
        loop = set_all((cols.variable, plus(Ref(START), Arange(step, cols, lane))), mask_of(cols, "mask", end))
        if kernel.in_chunks:
            begin, last = _chunk(kernel, program, end, statements)
    else:
        exact = n_cols.is_number and power_of_two(length) == length
        step = program.block("BLOCK", power_of_two(length) if n_cols.is_number else PowerOfTwo(n_cols))
        statements += set_all((cols.variable, Arange(step, cols, lane)))
        if not exact:
            statements += set_all(mask_of(cols, "mask", end))
        if not n_cols.is_number:  # the tile grows with the row; beyond this it would not stay in registers
            program.limits.append((n_cols, max(1024, LONGEST_ROW // per_program)))
    program.num_warps = schedule.warps
    axes.append(cols)
    shape.append(step)
    what = f"{per_program} rows" if per_program > 1 else "one row"
    it = "it" if per_program == 1 else "them"
    how = "walks along it in blocks" if looped else f"keeps {it} in registers"
    program.tiling = f"One program takes {what} of {length} columns and {how}."
    if kernel.chunked is not None:
        program.tiling = f"One program scans one chunk of {CHUNK} elements, from what comes before it."
    elif kernel.partials:
        program.tiling = (
            f"One program reduces one chunk of {chunk_length(kernel)} elements; the next kernel reduces the chunks."
        )
    return Tiling(axes, cols, place, rank, tuple(shape), step, begin, last, statements, loop)


def chunk_length(kernel: Kernel) -> int:
    """The elements of a chunk."""
    return kernel.partials[0].op.length if kernel.partials and isinstance(kernel.partials[0].op, Partial) else CHUNK


def _chunk(kernel: Kernel, program: Program, end: Expr, statements: list[Statement]) -> tuple[Expr, Expr]:
    """Where a split reduction's chunk, the program's place on grid axis 0, begins and ends."""
    length = chunk_length(kernel)
    size = program.block("CHUNK", length)
    statements += set_all((CHUNK_PLACE, ProgramId(0)))
    chunks = Blocks(total(kernel.domain, kernel.domain.reduced), length)
    program.grid = [[chunks], *(program.grid if kernel.domain.kept else [])]
    after = apply("mul", apply("add", Ref(CHUNK_PLACE), Number(1)), Ref(size))
    return apply("mul", Ref(CHUNK_PLACE), Ref(size)), apply("minimum_int", after, end)


def column_tiling(kernel: Kernel, program: Program, hints: Hints, schedule: Columns) -> Tiling:
    """Results are neighbours in memory: a program takes some columns, and keeps what is reduced whole or walks down it.

    It sets grid, warps, constants and limits of ``program``.
    """
    domain, arguments = kernel.domain, program.arguments
    inner = inner_atoms(kernel, hints)
    outer = [a for a in domain.kept if a not in inner]
    n_rows, n_cols = total(domain, domain.reduced), total(domain, inner)
    arguments.name_size(n_rows, "n_rows")
    arguments.name_size(n_cols, "n_cols")
    length, block_rows, block_cols, looped = hint(n_rows, hints), schedule.rows, schedule.cols, not schedule.whole
    varies = schedule.whole and not n_rows.is_number
    height = program.block("BLOCK_ROWS", PowerOfTwo(n_rows) if varies else block_rows)
    breadth = program.block("BLOCK_COLS", block_cols)
    program.num_warps = schedule.warps
    rows = Axis(fixed("rows"), list(domain.reduced), "loop" if looped else "tile")
    cols = Axis(fixed("cols"), inner, "tile")
    col_end, row_end = arguments.size(n_cols), arguments.size(n_rows)
    block, place = fixed("block"), ProgramId(1 if kernel.in_chunks else 0)
    statements: list[Statement] = []
    axes: list[Axis] = []
    program.grid = [[Blocks(n_cols, block_cols)]]
    if outer:
        axes.append(Axis(fixed("outer"), outer, "grid"))
        program.grid[0].insert(0, total(domain, outer))
        blocks = apply("cdiv", col_end, Ref(breadth))
        statements += set_all(
            (axes[0].variable, apply("floordiv_int", place, blocks)), (block, apply("mod_int", place, blocks))
        )
    else:
        statements += set_all((block, place))
    statements += set_all((cols.variable, blocked(Ref(block), breadth, cols, (1, 2))))
    if not (n_cols.is_Integer and n_cols % block_cols == 0):
        statements += set_all(mask_of(cols, "col_mask", col_end))
    loop: list[Statement] = []
    begin: Expr = Number(0)
    last = row_end
    if looped:
        inside = plus(Ref(START), Arange(height, rows, (0, 2)))
        loop = set_all((rows.variable, inside), mask_of(rows, "row_mask", row_end))
        if kernel.in_chunks:
            begin, last = _chunk(kernel, program, row_end, statements)
    else:
        statements += set_all((rows.variable, Arange(height, rows, (0, 2))))
        if n_rows != block_rows:
            statements += set_all(mask_of(rows, "row_mask", row_end))
    if varies:  # the tile grows with the rows; beyond this it would not stay in registers
        program.limits.append((n_rows, schedule.most_rows))
    axes += [rows, cols]
    number = f"more than {schedule.above}" if schedule.above else length
    how = f"walks down {number} rows, {block_rows} at a time" if looped else f"keeps their {length} rows in registers"
    program.tiling = f"One program takes {block_cols} neighbouring columns and {how}."
    return Tiling(axes, rows, 0, 2, (height, breadth), height, begin, last, statements, loop)


def unrolled_tiling(kernel: Kernel, program: Program, schedule: Unrolled) -> Tiling:
    """A program takes consecutive results; the elements of each are loaded one after the other, in a loop that is written out.

    It sets grid, warps and constants of ``program``.
    """
    domain, arguments = kernel.domain, program.arguments
    split = len(domain.kept) - schedule.inner if schedule.inner else 0
    outer, inner = domain.kept[:split], domain.kept[split:]
    n, length = total(domain, inner), total(domain, domain.reduced)
    arguments.name_size(n, "channel_size" if outer else "n_elements")
    size = program.block("BLOCK", schedule.block)
    program.grid = [[Blocks(n, schedule.block)]]
    program.num_warps = schedule.warps
    offsets = Axis(fixed("offsets"), list(inner), "tile")
    within = Axis(arguments.variable("k"), list(domain.reduced), "unrolled")
    statements: list[Statement] = []
    axes, rows = [offsets, within], None
    if schedule.rows > 1:
        rows = Axis(arguments.variable("below"), [ROW], "unrolled"), Ref(program.block("ROWS", schedule.rows))
        axes.insert(1, rows[0])
    block: Expr = ProgramId(0)
    if outer:
        axes.insert(0, Axis(fixed("outer"), list(outer), "grid"))
        program.grid[0].insert(0, total(domain, outer))
        blocks = apply("cdiv", arguments.size(n), Ref(size))
        statements += set_all((axes[0].variable, apply("floordiv_int", ProgramId(0), blocks)))
        block = apply("mod_int", ProgramId(0), blocks)
    statements += set_all(
        (offsets.variable, blocked(block, size, offsets)), mask_of(offsets, "mask", arguments.size(n))
    )
    of = " of one channel" if outer and (rows is None or len(inner) > 1) else ""
    if rows is None:
        what = f"{schedule.block} consecutive results{of}, and the {length} elements of each in turn."
    else:
        what = f"{schedule.block} columns{of} of {schedule.rows} results each, one below the other, and the {length} elements of each in turn. Elements that these share are loaded once: the loops are written out, and the compiler keeps one of equal loads."
    program.tiling = f"One program takes {what}"
    return Tiling(axes, within, 0, 1, (size,), None, Number(0), Number(int(length)), statements, [], rows)


def row_place(kernel: Kernel) -> tuple[sympy.Expr, sympy.Expr]:
    """Which row of all a lane's result is, in the atoms of ``with_rows``, and how many rows there are."""
    domain = kernel.domain
    return next((place, domain.size[atom]) for atom, place in domain.parts.items() if ROW in place.free_symbols)


def with_rows(kernel: Kernel, rows: int) -> Kernel:
    """``kernel`` with ``rows`` results along the last kept dimension but one as an atom of their own, ``ROW``; the last ones may be beyond its end."""
    domain = kernel.domain.copy()
    atom, groups = domain.kept[-2], sympy.Symbol("groups", integer=True, nonnegative=True)
    size = domain.size[atom]
    domain.kept[-2] = groups
    domain.size[groups] = quotient(size, sympy.Integer(rows)) or FloorDiv(size + rows - 1, rows)
    domain.size[ROW] = sympy.Integer(rows)
    domain.parts[atom] = groups * rows + ROW
    domain.settled = True
    return dataclasses.replace(kernel, domain=domain)
