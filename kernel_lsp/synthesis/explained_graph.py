"""The graph after the passes as plain data: its sizes, its values, and what stays with torch and why."""

from __future__ import annotations

from typing import Any

import sympy
from torch.export import ExportedProgram

from kernel_lsp.size_text import python

from .graph.functions import literal
from .graph.lowered import Fault, Graph
from .graph.names import Names, variable_name
from .graph.order import topological
from .graph.value import (
    Concat,
    Contract,
    Fold,
    Gather,
    Given,
    Input,
    Iota,
    Partial,
    Peak,
    Pointwise,
    Recur,
    Reduce,
    Sample,
    Scalar,
    Scan,
    TorchCall,
    Value,
    View,
    operands,
)
from .kernel.execution_plan import Lowered
from .operators.registry import OPERATORS
from .printing.formula import formula

#: A formula that is longer is not written out in those that it is a part of.
_LONGEST_PART = 60


class ValueNames:
    """A name for each value of a graph, each once. What the graph has no value for (a part of one) is named when asked."""

    def __init__(self, graph: Graph) -> None:
        self._names = Names()
        self._given: dict[Value, str] = {}
        for value in dict.fromkeys([*graph.inputs, *topological(graph.outputs)]):
            self[value]

    def __getitem__(self, value: Value) -> str:
        if value not in self._given:
            self._given[value] = self._names.fresh(_wanted(value))
        return self._given[value]


def _wanted(value: Value) -> str:
    """As the host function calls it."""
    if not isinstance(value.op, TorchCall) or value.op.is_view:
        return variable_name(value)
    which = "" if value.op.output is None else f"_{value.op.output}"
    return f"{_operator(value.op).split('.')[-2]}_result{which}"


def graph_stage(exported: ExportedProgram, found: Lowered, names: ValueNames) -> dict[str, Any]:
    """The graph as JSON data. ``names`` are those of its values."""
    graph = found.graph
    return {
        "sizes": _sizes(found),
        "values": _values(graph, names),
        "outputs": [names[v] for v in graph.outputs],
        "torch": _kept(exported, graph, names),
        "conditions": [
            *(f"{python(a, {})} == {python(b, {})}" for a, b in graph.equal),
            *(str(relation) for relation in graph.assumed),
            *(f"{python(size, {})} != 1" for size in graph.not_one),
        ],
    }


def _sizes(found: Lowered) -> list[dict[str, Any]]:
    """Each size symbol: where it is read or what it stands for, its value for the example, and its range."""
    graph = found.graph
    read: dict[sympy.Symbol, str] = {}
    for value in graph.inputs:
        assert isinstance(value.op, Input)
        for d, n in enumerate(value.shape):
            if isinstance(n, sympy.Symbol):
                read.setdefault(n, f"{value.op.source}.shape[{d}]")
    stands = {symbol: python(expr, {}) for symbol, expr in found.defined.items()}
    stands |= {symbol: f"ceil({python(length, {})} / {size})" for symbol, (length, size) in found.chunks.items()}
    return [
        {
            "symbol": symbol.name,
            "is": stands.get(symbol) or read.get(symbol, ""),
            "named": symbol in stands,
            "example": graph.hints.get(symbol),
            "range": list(graph.ranges[symbol]) if symbol in graph.ranges else None,
        }
        for symbol in dict.fromkeys([*read, *stands])
    ]


def _values(graph: Graph, names: ValueNames) -> list[dict[str, Any]]:
    known: dict[Value, str] = {}  # what formulas name
    result = []
    for value in topological(graph.outputs):
        if isinstance(value.op, Input):
            known[value] = names[value]
        text = formula(value, known)
        if len(text) > _LONGEST_PART or isinstance(value.op, TorchCall):
            known[value] = names[value]
        result.append(
            {
                "name": names[value],
                "op": type(value.op).__name__,
                "text": _op(value, names),
                "operands": [names[v] for v in operands(value)],
                "shape": [python(n, {}) for n in value.shape],
                "dtype": str(value.dtype).removeprefix("torch."),
                "formula": text,
                "node": value.node,
                "view": _view(value),
            }
        )
    return result


def _view(value: Value) -> dict[str, Any] | None:
    """The map of a view: the operand's index of each element, the guard, and the pad outside of it."""
    if not isinstance(value.op, View):
        return None
    map = value.op.map
    return {
        "name": value.op.name,
        "index": [python(e, {}) for e in map.index],
        "guard": [f"{python(low, {})} <= {python(e, {})} < {python(high, {})}" for e, low, high in map.guard],
        "pad": None if map.pad is None else literal(map.pad),
    }


