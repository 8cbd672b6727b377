"""Reductions and everything that shares their pass: norms, softmax, losses, sums over any dims."""

from __future__ import annotations

import sympy
import torch

from ..graph import division
from ..graph.build import opmath
from ..graph.monoids import MONOIDS
from ..graph.names import variable_name
from ..graph.sizes import ONE, ZERO, Index, offset
from ..graph.value import Fold, Scan, Value
from ..kernel.arguments import Arguments
from ..kernel.build import Builder, masked, spread
from ..kernel.execution_plan import Hints, Kernel, fold_operand_index
from ..kernel.ir import Apply, AxisIndex, Expr, FoldAxis, Full, Item, Items, Number, PrefixScan, Ref, apply, plus
from ..kernel.statements import Add, For, Set, Statement, Store
from .extents import total
from .fold_state import Carrying, carrying, finish, in_dtype
from .naming import name_outputs
from .program import Program
from .row_passes import Running, passes, plain
from .schedules import Columns, Passes, Rows, Unrolled
from .tilings import CHUNK_PLACE, ROW, START, Tiling, column_tiling, row_place, row_tiling, unrolled_tiling, with_rows


def reduction(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    schedule: Rows | Passes | Columns | Unrolled,
) -> Program:
    """A reduction kernel."""
    program = Program(name, arguments)
    name_outputs(kernel, arguments)
    if isinstance(schedule, Columns):
        tiling = column_tiling(kernel, program, hints, schedule)
    elif isinstance(schedule, Unrolled):
        kernel = with_rows(kernel, schedule.rows) if schedule.rows > 1 else kernel
        tiling = unrolled_tiling(kernel, program, schedule)
    else:
        tiling = row_tiling(kernel, program, hints, schedule)
    builder = Builder(kernel.domain, tiling.axes, arguments, stored, kernel.placed)
    builder.reduced_axis = tiling.reduced
    if tiling.rows is not None:
        body = _in_rows(kernel, builder, tiling)
    elif tiling.reduced.role == "tile":
        body = in_one_tile(kernel, builder, tiling)
    else:
        body = _in_passes(kernel, builder, tiling, apart=isinstance(schedule, Passes) and schedule.apart)
    program.body = [*tiling.statements, *body]
    return program


def in_one_tile(
    kernel: Kernel, builder: Builder, tiling: Tiling, chunk: Expr | None = None, pair: sympy.Symbol | None = None
) -> list[Statement]:
    """Statements of a program that holds its elements whole. ``chunk``: which chunk they are, where the kernel fills partials.

    ``pair``: an atom of two places that ``tiling`` reduces, too, though the partials have a place for each.
    """
    for v in kernel.folds:
        builder.count(fold_of(v).operand, _operand_index(kernel, plain(v)))
    for v, index in kernel.stores:
        builder.count(v, index)
    for v in kernel.folds:
        op, one = fold_of(v), plain(v)
        if isinstance(op, Scan):
            builder.reduced[v] = _scanned_tile(kernel, builder, v, tiling)
            continue
        operand = _operand(kernel, builder, one)
        term = _masked(operand, one, tiling)
        if chunk is not None and (pair is not None or tiling.reduced in operand.axes):
            # Of what varies along the reduced axis alone each thread would hold all (docs/performance.md).
            for axis in tiling.axes:
                term = spread(term, axis)
        if keeps_nan(v) and not isinstance(term, Ref):
            term = builder.assign(variable_name(op.operand), term, op.operand.dtype)
        # Where a NaN is kept the term is a name, since Triton's max, min and argmax drop NaN.
        result: Expr = FoldAxis(op.kind, term, tiling.reduced, tiling.place, tiling.rank > 1, keeps_nan(v), v.dtype)
        if builder.uses.get(builder.key(v, kernel.placed[v]), 1) > 1 or v.name:
            result = builder.assign(variable_name(v), result, v.dtype)
        builder.reduced[v] = result
    builder.pad_hint = 0.0
    for v, index in kernel.stores[: len(kernel.stores) - len(kernel.partials)]:
        builder.store(v, index, kernel.destination(v, index))
    return [*builder.lines, *_store_partials(kernel, builder, chunk or Ref(CHUNK_PLACE), pair)]


def fold_of(v: Value) -> Fold:
    """The reduction or scan that computes ``v``, which has to be one."""
    assert isinstance(v.op, Fold)
    return v.op


def keeps_nan(v: Value) -> bool:
    """Whether a NaN among the elements has to be the result: of a maximum or minimum, or its place, in floating point."""
    op = fold_of(v)
    return op.operand.dtype.is_floating_point and op.kind in ("amax", "amin", "argmax", "argmin")


def _operand_index(kernel: Kernel, running: Running) -> Index:
    """Where the elements are that ``running`` folds: as its reduction's operand, of the same shape."""
    return fold_operand_index(kernel, running.fold, kernel.placed[running.fold])


