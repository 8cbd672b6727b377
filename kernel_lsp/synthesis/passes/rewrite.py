"""Changes to the graph before planning: equal values become one, long reductions of few results are split."""

from __future__ import annotations

import dataclasses
from typing import Any

import sympy

from ..graph.maps import squeeze
from ..graph.sizes import ONE
from ..graph.value import (
    Contract,
    Graph,
    Input,
    Partial,
    Recurrence,
    Reduce,
    Scan,
    TorchCall,
    Value,
    View,
    numel,
    topological,
)

#: A reduction with fewer results than SPLIT_RESULTS of more than SPLIT_LENGTH elements each leaves most of a GPU
#: idle with one program per result, so it runs in chunks of CHUNK elements and a second kernel reduces those.
SPLIT_RESULTS, SPLIT_LENGTH, CHUNK = 128, 32768, 16384


def share(graph: Graph) -> None:
    """Merge values that compute the same thing (common subexpressions)."""
    known: dict[Any, Value] = {}
    replaced: dict[Value, Value] = {}
    for value in topological(graph.outputs):
        _replace_operands(value, replaced)
        if isinstance(value.op, Input | TorchCall):
            continue
        key = (type(value.op), value.shape, value.dtype, _fields(value.op))
        first = known.setdefault(key, value)
        if first is not value:
            replaced[value] = first
            first.meaning = first.meaning or value.meaning
            first.name = first.name or value.name
            first.node = first.node or value.node
            first.module = first.module or value.module
    graph.outputs = list(dict.fromkeys(replaced.get(v, v) for v in graph.outputs))
    graph.output_leaves = [replaced.get(v, v) if isinstance(v, Value) else v for v in graph.output_leaves]


def _fields(op: Any) -> tuple[Any, ...]:
    return tuple(_hashable(getattr(op, f.name)) for f in dataclasses.fields(op))


def _hashable(item: Any) -> Any:
    if isinstance(item, list | tuple):
        return tuple(_hashable(i) for i in item)
    if isinstance(item, float | int) and not isinstance(item, bool):
        return (type(item).__name__, repr(item))
    if dataclasses.is_dataclass(item) and not isinstance(item, Value | Recurrence):
        return _fields(item)
    return item


def _replace_operands(value: Value, replaced: dict[Value, Value]) -> None:
    op = value.op

    def swap(item: Any) -> Any:
        if isinstance(item, Value):
            return replaced.get(item, item)
        if isinstance(item, list | tuple):
            return type(item)(swap(i) for i in item)
        if isinstance(item, dict):
            return {k: swap(v) for k, v in item.items()}
        return item

    for f in dataclasses.fields(op):
        item = getattr(op, f.name)
        if isinstance(item, TorchCall):
            item.args, item.kwargs = swap(item.args), swap(item.kwargs)
        elif isinstance(item, Recurrence):
            item.first, item.given = swap(item.first), swap(item.given)
        else:
            setattr(op, f.name, swap(item))
    if value.meaning is not None:  # formulas name the values that are kept
        value.meaning = (value.meaning[0], swap(value.meaning[1]))


def split_long_reductions(graph: Graph, hints: dict[sympy.Symbol, int]) -> dict[sympy.Symbol, sympy.Expr]:
    """Split what would run in too few programs. Returns the number-of-chunks symbols with the length of each."""
    chunks: dict[sympy.Symbol, sympy.Expr] = {}
    for value in topological(graph.outputs):
        op = value.op
        if isinstance(op, Scan):
            _split_scan(value, op, hints, chunks)
            continue
        if not isinstance(op, Reduce) or op.kind not in ("sum", "max", "min", "amax", "amin"):
            continue
        length = numel(tuple(op.operand.shape[d] for d in op.dims))
        results, elements = _size(numel(value.shape), hints), _size(length, hints)
        if results >= SPLIT_RESULTS or elements <= SPLIT_LENGTH or isinstance(op.operand.op, Contract):
            continue
        symbol = _chunks_of(length, hints, chunks)
        partial = Value(Partial(op.kind, op.operand, op.dims), (symbol, *value.shape), value.dtype, "partial")
        folded = Value(Reduce(op.kind, partial, (0,)), (ONE, *value.shape), value.dtype, value.name)
        value.op = View(squeeze(folded.shape, (0,)), folded, "squeeze")
    return chunks


def _chunks_of(
    length: sympy.Expr, hints: dict[sympy.Symbol, int], chunks: dict[sympy.Symbol, sympy.Expr]
) -> sympy.Symbol:
    symbol = sympy.Symbol(f"n_chunks{len(chunks) or ''}", integer=True, positive=True)
    chunks[symbol] = length
    hints[symbol] = -(-_size(length, hints) // CHUNK)
    return symbol


def _split_scan(value: Value, op: Scan, hints: dict[sympy.Symbol, int], chunks: dict[sympy.Symbol, sympy.Expr]) -> None:
    """A long sum runs in chunks: what each comes to, what comes before each, and then the scan of each from there."""
    (d,) = op.dims
    length = op.operand.shape[d]
    results = _size(numel(value.shape), hints) // max(1, _size(length, hints))
    if op.kind != "sum" or results >= SPLIT_RESULTS or _size(length, hints) <= SPLIT_LENGTH:
        return
    symbol = _chunks_of(length, hints, chunks)
    each = (*value.shape[:d], ONE, *value.shape[d + 1 :])
    partial = Value(Partial("sum", op.operand, op.dims), (symbol, *each), value.dtype, "partial")
    op.start = Value(Scan("sum", partial, (0,)), partial.shape, value.dtype, "ends")


def _size(expr: sympy.Expr, hints: dict[sympy.Symbol, int]) -> int:
    return int(expr.subs(hints)) if expr.free_symbols else int(expr)
