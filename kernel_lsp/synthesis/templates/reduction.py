"""Reductions and everything that shares their pass: norms, softmax, losses, sums over any dims.

Three ways to tile, by where the contiguous elements lie and how long the reduced extent is:

- rows: the reduced elements are contiguous. One program holds one row (or several short ones) in registers.
- long rows: as rows, but the row does not fit in registers; each dependent reduction takes a pass over the row.
- columns: a kept dimension is contiguous. A program holds a tile of columns and walks down the reduced extent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy
import torch

from ..emit import Arguments, Axis, Emitter, Term
from ..functions import NEUTRAL, literal, wrap
from ..graph import Reduce, Value
from ..index import ONE, ZERO, Index, offset, quotient, same
from ..names import variable_name
from ..regions import Hints, Kernel, hint, reduce_operand_index
from ..rewrite import CHUNK
from . import KernelSource, power_of_two, total

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


def reduction(
    kernel: Kernel, name: str, arguments: Arguments, hints: Hints, stored: set[Value], *, warps: int | None = None
) -> KernelSource:
    """The source of a reduction kernel; ``warps`` overrides the choice of num_warps."""
    source = KernelSource(name, [], arguments, "1")
    outputs = [kernel.partial] if kernel.partial is not None else [v for v, _ in kernel.stores]
    for v in outputs:
        arguments.outputs[v] = arguments.names.fresh(
            f"{variable_name(v)}_ptr" if len(outputs) > 1 or kernel.partial else "out_ptr"
        )
    tiling = _columns(kernel, source, hints) if _contiguous_is_kept(kernel, hints) else _rows(kernel, source, hints)
    if warps is not None:
        source.num_warps = warps
    emitter = Emitter(kernel.domain, tiling.axes, arguments, stored, kernel.placed)
    emitter.reduced_axis = tiling.reduced
    body = list(tiling.statements)
    if tiling.reduced.looped:
        body += _in_passes(kernel, emitter, tiling)
    else:
        body += _in_one_tile(kernel, emitter, tiling)
    source.body = body
    source.library = emitter.library
    return source


# -- tilings -------------------------------------------------------------------------------------------------------


def _main_access(kernel: Kernel, hints: Hints) -> dict[sympy.Symbol, sympy.Expr]:
    """The atoms' coefficients in the largest load that varies along the reduced atoms."""
    best: dict[sympy.Symbol, sympy.Expr] = {}
    most = -1
    for _, index, shape in kernel.accesses:
        try:
            coefficients, _ = kernel.domain.terms(offset(index, shape))
        except Exception:
            continue
        size = math.prod(hint(kernel.domain.size[a], hints) for a in coefficients)
        if size > most and any(a in coefficients for a in kernel.domain.reduced):
            best, most = coefficients, size
    return best


def _contiguous_is_kept(kernel: Kernel, hints: Hints) -> bool:
    coefficients = _main_access(kernel, hints)
    unit = [a for a, c in coefficients.items() if c == ONE and hint(kernel.domain.size[a], hints) > 1]
    return bool(unit) and unit[0] in kernel.domain.kept