def _operand(kernel: Kernel, builder: Builder, running: Running) -> Expr:
    builder.pad_hint = running.monoid.neutral
    return builder.value(running.element, _operand_index(kernel, running))


def element_of(kernel: Kernel, builder: Builder, running: Running, tiling: Tiling) -> Expr:
    """What ``running`` folds, with the monoid's neutral element in lanes beyond the end."""
    return _masked(_operand(kernel, builder, running), running, tiling)


def _masked(term: Expr, running: Running, tiling: Tiling) -> Expr:
    """``term`` with the monoid's neutral element in lanes beyond the end, unless it has it already."""
    dtype = running.element.dtype
    neutral, mask = in_dtype(running.monoid.neutral, dtype), tiling.reduced.mask
    if tiling.reduced.role == "unrolled":
        return term
    if tiling.reduced in term.axes and term.pad == neutral:
        return term
    if mask is None:
        return spread(term, tiling.reduced)  # an expanded value does not vary along the reduced axis
    return masked(term, mask, neutral, dtype)


def _in_passes(kernel: Kernel, builder: Builder, tiling: Tiling, apart: bool) -> list[Statement]:
    """One loop over the reduced extent per level of dependent reductions, and one to store what varies along it."""
    body: list[Statement] = []
    builder.scan = lambda v: _scan_along(kernel, builder, v, tiling)
    for running in passes(kernel, apart):
        before, statements = _one_pass(kernel, builder, tiling, running)
        body += before + statements
    _next_pass(builder, tiling)
    builder.pad_hint = 0.0
    if kernel.partials:
        return [*body, *_store_partials(kernel, builder, Ref(CHUNK_PLACE))]
    for v, index in kernel.stores:
        builder.count(v, index)
    for v, index in kernel.stores:
        builder.store(v, index)
    return body + builder.lines + ([_loop(tiling, builder.inner)] if builder.inner else [])


def _in_rows(kernel: Kernel, builder: Builder, tiling: Tiling) -> list[Statement]:
    """The results of a lane one after the other, then the stores: one between them, and what they share would be loaded again."""
    assert tiling.rows is not None
    row, end = tiling.rows
    builder.overhanging = ROW
    place, length = row_place(kernel)
    (running,) = passes(kernel)
    before, of_row = _one_pass(kernel, builder, tiling, running)
    _next_pass(builder, tiling)
    builder.pad_hint = 0.0
    for v, index in kernel.stores:
        builder.count(v, index)
    results = [builder.value(v, index) for v, index in kernel.stores]
    of_row += [*builder.lines, *builder.inner]
    builder.lines, builder.inner = [], []
    # What varies from row to row has another value in the loop of the stores.
    builder.named = {at: name for at, name in builder.named.items() if row not in name.axes}
    builder.memo = {key: known for key, known in builder.memo.items() if row not in known.axes}
    if not division.within(place, ZERO, length, kernel.domain.size)[1]:
        builder.ends = (apply("lt", builder.index(place), builder.arguments.size(length), dtype=torch.bool),)
    for (v, index), result in zip(kernel.stores, results, strict=True):
        items = builder.arguments.variable(f"{variable_name(v)}_rows")
        before.append(Set(items, Items(())))
        of_row.append(Add(items, Items((result,))))
        held = Item(Ref(items, result.axes, v.dtype), AxisIndex(row))
        if v in builder.reduced:
            builder.reduced[v] = held
        builder.memo[builder.key(v, index), ()] = held
        builder.store(v, index, kernel.destination(v, index))
    stores = (*builder.lines, *builder.inner)
    loops = [For(row.variable, Number(0), end, None, tuple(body)) for body in (of_row, stores)]
    return [*before, *loops]


def _one_pass(
    kernel: Kernel, builder: Builder, tiling: Tiling, running: list[Running]
) -> tuple[list[Statement], list[Statement]]:
    """What a pass needs that does not vary along it, and the pass itself, with what is computed of its results."""
    _next_pass(builder, tiling)
    for one in running:
        builder.count(one.element, _operand_index(kernel, one))
    folds: list[Carrying] = []
    for one in running:
        element = element_of(kernel, builder, one, tiling)
        folds.append(carrying(builder, one, element, tiling))
        builder.inner += folds[-1].updates
    starts = [start for fold in folds for start in fold.starts]
    before, statements = builder.lines, [*starts, _loop(tiling, builder.inner)]
    builder.lines = []
    finish(folds, kernel, builder)
    return before, [*statements, *builder.lines]


def _next_pass(builder: Builder, tiling: Tiling) -> None:
    """Forget what varies along the reduced axis: the next loop loads and computes it again."""
    builder.lines, builder.inner, builder.uses = [], [], {}
    builder.memo = {key: term for key, term in builder.memo.items() if tiling.reduced not in term.axes}
    builder.named = {place: name for place, name in builder.named.items() if tiling.reduced not in name.axes}


