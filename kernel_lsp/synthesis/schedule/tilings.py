"""How a reduction is tiled, by where the contiguous elements lie and how long the reduced extent is.

- rows: the reduced elements are contiguous. One program holds one row (or several short ones) in registers.
- long rows: as rows, but the row does not fit in registers; each dependent reduction takes a pass over the row.
- columns: a kept dimension is contiguous. A program holds a tile of columns and walks down the reduced extent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy

from ..graph.sizes import ONE, ZERO, offset, same
from ..kernel.domain import Unalignable
from ..kernel.ir import Arange, Axis, Expr, Number, ProgramId, Ref, Statement, Variable, apply, plus
from ..kernel.steps import Hints, Kernel, hint
from ..passes.rewrite import CHUNK
from .elementwise import blocked, mask_of
from .program import Blocks, PowerOfTwo, Program, fixed, power_of_two, set_all, total

#: Longest row, in elements, that one program keeps in registers.
LONGEST_TILE = 32768

#: The variable of a loop along the reduced extent, and a program's chunk of it.
START, CHUNK_PLACE = fixed("start"), fixed("chunk")


@dataclass
class Tiling:
    """How a reduction runs. ``place``: the dimension of the tile (of ``rank``) that is reduced; ``shape``: the tile's constants.

    ``statements`` set the index variables up, ``loop`` those of each round; the loop goes from ``begin`` to ``end`` by ``step``.
    """

    axes: list[Axis]
    reduced: Axis
    place: int
    rank: int
    shape: tuple[Variable, ...]
    step: Variable
    begin: Expr
    end: Expr
    statements: list[Statement]
    loop: list[Statement]


def _main_access(kernel: Kernel, hints: Hints) -> dict[sympy.Symbol, sympy.Expr]:
    """The atoms' coefficients in the largest load that varies along the reduced atoms."""
    best: dict[sympy.Symbol, sympy.Expr] = {}
    most = -1
    for _, index, shape in kernel.accesses:
        try:
            coefficients, _ = kernel.domain.terms(offset(index, shape))
        except Unalignable:
            continue
        size = math.prod(hint(kernel.domain.size[a], hints) for a in coefficients)
        if size > most and any(a in coefficients for a in kernel.domain.reduced):
            best, most = coefficients, size
    return best


def contiguous_is_kept(kernel: Kernel, hints: Hints) -> bool:
    coefficients = _main_access(kernel, hints)
    unit = [a for a, c in coefficients.items() if c == ONE and hint(kernel.domain.size[a], hints) > 1]
    return bool(unit) and unit[0] in kernel.domain.kept


