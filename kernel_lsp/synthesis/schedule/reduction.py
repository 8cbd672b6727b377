"""Reductions and everything that shares their pass: norms, softmax, losses, sums over any dims."""

from __future__ import annotations

import torch

from ..graph.functions import NEUTRAL, literal, wrap
from ..graph.names import variable_name
from ..graph.sizes import ONE, Index, offset
from ..graph.value import Reduce, Value, operands
from ..kernel.arguments import Arguments
from ..kernel.emit import Emitter, Term
from ..kernel.steps import Hints, Kernel, reduce_operand_index
from .source import KernelSource, total
from .tilings import LONGEST_TILE, Tiling, column_tiling, contiguous_is_kept, row_tiling


def reduction(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    *,
    rows: int = 0,
    longest: int = LONGEST_TILE,
) -> KernelSource:
    """The source of a reduction kernel: ``rows`` short rows per program, rows up to ``longest`` kept in registers."""
    source = KernelSource(name, [], arguments, "1")
    outputs = [kernel.partial] if kernel.partial is not None else [v for v, _ in kernel.stores]
    for v in outputs:
        arguments.outputs[v] = arguments.names.fresh(
            f"{variable_name(v)}_ptr" if len(outputs) > 1 or kernel.partial else "out_ptr"
        )
    if contiguous_is_kept(kernel, hints):
        tiling = column_tiling(kernel, source, hints)
    else:
        tiling = row_tiling(kernel, source, hints, rows, longest)
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


def _in_one_tile(kernel: Kernel, emitter: Emitter, tiling: Tiling) -> list[str]:
    for v in kernel.reduces:
        emitter.count(v.op.operand, _operand_index(kernel, v))  # type: ignore[attr-defined]
    for v, index in kernel.stores:
        emitter.count(v, index)
    for v in kernel.reduces:
        op = v.op
        assert isinstance(op, Reduce)
        term = _masked(_operand(kernel, emitter, v), v, tiling)
        if _keeps_nan(v) and not term.text.isidentifier():
            term = emitter.assign(variable_name(op.operand), term)
        text = _fold(op.kind, term.text, tiling, keeps_nan=_keeps_nan(v))
        result = Term(text, 100, term.axes - {tiling.reduced})
        shared = emitter.uses.get(emitter.key(v, kernel.placed[v]), 1) > 1 or v.name
        emitter.reduced[v] = emitter.assign(variable_name(v), result) if shared else result
    emitter.pad_hint = 0.0
    for v, index in kernel.stores:
        emitter.store(v, index)
    return emitter.lines


def _fold(kind: str, text: str, tiling: Tiling, *, keeps_nan: bool = False) -> str:
    """``text`` reduced over the tile; with ``keeps_nan`` it is a name, since Triton's max, min and argmax drop NaN."""
    keep = ", keep_dims=True" if tiling.rank == 2 else ""
    nan = f"({text} != {text}).to(tl.int32)"
    if kind.startswith("arg"):
        rest = f"axis={tiling.axis}, tie_break_left=True{keep}"
        found = f"tl.{kind}({text}, {rest})"
        if not keeps_nan:
            return found
        return f"tl.where(tl.max({nan}, axis={tiling.axis}{keep}) > 0, tl.argmax({nan}, {rest}), {found})"
    found = f"tl.{kind.removeprefix('a')}({text}, axis={tiling.axis}{keep})"
    return f'tl.where(tl.max({nan}, axis={tiling.axis}{keep}) > 0, float("nan"), {found})' if keeps_nan else found


def _keeps_nan(v: Value) -> bool:
    op = v.op
    assert isinstance(op, Reduce)
    return op.operand.dtype.is_floating_point and op.kind in ("amax", "amin", "argmax", "argmin")


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
    elif term.pad == neutral:
        return term
    mask = tiling.reduced.mask
    if not mask:
        return term
    return Term(f"tl.where({mask}, {term.text}, {literal(neutral)})", 100, term.axes)


def _levels(kernel: Kernel) -> list[list[Value]]:
    """Reductions grouped by how many others each waits for."""

    def depth(v: Value, seen: dict[Value, int]) -> int:
        if v in seen:
            return seen[v]
        below = [depth(o, seen) for o in operands(v)] if not _is_leaf(kernel, v) else []
        seen[v] = max(below, default=0) + (1 if v in kernel.reduces else 0)
        return seen[v]

    seen: dict[Value, int] = {}
    level = {v: depth(v, seen) for v in kernel.reduces}
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
            _fold("sum", running, tiling),
        )
    if op.kind in ("max", "min", "amax", "amin"):
        running = names.fresh(f"{variable_name(v)}_acc")
        nan = ", propagate_nan=tl.PropagateNan.ALL" if _keeps_nan(v) else ""
        update = f"{running} = tl.{op.kind.removeprefix('a')}imum({running}, {term.text}{nan})"
        return (
            [f"{running} = tl.full({shape}, {neutral}, dtype={dtype})"],
            [update],
            _fold(op.kind, running, tiling, keeps_nan=_keeps_nan(v)),
        )
    best, at = names.fresh("best"), names.fresh("best_at")
    sign = ">" if op.kind == "argmax" else "<"
    current = term.text if term.text.isidentifier() else names.fresh("candidate")
    updates = [] if current == term.text else [f"{current} = {term.text}"]
    updates += [
        f"better = ({current} {sign} {best}) | (({current} != {current}) & ({best} == {best}))"
        if _keeps_nan(v)
        else f"better = {current} {sign} {best}",
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
    found = f"{best} == {top}"
    if _keeps_nan(v):  # the first NaN counts as the greatest, and as the least
        nan = f"tl.max(({best} != {best}).to(tl.int32), axis={tiling.axis}, keep_dims=True) > 0"
        found = f"tl.where({nan}, {best} != {best}, {found})"
    return starts, updates, f"tl.min(tl.where({found}, {at}, 2147483647), axis={tiling.axis}{keep})"