def _scanned_tile(kernel: Kernel, builder: Builder, v: Value, tiling: Tiling) -> Expr:
    """A scan of a whole tile. What lies beyond the end comes after all that counts, and needs no mask."""
    return builder.assign(variable_name(v), _scanned(kernel, builder, v, tiling), v.dtype)


def _scanned(kernel: Kernel, builder: Builder, v: Value, tiling: Tiling) -> PrefixScan:
    op = fold_of(v)
    term = spread(_operand(kernel, builder, plain(v)), tiling.reduced)
    return PrefixScan(op.kind, term, tiling.reduced, tiling.place, v.dtype)


def _scan_along(kernel: Kernel, builder: Builder, v: Value, tiling: Tiling) -> Expr:
    """A scan inside the loop along it: each block from where the one before it ended."""
    block, monoid = _scanned(kernel, builder, v, tiling), MONOIDS[fold_of(v).kind]
    carry = builder.arguments.variable("carry")
    sizes = tuple(None if d == tiling.place else name for d, name in enumerate(tiling.shape))
    kept = tiling.vectors - {tiling.reduced}
    start: Expr = Full(sizes if tiling.rank > 1 else (), in_dtype(monoid.neutral, v.dtype), opmath(v.dtype), kept)
    if kernel.chunked is v:
        start = apply(monoid.combine, start, _before(kernel, builder, v), dtype=v.dtype)
    builder.lines.append(Set(carry, start))
    held = Ref(carry, kept, v.dtype)
    found = builder.assign(variable_name(v), apply(monoid.combine, held, block, dtype=v.dtype), v.dtype)
    builder.inner.append(Set(carry, _end(found, v, tiling)))
    return found


def _end(found: Ref, v: Value, tiling: Tiling) -> Expr:
    """What a block has come to at its last lane."""
    assert tiling.step is not None
    last = apply("sub", plus(Ref(START), Ref(tiling.step)), Number(1))
    here = _bool("eq", AxisIndex(tiling.reduced), last)
    alone = apply("where", here, found, Number(0), dtype=v.dtype)
    return FoldAxis("sum", alone, tiling.reduced, tiling.place, tiling.rank == 2, False, v.dtype)


def _before(kernel: Kernel, builder: Builder, v: Value) -> Expr:
    """What comes before the program's chunk: where the chunk before it ended."""
    assert isinstance(v.op, Scan) and v.op.start is not None
    chunk = sympy.Symbol("chunk", integer=True, nonnegative=True)
    builder.values[chunk] = Ref(CHUNK_PLACE)
    place = tuple(ZERO if d in v.op.dims else e for d, e in enumerate(kernel.placed[v]))
    builder.conditions.append(_bool("ge", Ref(CHUNK_PLACE), Number(1)))
    before = builder.load(v.op.start, (chunk - 1, *place))
    builder.conditions.pop()
    return before


def _store_partials(kernel: Kernel, builder: Builder, chunk: Expr, pair: sympy.Symbol | None = None) -> list[Statement]:
    """What the program's chunk, number ``chunk``, comes to, each at its place; at the second one of a ``pair`` what no element comes to."""
    wholes = kernel.stores[len(kernel.stores) - len(kernel.partials) :]
    found: list[Statement] = []
    for partial, (whole, index) in zip(kernel.partials, wholes, strict=True):
        result = builder.reduced[whole]
        if pair is None:
            found.append(_store_partial(kernel, builder, chunk, partial, whole, index, result))
            continue
        none = Number(MONOIDS[fold_of(whole).kind].neutral)
        for place, there in enumerate((result, none)):
            at = tuple(e.xreplace({pair: sympy.Integer(place)}) for e in index)
            found.append(_store_partial(kernel, builder, chunk, partial, whole, at, there))
    return found


def _store_partial(
    kernel: Kernel, builder: Builder, chunk: Expr, partial: Value, whole: Value, index: Index, result: Expr
) -> Store:
    results = total(kernel.domain, kernel.domain.kept)
    where = chunk
    if results != ONE:
        within = builder.index(offset(index, whole.shape))
        where = apply("mul", where, builder.arguments.size(results))
        where = where if within == Number(0) else plus(where, within)
    return Store(builder.arguments.outputs[partial], where, result, builder.masks(where.axes))


def _loop(tiling: Tiling, inner: list[Statement]) -> For:
    variable = tiling.reduced.variable if tiling.step is None else START
    return For(variable, tiling.begin, tiling.end, tiling.step, (*tiling.loop, *inner))


def _bool(function: str, *operands: Expr) -> Apply:
    return apply(function, *operands, dtype=torch.bool)