def row_tiling(kernel: Kernel, program: Program, hints: Hints, rows_wanted: int, longest: int) -> Tiling:
    domain, arguments = kernel.domain, program.arguments
    n_rows, n_cols = total(domain, domain.kept), total(domain, domain.reduced)
    arguments.name_size(n_cols, "n_cols")
    length, count = hint(n_cols, hints), hint(n_rows, hints)
    static = n_cols.is_number
    looped = length > longest or kernel.partial is not None
    cols = Axis(fixed("cols"), list(domain.reduced), "loop" if looped else "tile")
    end = arguments.size(n_cols)
    statements: list[Statement] = []
    axes: list[Axis] = []
    shape: list[Variable] = []
    per_program = 1
    if not looped and length <= 1024 and domain.kept and count >= 256:
        per_program = max(1, min(32, 2048 // power_of_two(length), power_of_two(count // 256)))
        per_program = rows_wanted or per_program
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
        statements += set_all((row.variable, ProgramId(1 if kernel.partial is not None else 0)))
        axes.append(row)
        program.grid = [[n_rows]]
    lane = (1, 2) if rank == 2 else None
    loop: list[Statement] = []
    begin: Expr = Number(0)
    last = end
    if looped:
        step = program.block("BLOCK", 4096 if kernel.partial is not None else 8192)
        program.num_warps = 8 if kernel.partial is not None else 16
        inside = plus(Ref(START), Arange(step, cols, lane))
        loop = set_all((cols.variable, inside), mask_of(cols, "mask", end))
        if kernel.partial is not None:
            begin, last = _chunk(kernel, program, end, statements)
    else:
        step = program.block("BLOCK", power_of_two(length) if static else PowerOfTwo(n_cols))
        statements += set_all((cols.variable, Arange(step, cols, lane)))
        if not (static and power_of_two(length) == length):
            statements += set_all(mask_of(cols, "mask", end))
        if not static:  # the tile grows with the row; beyond this it would not stay in registers
            program.limits.append((n_cols, max(1024, LONGEST_TILE // per_program)))
        program.num_warps = 4 if power_of_two(length) * per_program <= 4096 else 8
    axes.append(cols)
    shape.append(step)
    what = f"{per_program} rows" if per_program > 1 else "one row"
    how = (
        "walks along it in blocks"
        if looped
        else "keeps it in registers"
        if per_program == 1
        else "keeps them in registers"
    )
    program.tiling = f"One program takes {what} of {length} columns and {how}."
    if kernel.partial is not None:
        program.tiling = f"One program reduces one chunk of {CHUNK} elements; the next kernel reduces the chunks."
    return Tiling(axes, cols, place, rank, tuple(shape), step, begin, last, statements, loop)


def _chunk(kernel: Kernel, program: Program, end: Expr, statements: list[Statement]) -> tuple[Expr, Expr]:
    """Where a split reduction's chunk, the program's place on grid axis 0, begins and ends."""
    size = program.block("CHUNK", CHUNK)
    statements += set_all((CHUNK_PLACE, ProgramId(0)))
    chunks = Blocks(total(kernel.domain, kernel.domain.reduced), CHUNK)
    program.grid = [[chunks], *(program.grid if kernel.domain.kept else [])]
    after = apply("mul", apply("add", Ref(CHUNK_PLACE), Number(1)), Ref(size))
    return apply("mul", Ref(CHUNK_PLACE), Ref(size)), apply("minimum_int", after, end)


def column_tiling(kernel: Kernel, program: Program, hints: Hints) -> Tiling:
    domain, arguments = kernel.domain, program.arguments
    inner = _inner_atoms(kernel, _main_access(kernel, hints))
    outer = [a for a in domain.kept if a not in inner]
    n_rows, n_cols = total(domain, domain.reduced), total(domain, inner)
    arguments.name_size(n_rows, "n_rows")
    arguments.name_size(n_cols, "n_cols")
    length, width = hint(n_rows, hints), hint(n_cols, hints)
    block_cols = min(64, power_of_two(width))
    if hint(total(domain, outer), hints) * -(-width // block_cols) < 256:
        block_cols = min(block_cols, 32)
    block_rows = min(power_of_two(length), max(1, 4096 // block_cols), 128)
    looped = block_rows < length or not n_rows.is_number or kernel.partial is not None
    height, breadth = program.block("BLOCK_ROWS", block_rows), program.block("BLOCK_COLS", block_cols)
    program.num_warps = 4
    rows = Axis(fixed("rows"), list(domain.reduced), "loop" if looped else "tile")
    cols = Axis(fixed("cols"), inner, "tile")
    col_end, row_end = arguments.size(n_cols), arguments.size(n_rows)
    block, place = fixed("block"), ProgramId(1 if kernel.partial is not None else 0)
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
    statements += set_all(
        (cols.variable, blocked(Ref(block), breadth, cols, (1, 2))), mask_of(cols, "col_mask", col_end)
    )
    loop: list[Statement] = []
    begin: Expr = Number(0)
    last = row_end
    if looped:
        inside = plus(Ref(START), Arange(height, rows, (0, 2)))
        loop = set_all((rows.variable, inside), mask_of(rows, "row_mask", row_end))
        if kernel.partial is not None:
            begin, last = _chunk(kernel, program, row_end, statements)
    else:
        statements += set_all((rows.variable, Arange(height, rows, (0, 2))), mask_of(rows, "row_mask", row_end))
    axes += [rows, cols]
    program.tiling = (
        f"One program takes {block_cols} neighbouring columns and walks down {length} rows, {block_rows} at a time."
    )
    return Tiling(axes, rows, 0, 2, (height, breadth), height, begin, last, statements, loop)


def _inner_atoms(kernel: Kernel, coefficients: dict[sympy.Symbol, sympy.Expr]) -> list[sympy.Symbol]:
    """The trailing kept atoms that the main load walks contiguously."""
    domain, run = kernel.domain, []
    want: sympy.Expr = ONE
    for atom in reversed(domain.kept):
        if same(coefficients.get(atom, ZERO), want):
            run.append(atom)
            want = sympy.expand(want * domain.size[atom])
        elif run:
            break
    return run[::-1] or [domain.kept[-1]]
