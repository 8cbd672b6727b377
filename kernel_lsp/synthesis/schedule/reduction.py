"""Reductions and everything that shares their pass: norms, softmax, losses, sums over any dims."""

from __future__ import annotations

import sympy
import torch

from ..graph.build import opmath
from ..graph.functions import NEUTRAL
from ..graph.monoids import MONOIDS
from ..graph.names import variable_name
from ..graph.sizes import ONE, ZERO, Index, offset
from ..graph.value import Fold as GraphFold
from ..graph.value import Reduce, Scan, Value, operands
from ..kernel.arguments import Arguments
from ..kernel.build import Builder, masked, spread
from ..kernel.ir import (
    Add,
    Apply,
    Arange,
    AxisIndex,
    Expr,
    Fold,
    For,
    Full,
    Number,
    PrefixScan,
    Ref,
    Set,
    Statement,
    Store,
    apply,
    plus,
)
from ..kernel.steps import Hints, Kernel, fold_operand_index
from .extents import total
from .program import Program, fixed
from .schedules import Columns, Passes, Rows, Unrolled
from .tilings import CHUNK_PLACE, START, Tiling, column_tiling, row_tiling, unrolled_tiling

#: A place after all others.
_NOWHERE = 2147483647


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
    outputs = kernel.outputs
    for v in outputs:
        arguments.outputs[v] = arguments.variable(
            f"{variable_name(v)}_ptr" if len(outputs) > 1 or kernel.partial else "out_ptr"
        )
    if isinstance(schedule, Columns):
        tiling = column_tiling(kernel, program, hints, schedule)
    elif isinstance(schedule, Unrolled):
        tiling = unrolled_tiling(kernel, program, schedule)
    else:
        tiling = row_tiling(kernel, program, hints, schedule)
    builder = Builder(kernel.domain, tiling.axes, arguments, stored, kernel.placed)
    builder.reduced_axis = tiling.reduced
    run = _in_one_tile if tiling.reduced.role == "tile" else _in_passes
    program.body = [*tiling.statements, *run(kernel, builder, tiling)]
    return program


def _in_one_tile(kernel: Kernel, builder: Builder, tiling: Tiling) -> list[Statement]:
    for v in kernel.folds:
        builder.count(_fold_of(v).operand, _operand_index(kernel, v))
    for v, index in kernel.stores:
        builder.count(v, index)
    for v in kernel.folds:
        op = _fold_of(v)
        if isinstance(op, Scan):
            builder.reduced[v] = _scanned_tile(kernel, builder, v, tiling)
            continue
        term = _masked(_operand(kernel, builder, v), v, tiling)
        if _keeps_nan(v) and not isinstance(term, Ref):
            term = builder.assign(variable_name(op.operand), term, op.operand.dtype)
        result: Expr = _fold(op.kind, term, v, tiling)
        if builder.uses.get(builder.key(v, kernel.placed[v]), 1) > 1 or v.name:
            result = builder.assign(variable_name(v), result, v.dtype)
        builder.reduced[v] = result
    builder.pad_hint = 0.0
    for v, index in kernel.stores:
        builder.store(v, index)
    return builder.lines


def _fold_of(v: Value) -> GraphFold:
    assert isinstance(v.op, GraphFold)
    return v.op


def _fold(kind: str, term: Expr, v: Value, tiling: Tiling) -> Expr:
    """``term`` reduced over the tile; where a NaN is kept it is a name, since Triton's max, min and argmax drop NaN."""
    if tiling.reduced.role == "unrolled":
        return term  # there is one lane a result
    return Fold(kind, term, tiling.reduced, tiling.place, tiling.rank == 2, _keeps_nan(v), v.dtype)


def _keeps_nan(v: Value) -> bool:
    op = _fold_of(v)
    return op.operand.dtype.is_floating_point and op.kind in ("amax", "amin", "argmax", "argmin")


def _operand_index(kernel: Kernel, v: Value) -> Index:
    return fold_operand_index(kernel, v, kernel.placed[v])


def _operand(kernel: Kernel, builder: Builder, v: Value) -> Expr:
    op = _fold_of(v)
    builder.pad_hint = NEUTRAL[op.kind]
    return builder.value(op.operand, _operand_index(kernel, v))


def _neutral(v: Value) -> float | int:
    """The number that a reduction's masked lanes hold, in its operand's dtype."""
    op = _fold_of(v)
    number, dtype = NEUTRAL[op.kind], op.operand.dtype
    if dtype.is_floating_point:
        return number
    if number == 0.0 or dtype == torch.bool:
        return 0
    limits = torch.iinfo(dtype)
    return limits.min if number < 0 else limits.max


