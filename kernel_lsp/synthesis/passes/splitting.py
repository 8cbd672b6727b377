"""Long reductions and scans of few results in chunks, so that more programs than one run for each result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy
import torch

from ..graph.build import Build
from ..graph.early_reductions import Early, early
from ..graph.lowered import Graph
from ..graph.maps import squeeze
from ..graph.monoids import MONOIDS, Monoid, Term, kind_of, mentions
from ..graph.order import topological
from ..graph.sizes import ONE, power_of_two_within, same
from ..graph.value import Partial, Reduce, Scan, Value, View, numel

#: A reduction with fewer results than SPLIT_RESULTS of more than SPLIT_LENGTH elements each leaves most of a GPU
#: idle with one program per result, so it runs in chunks of CHUNK elements and a second kernel reduces those.
SPLIT_RESULTS, SPLIT_LENGTH, CHUNK = 128, 32768, 16384

#: The columns that a program takes at once where it reduces over rows, of which a chunk has fewer then; the least it has.
_COLUMNS = 32
SHORTEST_CHUNK = CHUNK // _COLUMNS


#: The symbol of each number of chunks → what is cut, and the elements of a chunk.
Chunks = dict[sympy.Symbol, tuple[sympy.Expr, int]]

_COMPARISONS = frozenset(["eq", "ne", "lt", "gt", "and", "or"])


def split_long_reductions(
    graph: Graph, hints: dict[sympy.Symbol, int], chunks: Chunks, whole: Iterable[Value] = ()
) -> None:
    """Split what would run in too few programs, but for ``whole``. ``chunks`` gets the symbols of how many chunks there are."""
    order = topological(graph.outputs)
    left = set(whole)
    long = [value for value in order if value not in left and _is_long(value, hints)]
    parts: dict[int, dict[str, Value]] = {}  # of each early fold, what its chunks carry on
    folds = _early_folds(long)
    for value in order:
        op = value.op
        if isinstance(op, Scan):
            _split_scan(value, op, hints, chunks)
        elif value in long:
            assert isinstance(op, Reduce)
            found = folds.get(value)
            if found is not None:
                if id(found) not in parts:
                    parts[id(found)] = _partials(MONOIDS[found.kind], found.kind, found.element, value, hints, chunks)
                known, name = parts[id(found)], next(n for n, v in found.results.items() if v is value)
                put_together(value, MONOIDS[found.kind], {**known, "about": found.about}, name)
                continue
            kind = kind_of(op.kind, floating=op.operand.dtype.is_floating_point)
            if MONOIDS[kind].gather:
                known = _partials(MONOIDS[kind], kind, op.operand, value, hints, chunks)
            else:
                known = {"acc": _partial(op.kind, op.operand, value, value.dtype, hints, chunks)}
            put_together(value, MONOIDS[kind], known, "result")


def _is_long(value: Value, hints: dict[sympy.Symbol, int]) -> bool:
    op = value.op
    if not isinstance(op, Reduce):
        return False
    elements = _size(numel(tuple(op.operand.shape[d] for d in op.dims)), hints)
    return _size(numel(value.shape), hints) < SPLIT_RESULTS and elements > SPLIT_LENGTH


def _early_folds(long: list[Value]) -> dict[Value, Early]:
    """Of the split reductions those that need not wait for another of the same elements, and the maxima that they carry."""
    found: dict[Value, Early] = {}
    for value in long:
        one = early(value, long)
        if one is None or (highest := one.results.get("highest")) in found:
            continue
        before = set(topological([one.about]))
        if any(isinstance(v.op, Reduce) and v.op.operand is one.element and v in before for v in long):
            found[value] = one
            if highest is not None:
                found[highest] = one
    return found


def _partials(
    monoid: Monoid,
    kind: str,
    element: Value,
    value: Value,
    hints: dict[sympy.Symbol, int],
    chunks: Chunks,
) -> dict[str, Value]:
    """What each chunk of ``element`` carries on, by its key."""
    own = element.dtype if element.dtype in (torch.float64, torch.int64, torch.int32) else torch.float32
    return {
        c.key: _partial(kind, element, value, torch.int32 if c.holds == "place" else own, hints, chunks, c.key)
        for c in monoid.of_lanes
    }


def _partial(
    kind: str,
    element: Value,
    value: Value,
    dtype: torch.dtype,
    hints: dict[sympy.Symbol, int],
    chunks: Chunks,
    part: str = "",
) -> Value:
    op = value.op
    assert isinstance(op, Reduce)
    over_rows = len(element.shape) - 1 not in op.dims
    length = CHUNK // min(_COLUMNS, power_of_two_within(_size(element.shape[-1], hints))) if over_rows else CHUNK
    symbol = chunks_of(numel(tuple(element.shape[d] for d in op.dims)), length, hints, chunks)
    name = f"partial_{part}" if part else "partial"
    return Value(Partial(kind, element, op.dims, length, part), (symbol, *value.shape), dtype, name)


def put_together(
    value: Value, monoid: Monoid, known: dict[str, Value], name: str, dims: tuple[int, ...] = (0,)
) -> None:
    """Make ``value`` the monoid's result ``name`` of what its chunks carried on.

    ``known``: that, of shape [chunks, *value's], and where ``dims`` are more than the first dimension, larger along these.
    """
    terms: dict[str, Any] = dict(known)
    for step, term in monoid.finish:
        if step != name and (step in monoid.results or mentions(term, {"about"} - terms.keys())):
            continue
        made = _made(term, terms, dims)
        if step == name:
            made.name, made.dtype = value.name, value.dtype
            value.op = View(squeeze(made.shape, (0,)), made, "squeeze")
            return
        terms[step] = made


def _made(term: Term, known: dict[str, Any], dims: tuple[int, ...]) -> Any:
    """A term as a value: of shape [chunks, *result], or with size one along ``dims`` where it is folded."""
    if isinstance(term, str):
        return known[term]
    if not isinstance(term, tuple):
        return term
    function, *rest = term
    operands = [_made(part, known, dims) for part in rest]
    if function.startswith("fold."):
        (operand,) = operands
        shape = tuple(ONE if d in dims else n for d, n in enumerate(operand.shape))
        return Value(Reduce(function.removeprefix("fold."), operand, dims), shape, operand.dtype)
    if function in _COMPARISONS:
        return Build.pointwise(function, *operands, dtype=torch.bool)
    if function == "to_int32":
        return Build.pointwise(function, *operands, dtype=torch.int32)
    if function == "where":
        return Build.pointwise(function, *operands, dtype=next(o.dtype for o in operands[1:] if isinstance(o, Value)))
    return Build.pointwise(function, *operands)


def chunks_of(length: sympy.Expr, size: int, hints: dict[sympy.Symbol, int], chunks: Chunks) -> sympy.Symbol:
    """The symbol of how many chunks of ``size`` elements ``length`` has."""
    if (known := next((s for s, (n, m) in chunks.items() if m == size and same(n, length)), None)) is not None:
        return known
    symbol = sympy.Symbol(f"n_chunks{len(chunks) or ''}", integer=True, positive=True)
    chunks[symbol] = (length, size)
    hints[symbol] = -(-_size(length, hints) // size)
    return symbol


def _split_scan(value: Value, op: Scan, hints: dict[sympy.Symbol, int], chunks: Chunks) -> None:
    """A long sum runs in chunks: what each comes to, what comes before each, and then the scan of each from there."""
    (d,) = op.dims
    length = op.operand.shape[d]
    results = _size(numel(value.shape), hints) // max(1, _size(length, hints))
    if op.kind != "sum" or results >= SPLIT_RESULTS or _size(length, hints) <= SPLIT_LENGTH:
        return
    symbol = chunks_of(length, CHUNK, hints, chunks)
    each = (*value.shape[:d], ONE, *value.shape[d + 1 :])
    partial = Value(Partial("sum", op.operand, op.dims, CHUNK), (symbol, *each), value.dtype, "partial")
    op.start = Value(Scan("sum", partial, (0,)), partial.shape, value.dtype, "ends")


def _size(expr: sympy.Expr, hints: dict[sympy.Symbol, int]) -> int:
    return int(expr.subs(hints)) if expr.free_symbols else int(expr)
