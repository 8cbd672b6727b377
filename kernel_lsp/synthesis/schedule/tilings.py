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
from ..kernel.emit import Axis
from ..kernel.steps import Hints, Kernel, hint
from ..passes.rewrite import CHUNK
from .source import KernelSource, power_of_two, total

#: Longest row, in elements, that one program keeps in registers.
LONGEST_TILE = 32768


@dataclass
class Tiling:
    """``axis`` is the tile axis that is reduced (0 or 1, of ``rank``); ``statements`` set the index variables up."""

    axes: list[Axis]
    reduced: Axis
    axis: int
    rank: int
    statements: list[str]
    loop: list[str]
    shape: str
    bounds: tuple[str, str] = ("0", "")


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


def row_tiling(kernel: Kernel, source: KernelSource, hints: Hints, rows_wanted: int, longest: int) -> Tiling:
    domain, arguments = kernel.domain, source.arguments
    n_rows, n_cols = total(domain, domain.kept), total(domain, domain.reduced)
    arguments.name_size(n_cols, "n_cols")
    length, count = hint(n_cols, hints), hint(n_rows, hints)
    static = n_cols.is_number
    looped = length > longest or kernel.partial is not None
    cols = Axis("cols", list(domain.reduced), vector=True)
    col_text = arguments.size(n_cols)[0]
    statements: list[str] = []
    axes: list[Axis] = []
    per_program = 1
    if not looped and length <= 1024 and domain.kept and count >= 256:
        per_program = max(1, min(32, 2048 // power_of_two(length), power_of_two(count // 256)))
        per_program = rows_wanted or per_program
    rank, axis = (2, 1) if per_program > 1 else (1, 0)
    if per_program > 1:
        arguments.name_size(n_rows, "n_rows")
        source.blocks["ROWS"] = str(per_program)
        rows = Axis("rows", list(domain.kept), vector=True, mask="row_mask")
        statements += [
            "rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]",
            f"row_mask = rows < {arguments.size(n_rows)[0]}",
        ]
        axes.append(rows)
        source.grid = f"triton.cdiv({arguments.host(n_rows)}, {per_program})"
    elif domain.kept:
        statements.append(f"row = tl.program_id({1 if kernel.partial is not None else 0})")
        axes.append(Axis("row", list(domain.kept), vector=False))
        source.grid = arguments.host(n_rows)
    lane = "[None, :]" if rank == 2 else ""
    loop: list[str] = []
    bounds = ("0", col_text)
    if looped:
        block = 4096 if kernel.partial is not None else 8192
        source.blocks["BLOCK"] = str(block)
        source.num_warps = 8 if kernel.partial is not None else 16
        cols.looped, cols.mask = True, "mask"
        loop = [f"cols = start + tl.arange(0, BLOCK){lane}", f"mask = cols < {col_text}"]
        bounds = _partial_bounds(kernel, source, col_text, statements)
    else:
        block_host = str(power_of_two(length)) if static else f"triton.next_power_of_2({arguments.host(n_cols)})"
        source.blocks["BLOCK"] = block_host
        statements.append(f"cols = tl.arange(0, BLOCK){lane}")
        if not (static and power_of_two(length) == length):
            cols.mask = "mask"
            statements.append(f"mask = cols < {col_text}")
        if not static:  # the tile grows with the row; beyond this it would not stay in registers
            source.requires.append(f"{arguments.host(n_cols)} <= {max(1024, LONGEST_TILE // per_program)}")
        elements = power_of_two(length) * per_program
        source.num_warps = 4 if elements <= 4096 else 8
    axes.append(cols)
    what = f"{per_program} rows" if per_program > 1 else "one row"
    how = "walks along it in blocks" if looped else "keeps it in registers"
    if kernel.partial is not None:
        source.tiling = f"One program reduces one chunk of {CHUNK} elements; the next kernel reduces the chunks."
    else:
        source.tiling = f"One program takes {what} of {length} columns and {how if per_program == 1 else 'keeps them in registers'}."
    return Tiling(axes, cols, axis, rank, statements, loop, "[ROWS, BLOCK]" if rank == 2 else "[BLOCK]", bounds)


def _partial_bounds(kernel: Kernel, source: KernelSource, end: str, statements: list[str]) -> tuple[str, str]:
    """The loop's bounds: everything, or one chunk of a split reduction (the program's place on grid axis 0)."""
    if kernel.partial is None:
        return "0", end
    rows = source.grid if kernel.domain.kept else ""
    source.blocks["CHUNK"] = str(CHUNK)
    statements.append("chunk = tl.program_id(0)")
    chunks = source.arguments.host(kernel.partial.shape[0])
    source.grid = f"{chunks}, {rows}" if rows else chunks
    return "chunk * CHUNK", f"tl.minimum((chunk + 1) * CHUNK, {end})"


def column_tiling(kernel: Kernel, source: KernelSource, hints: Hints) -> Tiling:
    domain, arguments = kernel.domain, source.arguments
    coefficients = _main_access(kernel, hints)
    inner = _inner_atoms(kernel, coefficients)
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
    source.blocks |= {"BLOCK_ROWS": str(block_rows), "BLOCK_COLS": str(block_cols)}
    source.num_warps = 4
    rows = Axis("rows", list(domain.reduced), vector=True, mask="row_mask", looped=looped)
    cols = Axis("cols", inner, vector=True, mask="col_mask")
    n_cols_text, n_rows_text = arguments.size(n_cols)[0], arguments.size(n_rows)[0]
    place = 1 if kernel.partial is not None else 0
    statements, axes = [], []
    if outer:
        axes.append(Axis("outer", outer, vector=False))
        blocks = f"tl.cdiv({n_cols_text}, BLOCK_COLS)"
        statements += [f"outer = tl.program_id({place}) // {blocks}", f"block = tl.program_id({place}) % {blocks}"]
        source.grid = (
            f"{_factor(arguments.host(total(domain, outer)))} * triton.cdiv({arguments.host(n_cols)}, {block_cols})"
        )
    else:
        statements.append(f"block = tl.program_id({place})")
        source.grid = f"triton.cdiv({arguments.host(n_cols)}, {block_cols})"
    statements += ["cols = block * BLOCK_COLS + tl.arange(0, BLOCK_COLS)[None, :]", f"col_mask = cols < {n_cols_text}"]
    loop: list[str] = []
    bounds = ("0", n_rows_text)
    if looped:
        loop = ["rows = start + tl.arange(0, BLOCK_ROWS)[:, None]", f"row_mask = rows < {n_rows_text}"]
        if kernel.partial is not None:
            grid = source.grid
            source.blocks["CHUNK"] = str(CHUNK)
            statements.append("chunk = tl.program_id(0)")
            source.grid = f"{arguments.host(kernel.partial.shape[0])}, {grid}"
            bounds = ("chunk * CHUNK", f"tl.minimum((chunk + 1) * CHUNK, {n_rows_text})")
    else:
        statements += ["rows = tl.arange(0, BLOCK_ROWS)[:, None]", f"row_mask = rows < {n_rows_text}"]
    axes += [rows, cols]
    source.tiling = (
        f"One program takes {block_cols} neighbouring columns and walks down {length} rows, {block_rows} at a time."
    )
    return Tiling(axes, rows, 0, 2, statements, loop, "[BLOCK_ROWS, BLOCK_COLS]", bounds)


def _factor(text: str) -> str:
    return f"({text})" if "+" in text or "-" in text else text


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