def _masked(term: Expr, v: Value, tiling: Tiling) -> Expr:
    """``term`` with the reduction's neutral element in lanes beyond the end, unless it has it already."""
    neutral, mask = _neutral(v), tiling.reduced.mask
    if tiling.reduced.role == "unrolled":
        return term
    if tiling.reduced in term.axes and term.pad == neutral:
        return term
    term = spread(term, tiling.reduced)  # an expanded value does not vary along the reduced axis
    return term if mask is None else masked(term, mask, neutral, _fold_of(v).operand.dtype)


def _levels(kernel: Kernel) -> list[list[Value]]:
    """Reductions grouped by how many others each waits for."""

    def depth(v: Value, seen: dict[Value, int]) -> int:
        if v in seen:
            return seen[v]
        below = [depth(o, seen) for o in operands(v)] if not _is_leaf(kernel, v) else []
        seen[v] = max(below, default=0) + (1 if v in reductions else 0)
        return seen[v]

    reductions = [v for v in kernel.folds if isinstance(v.op, Reduce)]  # a scan runs in the loop that uses it
    seen: dict[Value, int] = {}
    level = {v: depth(v, seen) for v in reductions}
    return [[v for v in reductions if level[v] == n] for n in sorted(set(level.values()))]


def _is_leaf(kernel: Kernel, v: Value) -> bool:
    return v in kernel.leaves and v not in kernel.folds


def _in_passes(kernel: Kernel, builder: Builder, tiling: Tiling) -> list[Statement]:
    """One loop over the reduced extent per level of dependent reductions, and one to store what varies along it."""
    body: list[Statement] = []
    builder.scan = lambda v: _scan_along(kernel, builder, v, tiling)
    for level in _levels(kernel):
        _next_pass(builder, tiling)
        for v in level:
            builder.count(_fold_of(v).operand, _operand_index(kernel, v))
        starts: list[Statement] = []
        ends: list[tuple[Value, Expr]] = []
        for v in level:
            start, update, end = _accumulate(kernel, builder, v, tiling)
            starts += start
            builder.inner += update
            ends.append((v, end))
        body += [*builder.lines, *starts, _loop(tiling, builder.inner)]
        builder.lines = []
        for v, end in ends:
            builder.reduced[v] = end if isinstance(end, Ref) else builder.assign(variable_name(v), end, v.dtype)
        body += builder.lines
    _next_pass(builder, tiling)
    builder.pad_hint = 0.0
    if kernel.partial is not None:
        return [*body, _store_partial(kernel, builder, kernel.partial)]
    for v, index in kernel.stores:
        builder.count(v, index)
    for v, index in kernel.stores:
        builder.store(v, index)
    return body + builder.lines + ([_loop(tiling, builder.inner)] if builder.inner else [])


def _next_pass(builder: Builder, tiling: Tiling) -> None:
    """Forget what varies along the reduced axis: the next loop loads and computes it again."""
    builder.lines, builder.inner, builder.uses = [], [], {}
    builder.memo = {key: term for key, term in builder.memo.items() if tiling.reduced not in term.axes}


def _scanned_tile(kernel: Kernel, builder: Builder, v: Value, tiling: Tiling) -> Expr:
    """A scan of a whole tile. What lies beyond the end comes after all that counts, and needs no mask."""
    return builder.assign(variable_name(v), _scanned(kernel, builder, v, tiling), v.dtype)


def _scanned(kernel: Kernel, builder: Builder, v: Value, tiling: Tiling) -> PrefixScan:
    op = _fold_of(v)
    builder.pad_hint = MONOIDS[op.kind].neutral
    term = spread(builder.value(op.operand, _operand_index(kernel, v)), tiling.reduced)
    return PrefixScan(op.kind, term, tiling.reduced, tiling.place, v.dtype)


def _scan_along(kernel: Kernel, builder: Builder, v: Value, tiling: Tiling) -> Expr:
    """A scan inside the loop along it: each block from where the one before it ended."""
    block, monoid = _scanned(kernel, builder, v, tiling), MONOIDS[_fold_of(v).kind]
    carry = builder.arguments.variable("carry")
    sizes = tuple(None if d == tiling.place else name for d, name in enumerate(tiling.shape))
    kept = tiling.vectors - {tiling.reduced}
    start: Expr = Full(sizes if tiling.rank > 1 else (), monoid.neutral, opmath(v.dtype), kept)
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
    return Fold("sum", alone, tiling.reduced, tiling.place, tiling.rank == 2, False, v.dtype)


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


def _store_partial(kernel: Kernel, builder: Builder, partial: Value) -> Store:
    ((whole, index),) = kernel.stores
    results = total(kernel.domain, kernel.domain.kept)
    where: Expr = Ref(CHUNK_PLACE)
    if results != ONE:
        within = builder.index(offset(index, whole.shape))
        where = apply("mul", where, builder.arguments.size(results))
        where = where if within == Number(0) else plus(where, within)
    return Store(builder.arguments.outputs[partial], where, builder.reduced[whole], builder.masks(where.axes))


