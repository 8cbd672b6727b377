"""Elementwise kernels: every output element once, in the order of memory; a 2-D tile where an operand is transposed, or by lines."""

from __future__ import annotations

import sympy
import torch

from ..graph.value import Value
from ..kernel.arguments import Arguments
from ..kernel.build import Builder
from ..kernel.execution_plan import Hints, Kernel
from ..kernel.ir import Arange, Axis, AxisIndex, Expr, ProgramId, Ref, Variable, apply, plus
from .extents import total, transposed_atoms
from .naming import name_outputs
from .program import Blocks, Program, fixed, set_all
from .schedules import ByLines, Flat, Turned


def elementwise(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    schedule: Flat | Turned | ByLines,
) -> Program:
    """An elementwise kernel."""
    program = Program(name, arguments, num_warps=schedule.warps)
    name_outputs(kernel, arguments)
    if isinstance(schedule, Flat):
        axes = _across(kernel, program, schedule) if schedule.across else _flat(kernel, program, schedule.block)
    elif isinstance(schedule, ByLines):
        axes = _by_lines(kernel, program, schedule)
    else:
        turned = transposed_atoms(kernel, hints)
        assert turned
        axes = _tile(kernel, program, turned, schedule)
    builder = Builder(kernel.domain, axes, arguments, stored, kernel.placed)
    for v, index in kernel.stores:
        builder.count(v, index)
    for v, index in kernel.stores:
        builder.store(v, index, kernel.destination(v, index))
    for v in kernel.peaks:
        builder.peak(v, kernel.stores[0][1])
    program.body += builder.lines
    return program


def _flat(kernel: Kernel, program: Program, block: int) -> list[Axis]:
    domain, arguments = kernel.domain, program.arguments
    n = total(domain, domain.kept)
    arguments.name_size(n, "n_elements")
    size = program.block("BLOCK", block)
    program.grid = [[Blocks(n, block)]]
    axis = Axis(fixed("offsets"), list(domain.kept), "tile")
    program.body += set_all((axis.variable, blocked(ProgramId(0), size, axis)))
    if not (n.is_Integer and n % block == 0):
        program.body += set_all(mask_of(axis, "mask", arguments.size(n)))
    program.tiling = f"One program takes {block} consecutive elements."
    return [axis]


def _across(kernel: Kernel, program: Program, schedule: Flat) -> list[Axis]:
    """As ``_flat`` where a row is a whole number of blocks, in another order of the programs."""
    domain, arguments, block = kernel.domain, program.arguments, schedule.block
    rows = total(domain, domain.kept[: schedule.across])
    blocks = total(domain, domain.kept[schedule.across :]) / block
    arguments.name_size(rows, "n_rows")
    size = program.block("BLOCK", block)
    program.grid = [[Blocks(total(domain, domain.kept), block)]]
    axis = Axis(fixed("offsets"), list(domain.kept), "tile")
    row = apply("mod_int", ProgramId(0), arguments.size(rows))
    place = apply("floordiv_int", ProgramId(0), arguments.size(rows))
    of_all = plus(apply("mul", row, arguments.size(blocks)), place)
    program.body += set_all((axis.variable, blocked(of_all, size, axis)))
    program.tiling = f"One program takes {block} consecutive elements. Programs next to each other take the same block of all rows: what these share stays in L2."
    return [axis]


def blocked(place: Expr, size: Variable, axis: Axis, lane: tuple[int, int] | None = None) -> Expr:
    """The indices of block number ``place`` along an axis."""
    return plus(apply("mul", place, Ref(size)), Arange(size, axis, lane))


def mask_of(axis: Axis, name: str, end: Expr) -> tuple[Variable, Expr]:
    """The variable and the expression of an axis's mask, which the axis has from now on."""
    variable, inside = fixed(name), apply("lt", AxisIndex(axis), end, dtype=torch.bool)
    axis.mask = Ref(variable, inside.axes, torch.bool)
    return variable, inside


