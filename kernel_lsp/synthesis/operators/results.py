"""The results of forward, and the buffers and attributes that it updates, from the output of an exported graph."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind

from kernel_lsp.naming import attribute

from ..attributes import Kept
from ..attributes import of as attributes_of
from ..graph.lowered import Assigned, Graph
from ..graph.value import Input, Pointwise, Value, View, input_of, viewed
from . import complex_numbers, constants, data_dependence
from .untraceable import Untraceable

_ATEN = torch.ops.aten
_COPIES = frozenset((_ATEN.contiguous.default, _ATEN.clone.default))
_RECURRENT = frozenset((_ATEN.lstm.input, _ATEN.gru.input, _ATEN.rnn_tanh.input, _ATEN.rnn_relu.input))
#: operators that leave a tensor as it is, or copy it in the order that it has
_SAME = _COPIES | {
    _ATEN.alias.default,
    _ATEN.detach.default,
    _ATEN.to.dtype,
    _ATEN._to_copy.default,
    _ATEN.dropout.default,
}


def fill(node: Any, env: dict[Any, Any], exported: ExportedProgram, graph: Graph) -> None:
    """What forward returns, and what it makes of its buffers and attributes.

    Raises:
        Untraceable: forward changes what a kernel file cannot change.
    """
    buffers = {input_of(v).source: v for v in graph.inputs if input_of(v).kind in ("buffer", "attribute")}
    kept = attributes_of(exported)
    specs = exported.graph_signature.output_specs
    own = len(specs) - sum(one.result is not None for one in kept)  # what comes after these is in attributes
    for i, (spec, given) in enumerate(zip(specs, node.args[0], strict=True)):
        value = complex_numbers.whole(env.get(given) if isinstance(given, torch.fx.Node) else given)
        value = constants.as_tensor(value, given)
        if spec.kind is OutputKind.USER_OUTPUT or i >= own:
            graph.output_leaves.append(_row_major(value, given))
            continue
        if spec.kind is not OutputKind.BUFFER_MUTATION:
            held = spec.kind.name.startswith("PARAMETER")
            changed = attribute(spec.target) if held else spec.target
            where = data_dependence.statement(given)
            raise Untraceable("mutation", f"forward changes {changed}{where}", data_dependence.place(given))
        buffer = buffers.get(attribute(spec.target))
        if buffer is None:
            raise Untraceable(
                "mutation", f"forward adds the buffer {attribute(spec.target)}, which __init__ has to register"
            )
        if not isinstance(value, Value):
            raise Untraceable("mutation", f"forward sets the buffer {attribute(spec.target)} to a number")
        if value is not buffer:
            graph.updates[buffer] = value
            if env[_before_batch_norm(given)] is buffer:
                graph.uncounted.add(input_of(buffer).source)
    returned = [v for v in graph.output_leaves[: len(graph.output_leaves) - (len(specs) - own)] if isinstance(v, Value)]
    for one in kept:
        if one.assigned:
            graph.assigned.append(_assigned(one, graph, len(graph.output_leaves) - (len(specs) - own), returned))
    graph.carried = {attribute(one.path) for one in kept if one.given or not one.read}
    graph.looked_at = [buffers[attribute(one.path)] for one in kept if one.given and one.read]
    # What a buffer held before is copied: by the end of forward there is something else in its memory. So is what an attribute
    # held, but where eager itself returns what lies there.
    copied = {*graph.updates, *(buffers[attribute(one.path)] for one in kept if one.given and not one.handed_out)}
    graph.output_leaves = [_outlasting(v, copied) for v in graph.output_leaves]
    graph.updates = {buffer: _outlasting(v, copied) for buffer, v in graph.updates.items()}


def _before_batch_norm(node: torch.fx.Node) -> torch.fx.Node:
    """``node``, or what it was before torch's batch norm made it new running statistics, once or several times."""
    while node.target is operator.getitem:
        norm, place = node.args
        assert isinstance(norm, torch.fx.Node)
        if norm.target is not torch.ops.aten._native_batch_norm_legit_functional.default or place not in (3, 4):
            break
        node = norm.args[place]  # type: ignore[assignment, index]
    return node


def _row_major(leaf: Any, node: Any) -> Any:
    """``leaf``, or a copy in row-major order of a view that torch would take in another order, where eager's result is row-major.

    Eager's is where forward copies it, or where what it is a view of lies in another order than a kernel stores it in: as ``x + y`` does of a permuted ``x``.
    """
    if not isinstance(leaf, Value) or leaf.dtype.is_complex or not _is_turned(leaf):
        return leaf
    of_its_own = not isinstance(viewed(leaf).op, Input) and not _of_recurrent_layer(node)
    if not (of_its_own or _is_copied(node)) or not node.meta["val"].is_contiguous():
        return leaf
    return Value(Pointwise("identity", (leaf,)), leaf.shape, leaf.dtype, "contiguous")


def _of_recurrent_layer(node: Any) -> bool:
    """Whether it is a view of what a recurrent layer gives, which lies in another order than torch.export says where the batch is first."""
    while isinstance(node, torch.fx.Node) and node.op == "call_function":
        if node.target in _RECURRENT:
            return True
        schema = getattr(node.target, "_schema", None)
        if node.target is not operator.getitem and not (schema and schema.returns and schema.returns[0].alias_info):
            return False
        node = node.args[0]
    return False


def _is_turned(value: Value) -> bool:
    """Whether it is a permuted or expanded view, but for dimensions of size one."""
    while isinstance(value.op, View) and value.op.name in ("permute", "expand", "squeeze", "unsqueeze"):
        if value.op.name in ("permute", "expand") and not value.op.map.keeps_order:
            return True
        value = value.op.operand
    return False


def _is_copied(node: Any) -> bool:
    """Whether the last operators that leave elements as they are make them row-major."""
    while node.op == "call_function" and node.target in _SAME:
        if node.target in _COPIES:
            return True
        node = node.args[0]
    return False


def _assigned(one: Kept, graph: Graph, first: int, returned: list[Value]) -> Assigned:
    """``first``: the place in the graph's leaves of what attributes become; ``returned``: what forward returns."""
    source = attribute(one.path)
    if "getattr(" in source:
        raise Untraceable("mutation", f"forward assigns {source}, which no statement can name")
    if one.argument is not None:
        return Assigned(source, same=[v for v in graph.inputs if input_of(v).kind == "argument"][one.argument])
    if one.state is not None:
        return Assigned(source, same=next(v for v in graph.inputs if input_of(v).source == attribute(str(one.state))))
    if one.result is None:
        return Assigned(source)
    leaf = first + one.result
    value = graph.output_leaves[leaf]
    if not isinstance(value, Value):
        raise Untraceable("mutation", f"forward assigns {source} a tensor of a constant")
    if one.returned and value not in returned:
        raise Untraceable("mutation", f"forward assigns {source} a tensor that it returns in another form")
    return Assigned(source, leaf, returned=one.returned)


def _outlasting(leaf: Any, changed: set[Value]) -> Any:
    """``leaf``, or a copy of it where it may lie in the memory of a buffer or attribute that forward changes."""
    if not isinstance(leaf, Value) or (lies_in := viewed(leaf)) not in changed:
        return leaf
    if leaf.dtype.is_complex:
        return complex_numbers.copied(leaf)
    return Value(Pointwise("identity", (leaf,)), leaf.shape, leaf.dtype, f"old_{lies_in.name}")