def _loop(tiling: Tiling, inner: list[Statement]) -> For:
    variable = tiling.reduced.variable if tiling.step is None else START
    return For(variable, tiling.begin, tiling.end, tiling.step, (*tiling.loop, *inner))


def _accumulate(
    kernel: Kernel, builder: Builder, v: Value, tiling: Tiling
) -> tuple[list[Statement], list[Statement], Expr]:
    """(before the loop, inside it, the result after it) for one reduction; one accumulator per lane."""
    op = _fold_of(v)
    term = _masked(_operand(kernel, builder, v), v, tiling)
    dtype = op.operand.dtype if op.operand.dtype in (torch.float64, torch.int64, torch.int32) else torch.float32
    if op.kind == "sum" and v.dtype == torch.int64:
        dtype = torch.int64
    if op.kind.startswith("arg"):
        return _accumulate_position(builder, v, term, dtype, tiling)
    running = builder.arguments.variable(f"{variable_name(v)}_acc")
    start = Set(running, _tile_of(tiling, _neutral(v), dtype))
    held = Ref(running, start.value.axes, dtype)
    if op.kind == "sum":
        update: Statement = Add(running, term)
    else:
        function = ("maximum" if op.kind.endswith("max") else "minimum") + ("" if _keeps_nan(v) else "_int")
        update = Set(running, apply(function, held, term, dtype=dtype))
    return [start], [update], _fold(op.kind, held, v, tiling)


def _tile_of(tiling: Tiling, number: float | int, dtype: torch.dtype) -> Full:
    return Full(tiling.shape, number, dtype, tiling.vectors)


def _accumulate_position(
    builder: Builder, v: Value, term: Expr, dtype: torch.dtype, tiling: Tiling
) -> tuple[list[Statement], list[Statement], Expr]:
    """As ``_accumulate`` for argmax and argmin: the best of each lane and where it is."""
    variable = builder.arguments.variable
    best, at, better = variable("best"), variable("best_at"), fixed("better")
    starts: list[Statement] = [
        Set(best, _tile_of(tiling, _neutral(v), dtype)),
        Set(at, _first_places(tiling)),
    ]
    shape = tiling.vectors
    held, place = Ref(best, shape, dtype), Ref(at, shape)
    updates: list[Statement] = []
    if not isinstance(term, Ref):
        candidate = variable("candidate")
        updates, term = [Set(candidate, term)], Ref(candidate, shape, dtype)
    kind = _fold_of(v).kind
    first = _bool("gt" if kind == "argmax" else "lt", term, held)
    if _keeps_nan(v):  # the first NaN counts as the greatest, and as the least
        first = _bool("or", first, _bool("and", _bool("ne", term, term), _bool("eq", held, held)))
    wins = Ref(better, shape, torch.bool)
    updates += [
        Set(better, first),
        Set(best, apply("where", wins, term, held, dtype=dtype)),
        Set(at, apply("where", wins, AxisIndex(tiling.reduced), place)),
    ]
    return starts, updates, _first_of_best(kind.removeprefix("arg"), held, place, v, tiling)


def _first_places(tiling: Tiling) -> Expr:
    """The first place of each lane, which is the best where nothing is better than the least number there is."""
    none = _tile_of(tiling, 0, torch.int32)
    if tiling.step is None:
        return none
    lane = (tiling.place, tiling.rank) if tiling.rank > 1 else None
    first = Arange(tiling.step, tiling.reduced, lane)
    return apply("add", none, first) if tiling.rank > 1 else first


def _bool(function: str, *operands: Expr) -> Apply:
    return apply(function, *operands, dtype=torch.bool)


def _first_of_best(kind: str, held: Ref, place: Ref, v: Value, tiling: Tiling) -> Expr:
    """The least place among the lanes that hold the best of all."""
    if tiling.reduced.role == "unrolled":
        return place
    top = Fold(kind, held, tiling.reduced, tiling.place, True, False, held.dtype)
    found = _bool("eq", held, top)
    if _keeps_nan(v):
        missing = _bool("ne", held, held)
        flags = Apply("to_int32", (missing,), torch.int32)
        any_missing = _bool("gt", Fold("max", flags, tiling.reduced, tiling.place, True, False, torch.int32), Number(0))
        found = Apply("where", (any_missing, missing, found), torch.bool)
    places = apply("where", found, place, Number(_NOWHERE))
    return Fold("min", places, tiling.reduced, tiling.place, tiling.rank == 2, False, torch.int32)
