"""Changes to the graph before planning: equal values become one, and equal results copies."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..graph.lowered import Graph
from ..graph.order import topological
from ..graph.value import Exact, Input, Pointwise, Recurrence, Sample, TorchCall, Value, viewed


def share(graph: Graph) -> None:
    """Merge values that compute the same thing (common subexpressions). What forward returns as two tensors stays two tensors."""
    memory = {leaf: viewed(leaf) for leaf in graph.output_leaves if isinstance(leaf, Value)}
    known: dict[Any, Value] = {}
    replaced: dict[Value, Value] = {}
    for value in topological(graph.outputs):
        _replace_operands(value, replaced)
        if isinstance(value.op, Input | TorchCall | Sample):  # a sample is of its own product's sums, too
            continue
        key = (type(value.op), value.shape, value.dtype, _fields(value.op))
        first = known.setdefault(key, value)
        if first is not value:
            replaced[value] = first
            first.meaning = first.meaning or value.meaning
            first.name = first.name or value.name
            first.node = first.node or value.node
            first.module = first.module or value.module
    graph.updates = {buffer: replaced.get(v, v) for buffer, v in graph.updates.items()}
    copies = _copies(graph, replaced, memory)
    replaced |= copies
    graph.outputs = list(dict.fromkeys(replaced.get(v, v) for v in graph.outputs))
    graph.output_leaves = [replaced.get(v, v) if isinstance(v, Value) else v for v in graph.output_leaves]


def _copies(graph: Graph, replaced: dict[Value, Value], memory: dict[Value, Value]) -> dict[Value, Value]:
    """For each result of forward that was merged with another one a copy, so that each has memory of its own. Keys: the results before ``replaced``.

    ``memory``: the value in whose memory each result was.
    """
    own = len(graph.output_leaves) - sum(one.leaf is not None for one in graph.assigned)  # then attributes follow
    taken: dict[Value, Value] = {}
    copies: dict[Value, Value] = {}
    for leaf in graph.output_leaves[:own]:
        if isinstance(leaf, Value) and not leaf.dtype.is_complex:
            kept = replaced.get(leaf, leaf)
            if taken.setdefault(viewed(kept), memory[leaf]) is not memory[leaf]:
                copies[leaf] = Value(Pointwise("identity", (kept,)), kept.shape, kept.dtype, kept.name or "copy")
    return copies


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
        elif isinstance(item, Exact):
            item.peaks, product = swap(item.peaks), item.product
            product.left, product.right = swap(product.left), swap(product.right)
        elif isinstance(item, Recurrence):
            item.first, item.given = swap(item.first), swap(item.given)
        else:
            setattr(op, f.name, swap(item))
    if value.meaning is not None:  # formulas name the values that are kept
        value.meaning = (value.meaning[0], swap(value.meaning[1]))