def _tile(kernel: Kernel, program: Program, turned: list[sympy.Symbol], schedule: Turned) -> list[Axis]:
    domain, arguments = kernel.domain, program.arguments
    last = domain.kept[-1]
    outer = [a for a in domain.kept if a not in (*turned, last)]
    n_rows, n_cols = total(domain, turned), domain.size[last]
    arguments.name_size(n_rows, "n_rows")
    arguments.name_size(n_cols, "n_cols")
    height, width = arguments.size(n_rows), arguments.size(n_cols)
    block_rows, block_cols = program.block("BLOCK_ROWS", schedule.rows), program.block("BLOCK_COLS", schedule.cols)
    program.grid = [[Blocks(n_rows, schedule.rows), Blocks(n_cols, schedule.cols)]]
    tile = fixed("tile")
    program.body += set_all((tile, ProgramId(0)))
    axes: list[Axis] = []
    if outer:
        n_tiles = fixed("n_tiles")
        axes.append(Axis(fixed("outer"), outer, "grid"))
        program.grid[0].append(total(domain, outer))
        program.body += set_all(
            (n_tiles, apply("mul", apply("cdiv", height, Ref(block_rows)), apply("cdiv", width, Ref(block_cols)))),
            (axes[0].variable, apply("floordiv_int", Ref(tile), Ref(n_tiles))),
            (tile, apply("mod_int", Ref(tile), Ref(n_tiles))),
        )
    rows, cols = Axis(fixed("rows"), turned, "tile"), Axis(fixed("cols"), [last], "tile")
    across = apply("cdiv", width, Ref(block_cols))
    program.body += set_all(
        (rows.variable, blocked(apply("floordiv_int", Ref(tile), across), block_rows, rows, (0, 2))),
        (cols.variable, blocked(apply("mod_int", Ref(tile), across), block_cols, cols, (1, 2))),
        mask_of(rows, "row_mask", height),
        mask_of(cols, "col_mask", width),
    )
    program.tiling = f"One program takes a {schedule.rows} x {schedule.cols} tile, so that both the transposed operand and the result are read in order."
    return [*axes, rows, cols]


def _by_lines(kernel: Kernel, program: Program, schedule: ByLines) -> list[Axis]:
    """A block of lines, in one piece or several; each line's index is taken apart once, that of the program's first dimensions once for all."""
    domain, arguments = kernel.domain, program.arguments
    outer, above, inner = schedule.parts(domain.kept)
    n_rows, n_cols = total(domain, above), total(domain, inner)
    arguments.name_size(n_rows, "n_rows")
    arguments.name_size(n_cols, "n_cols")
    block_rows, block_cols = program.block("BLOCK_ROWS", schedule.rows), program.block("BLOCK_COLS", schedule.cols)
    program.grid = [[Blocks(n_rows, schedule.rows)]]
    rows, cols = Axis(fixed("rows"), list(above), "tile"), Axis(fixed("cols"), list(inner), "tile")
    axes = [rows, cols]
    block: Expr = ProgramId(0)
    if not (n_cols.is_Integer and n_cols <= schedule.cols):
        program.grid[0].append(Blocks(n_cols, schedule.cols))
        across = apply("cdiv", arguments.size(n_cols), Ref(block_cols))
        program.body += set_all(
            (fixed("piece"), apply("mod_int", block, across)), (fixed("block"), apply("floordiv_int", block, across))
        )
        block = Ref(fixed("block"))
        place = blocked(Ref(fixed("piece")), block_cols, cols, (1, 2))
    else:
        place = Arange(block_cols, cols, (1, 2))
    if outer:
        axes.insert(0, Axis(fixed("outer"), list(outer), "grid"))
        program.grid[0].append(total(domain, outer))
        down = apply("cdiv", arguments.size(n_rows), Ref(block_rows))
        program.body += set_all((axes[0].variable, apply("floordiv_int", block, down)))
        block = apply("mod_int", block, down)
    program.body += set_all((rows.variable, blocked(block, block_rows, rows, (0, 2))), (cols.variable, place))
    for axis, size, length, name in (
        (rows, n_rows, schedule.rows, "row_mask"),
        (cols, n_cols, schedule.cols, "col_mask"),
    ):
        if not (size.is_Integer and size % length == 0):
            program.body += set_all(mask_of(axis, name, arguments.size(size)))
    lines = f"{schedule.rows} lines" if schedule.rows > 1 else "one line"
    each = "each" if schedule.rows > 1 else "it"
    program.tiling = f"One program takes {lines} of the result, {schedule.cols} elements of {each}. What is the same all along a line is computed once."
    return axes