def _rows(kernel: Kernel, source: KernelSource, hints: Hints) -> Tiling:
    domain, arguments = kernel.domain, source.arguments
    n_rows, n_cols = total(domain, domain.kept), total(domain, domain.reduced)
    arguments.name_size(n_cols, "n_cols")
    length, count = hint(n_cols, hints), hint(n_rows, hints)
    static = n_cols.is_number
    looped = length > LONGEST_TILE or kernel.partial is not None
    cols = Axis("cols", list(domain.reduced), vector=True)
    col_text = arguments.size(n_cols)[0]
    statements: list[str] = []
    axes: list[Axis] = []
    per_program = 1
    if not looped and length <= 1024 and domain.kept and count >= 256:
        per_program = max(1, min(32, 4096 // power_of_two(length), power_of_two(count // 256)))
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
        elements = power_of_two(length) * per_program
        source.num_warps = 4 if elements <= 4096 else 8 if elements <= 8192 else 16
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


def _columns(kernel: Kernel, source: KernelSource, hints: Hints) -> Tiling:
    domain, arguments = kernel.domain, source.arguments
    coefficients = _main_access(kernel, hints)
    inner = _inner_atoms(kernel, coefficients)
    outer = [a for a in domain.kept if a not in inner]
    n_rows, n_cols = total(domain, domain.reduced), total(domain, inner)
    arguments.name_size(n_rows, "n_rows")
    arguments.name_size(n_cols, "n_cols")
    length, width = hint(n_rows, hints), hint(n_cols, hints)
    block_cols = min(128, power_of_two(width))
    if hint(total(domain, outer), hints) * -(-width // block_cols) < 256:
        block_cols = min(block_cols, 32)
    block_rows = min(power_of_two(length), max(1, 8192 // block_cols), 128)
    looped = block_rows < length or not n_rows.is_number or kernel.partial is not None
    source.blocks |= {"BLOCK_ROWS": str(block_rows), "BLOCK_COLS": str(block_cols)}
    source.num_warps = 8 if block_rows * block_cols >= 4096 else 4
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


# -- bodies ----------------------------------------------------------------------------------------------------------


def _in_one_tile(kernel: Kernel, emitter: Emitter, tiling: Tiling) -> list[str]:
    for v in kernel.reduces:
        emitter.count(v.op.operand, _operand_index(kernel, v))  # type: ignore[attr-defined]
    for v, index in kernel.stores:
        emitter.count(v, index)
    for v in kernel.reduces:
        op = v.op
        assert isinstance(op, Reduce)
        term = _masked(_operand(kernel, emitter, v), v, tiling)
        text = _fold(op.kind, term.text, tiling, emitter)
        result = Term(text, 100, term.axes - {tiling.reduced})
        shared = emitter.uses.get(emitter.key(v, kernel.placed[v]), 1) > 1 or v.name
        emitter.reduced[v] = emitter.assign(variable_name(v), result) if shared else result
    emitter.pad_hint = 0.0
    for v, index in kernel.stores:
        emitter.store(v, index)
    return emitter.lines


def _fold(kind: str, text: str, tiling: Tiling, emitter: Emitter) -> str:
    keep = ", keep_dims=True" if tiling.rank == 2 else ""
    if kind.startswith("arg"):
        return f"tl.{kind}({text}, axis={tiling.axis}, tie_break_left=True{keep})"
    return f"tl.{kind}({text}, axis={tiling.axis}{keep})"


def _operand_index(kernel: Kernel, v: Value) -> Index:
    return reduce_operand_index(kernel, v, kernel.placed[v])


def _operand(kernel: Kernel, emitter: Emitter, v: Value) -> Term:
    op = v.op
    assert isinstance(op, Reduce)
    emitter.pad_hint = NEUTRAL[op.kind]
    return emitter.value(op.operand, _operand_index(kernel, v))


def _neutral(v: Value) -> float | int:
    """The number that a reduction's masked lanes hold, in its operand's dtype."""
    op = v.op
    assert isinstance(op, Reduce)
    number = NEUTRAL[op.kind]
    dtype = op.operand.dtype
    if dtype.is_floating_point:
        return number
    if number == 0.0 or dtype == torch.bool:
        return 0
    limits = torch.iinfo(dtype)
    return limits.min if number < 0 else limits.max


def _masked(term: Term, v: Value, tiling: Tiling) -> Term:
    """``term`` with the reduction's neutral element in lanes beyond the end, unless it has it already."""
    neutral = _neutral(v)
    if tiling.reduced not in term.axes:
        # The operand does not vary along the reduced axis (an expanded value): give it that shape.
        term = Term(
            f"{wrap(term.text, term.precedence, 70)} + 0 * {tiling.reduced.variable}", 70, term.axes | {tiling.reduced}
        )
    elif not tiling.reduced.mask or term.pad == neutral:
        return term
    mask = tiling.reduced.mask
    if not mask:
        return term
    return Term(f"tl.where({mask}, {term.text}, {literal(neutral)})", 100, term.axes)


def _levels(kernel: Kernel) -> list[list[Value]]:
    """Reductions grouped by how many others each waits for."""
    from ..graph import operands

    level: dict[Value, int] = {}

    def depth(v: Value, seen: dict[Value, int]) -> int:
        if v in seen:
            return seen[v]
        below = [depth(o, seen) for o in operands(v)] if not _is_leaf(kernel, v) else []
        seen[v] = max(below, default=0) + (1 if v in kernel.reduces else 0)
        return seen[v]

    seen: dict[Value, int] = {}
    for v in kernel.reduces:
        level[v] = depth(v, seen)
    return [[v for v in kernel.reduces if level[v] == n] for n in sorted(set(level.values()))]


def _is_leaf(kernel: Kernel, v: Value) -> bool:
    return v in kernel.leaves and v not in kernel.reduces


def _in_passes(kernel: Kernel, emitter: Emitter, tiling: Tiling) -> list[str]:
    """One loop over the reduced extent per level of dependent reductions, and one to store what varies along it."""
    body: list[str] = []
    for level in _levels(kernel):
        emitter.lines, emitter.inner = [], []
        emitter.memo = {k: t for k, t in emitter.memo.items() if tiling.reduced not in t.axes}
        emitter.uses = {}
        for v in level:
            emitter.count(v.op.operand, _operand_index(kernel, v))  # type: ignore[attr-defined]
        starts: list[str] = []
        ends: list[tuple[Value, str, Term]] = []
        for v in level:
            start, update, end = _accumulate(kernel, emitter, v, tiling)
            starts += start
            emitter.inner += update
            ends.append(
                (v, end, Term("", 100, frozenset(a for a in tiling.axes if a.vector and a is not tiling.reduced)))
            )
        body += emitter.lines + starts + _loop(tiling, emitter.inner)
        emitter.lines = []
        for v, end, shape in ends:
            emitter.reduced[v] = emitter.assign(variable_name(v), Term(end, 100, shape.axes))
        body += emitter.lines
    emitter.lines, emitter.inner, emitter.pad_hint = [], [], 0.0
    emitter.memo = {k: t for k, t in emitter.memo.items() if tiling.reduced not in t.axes}
    emitter.uses = {}
    if kernel.partial is not None:
        ((whole, index),) = kernel.stores
        where = emitter.index_term(offset(index, whole.shape))
        results = total(kernel.domain, kernel.domain.kept)
        chunk = "chunk" if results == ONE else f"chunk * {wrap(*emitter.arguments.size(results), 90)}"
        text = f"{emitter.arguments.outputs[kernel.partial]} + {chunk}" + (
            f" + {where.text}" if where.text != "0" else ""
        )
        masks = [a.mask for a in tiling.axes if a in where.axes and a.mask]
        mask = f", mask={' & '.join(masks)}" if masks else ""
        return [*body, f"tl.store({text}, {emitter.reduced[whole].text}{mask})"]
    for v, index in kernel.stores:
        emitter.count(v, index)
    for v, index in kernel.stores:
        emitter.store(v, index)
    return body + emitter.lines + (_loop(tiling, emitter.inner) if emitter.inner else [])


def _loop(tiling: Tiling, inner: list[str]) -> list[str]:
    begin, end = tiling.bounds
    block = "BLOCK" if tiling.rank == 1 or "BLOCK_ROWS" not in tiling.shape else "BLOCK_ROWS"
    return [f"for start in range({begin}, {end}, {block}):", *(f"    {line}" for line in tiling.loop + inner)]


def _accumulate(kernel: Kernel, emitter: Emitter, v: Value, tiling: Tiling) -> tuple[list[str], list[str], str]:
    """(before the loop, inside it, the result after it) for one reduction; one accumulator per lane."""
    op = v.op
    assert isinstance(op, Reduce)
    names = emitter.arguments.names
    term = _masked(_operand(kernel, emitter, v), v, tiling)
    dtype = {torch.float64: "tl.float64", torch.int64: "tl.int64", torch.int32: "tl.int32"}.get(
        op.operand.dtype, "tl.float32"
    )
    if op.kind == "sum" and v.dtype == torch.int64:
        dtype = "tl.int64"
    neutral = literal(_neutral(v))
    shape = tiling.shape
    if op.kind == "sum":
        running = names.fresh(f"{variable_name(v)}_acc")
        return (
            [f"{running} = tl.zeros({shape}, dtype={dtype})"],
            [f"{running} += {term.text}"],
            _fold("sum", running, tiling, emitter),
        )
    if op.kind in ("max", "min"):
        running = names.fresh(f"{variable_name(v)}_acc")
        update = f"{running} = tl.{op.kind}imum({running}, {term.text})"
        return (
            [f"{running} = tl.full({shape}, {neutral}, dtype={dtype})"],
            [update],
            _fold(op.kind, running, tiling, emitter),
        )
    best, at = names.fresh("best"), names.fresh("best_at")
    sign = ">" if op.kind == "argmax" else "<"
    current = term.text if term.text.isidentifier() else names.fresh("candidate")
    updates = [] if current == term.text else [f"{current} = {term.text}"]
    updates += [
        f"better = {current} {sign} {best}",
        f"{best} = tl.where(better, {current}, {best})",
        f"{at} = tl.where(better, {tiling.reduced.variable}, {at})",
    ]
    starts = [
        f"{best} = tl.full({shape}, {neutral}, dtype={dtype})",
        f"{at} = tl.full({shape}, 2147483647, dtype=tl.int32)",
    ]
    kind = op.kind.removeprefix("arg")
    keep = ", keep_dims=True" if tiling.rank == 2 else ""
    top = f"tl.{kind}({best}, axis={tiling.axis}, keep_dims=True)"
    return starts, updates, f"tl.min(tl.where({best} == {top}, {at}, 2147483647), axis={tiling.axis}{keep})"


__all__ = ["LONGEST_TILE", "quotient", "reduction"]