def _op(value: Value, names: ValueNames) -> str:
    """The operation with its operands by their names."""
    op = value.op
    if isinstance(op, Input):
        return f"{op.kind} {op.source}"
    if isinstance(op, Pointwise):
        return f"{op.function}({', '.join(_operand(o, names) for o in op.operands)})"
    if isinstance(op, View):
        return f"{op.name}({names[op.operand]})"
    if isinstance(op, Fold | Partial):
        kind = {Scan: "scan", Partial: "partial"}.get(type(op), "reduce")
        start = f", start={names[op.start]}" if isinstance(op, Scan) and op.start is not None else ""
        part = f" {op.part} of" if isinstance(op, Reduce | Partial) and op.part else ""
        return f"{kind}{part} {op.kind}({names[op.operand]}, dims={list(op.dims)}{start})"
    if isinstance(op, Concat):
        return f"cat({', '.join(names[v] for v in op.operands)}, dim={op.dim})"
    if isinstance(op, Gather):
        return f"gather {op.kind}({names[op.table]}, {names[op.index]}, dim={op.dim})"
    if isinstance(op, Iota):
        return f"iota(dim={op.dim}, start={python(op.start, {})}, step={python(op.step, {})})"
    if isinstance(op, Contract):
        outer = f", outer {op.outer}" if op.outer else ""
        exact = f", exact where {' or '.join(names[p] for p in op.exact.peaks)} is out of range" if op.exact else ""
        if op.exact and op.exact.sides:
            exact += f" or a side is below {op.exact.least_side}"
        return f"contract({names[op.left]}, {names[op.right]}, {op.left_axes},{op.right_axes}->{op.axes}{outer}{exact})"
    if isinstance(op, Peak):
        return f"peak({names[op.rounded]})"
    if isinstance(op, Sample):
        return f"sample({names[op.operand]})"
    if isinstance(op, Recur):
        return _recurrence(op, names)
    assert isinstance(op, TorchCall)
    call = op.call or op
    given = [_operand(a, names) for a in call.args] + [f"{k}={_operand(v, names)}" for k, v in call.kwargs.items()]
    which = "" if op.output is None else f"[{op.output}]"
    return f"torch {_operator(op)}({', '.join(given)}){which}"


def _recurrence(op: Recur, names: ValueNames) -> str:
    """Which state of what recurrence, and the formulas of a step."""
    loop = op.loop
    known = {v: v.name or "state" for v in loop.held}
    for part, given in zip(loop.parts, loop.given, strict=True):
        each = isinstance(part.op, Given) and part.op.along is not None
        known[part] = f"{names[given]}[t]" if each else names[given]
    body = []
    for value in topological(list(loop.next)):
        if value.name and value not in known:
            body.append(f"{value.name} = {formula(value, known)}")
            known[value] = value.name
    first = ", ".join(names[v] for v in loop.first)
    when = "each step" if op.each else "the last step"
    how = ", backward" if loop.backward else ""
    steps = f"{python(loop.steps, {})} steps{how}"
    return f"recur {loop.name or 'loop'}: {known[loop.held[op.state]]} after {when} of {steps} from ({first}): {'; '.join(body)}"


def _operand(item: Any, names: ValueNames) -> str:
    if isinstance(item, Value):
        return names[item]
    if isinstance(item, Scalar):
        return python(item.expr, {})
    if isinstance(item, list | tuple):
        inner = ", ".join(_operand(i, names) for i in item)
        return f"[{inner}]" if isinstance(item, list) else f"({inner})"
    return literal(item) if isinstance(item, float) else str(item)


def _operator(op: TorchCall) -> str:
    return (op.call or op).target.removeprefix("torch.").removeprefix("ops.")


def _kept(exported: ExportedProgram, graph: Graph, names: ValueNames) -> list[dict[str, Any]]:
    """The operators that stay with torch, each call once, with the reason."""
    nodes = {node.name: node for node in exported.graph.nodes}
    result: dict[int, dict[str, Any]] = {}
    for value in topological(graph.outputs):
        if not isinstance(value.op, TorchCall) or value.op.is_view:
            continue
        call = value.op.call or value.op
        if id(call) in result:
            result[id(call)]["values"].append(names[value])
            continue
        operator = _operator(call)
        meta = nodes[value.node].meta if value.node in nodes else {}
        result[id(call)] = {
            "operator": operator,
            "node": value.node,
            "values": [names[value]],
            "why": _why(operator, meta.get("not_lowered", ""), graph.faults),
        }
    return list(result.values())


def _why(operator: str, not_lowered: str, faults: list[Fault]) -> str:
    """Why an operator stays with torch."""
    packet = ".".join(operator.split(".")[:2])
    for fault in faults:
        if fault.operator == packet:
            return f"its lowering failed, which is a bug: {fault.message} ({fault.file}, line {fault.line})"
    if packet not in OPERATORS:
        return "no lowering is registered for it" + (
            f", and its definition stops at: {not_lowered}" if not_lowered else ""
        )
    return not_lowered or "it was left to torch"
