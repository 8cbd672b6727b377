"""The envelope of a kernel that a language model wrote: nothing is known of it but what it was validated with."""

from __future__ import annotations

import contextlib

import sympy
import torch
from torch.export import ExportedProgram

from kernel_lsp.envelope import rules
from kernel_lsp.envelope.signature import Signature
from kernel_lsp.envelope.sizes import Sizes
from kernel_lsp.envelope.tensors import Tensor
from kernel_lsp.naming import attribute
from kernel_lsp.synthesis.graph.lowered import Graph
from kernel_lsp.synthesis.graph.names import Names
from kernel_lsp.synthesis.graph.value import Value, input_of
from kernel_lsp.synthesis.operators.inputs import placeholders
from kernel_lsp.synthesis.operators.lower import lower
from kernel_lsp.synthesis.printing.envelope import name_arguments


def conditions(
    module: torch.nn.Module, signature: Signature, exported: ExportedProgram | None
) -> tuple[list[str], list[str]]:
    """(conditions with the dynamic sizes free, conditions that pin them), to be joined with ``and`` in this order.

    Without ``exported`` every size is pinned in the first list.

    Raises:
        Unwritable: one of them has no text.
    """
    graph = _graph(exported, signature)
    shapes = {} if graph is None else {input_of(v).source: v.shape for v in graph.inputs}
    arguments = [_tensor(source, tensor, True, shapes.get(source)) for source, tensor in signature.tensors]
    held = [*module.named_parameters(), *module.named_buffers()]
    state = [_tensor(attribute(name), tensor, False) for name, tensor in held]
    names = Names(name.removeprefix("*").partition("=")[0] for name in signature.names)
    kept = [] if graph is None else [_kept(value) for value in graph.looked_at]
    free = rules.conditions(
        rules.Basis(
            module,
            signature,
            arguments,
            [*state, *kept],
            names={one.source: names.fresh(one.source.removeprefix("self")) for one in state},
            exact=any(not one.dtype.is_floating_point for one in [*arguments, *state]),
            sizes=Sizes() if graph is None else Sizes(graph.ranges, graph.equal, graph.not_one, graph.assumed),
            opaque=True,
            carried=frozenset() if graph is None else frozenset(graph.carried),
        )
    )
    return free, [text for one in arguments for text in _pinned(one)]


def _tensor(source: str, tensor: torch.Tensor, argument: bool, shape: tuple[sympy.Expr, ...] | None = None) -> Tensor:
    """With the layout of the example's. ``shape`` says which sizes are free; without it none is."""
    sizes = tuple(sympy.Integer(n) for n in tensor.shape) if shape is None else shape
    return Tensor(source, tensor.dtype, sizes, argument, like=tensor)


def _kept(value: Value) -> Tensor:
    """An attribute that forward reads and assigns, as the example's calls but the first find it."""
    shape = [int(n) for n in value.shape]
    like = torch.empty(shape, dtype=value.dtype, device="meta")
    return Tensor(input_of(value).source, value.dtype, value.shape, argument=True, like=like)


def _pinned(tensor: Tensor) -> list[str]:
    """That the free sizes are those of the example."""
    assert tensor.like is not None
    sizes = zip(tensor.shape, tensor.like.shape, strict=True)
    return [f"{tensor.source}.shape[{i}] == {n}" for i, (size, n) in enumerate(sizes) if not size.is_number]


def _graph(exported: ExportedProgram | None, signature: Signature) -> Graph | None:
    """Sizes, their ranges and equalities as torch.export found them, or None where they are not known in full."""
    if exported is None:
        return None
    graph: Graph | None = None
    with contextlib.suppress(Exception):  # what the synthesizer cannot lower a model may well have written
        graph = lower(exported)
    if graph is None:
        graph = _placeholders(exported)
    if graph is None:
        return None
    with contextlib.suppress(Exception):
        name_arguments(graph, signature)
        graph.inputs = [v for v in graph.inputs if input_of(v).kind == "argument"]
        return graph
    return None


def _placeholders(exported: ExportedProgram) -> Graph | None:
    """The sizes of the arguments alone; None if the graph has checks of its own on them."""
    if any("assert" in str(node.target) or "constrain" in str(node.target) for node in exported.graph.nodes):
        return None
    with contextlib.suppress(Exception):
        return placeholders(exported)
    return None
