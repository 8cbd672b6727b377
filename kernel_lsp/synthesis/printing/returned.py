"""What a host function returns: the result of forward, and what attributes become."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from kernel_lsp.envelope.errors import Unwritable
from kernel_lsp.envelope.module_settings import literal
from kernel_lsp.size_text import python

from ..graph.lowered import Graph
from ..graph.value import Input, Scalar, Value, View
from ..schedule.plan import HostPlan, TakeView
from . import named_results


def returned(graph: Graph, plan: HostPlan, variables: dict[Value, str], sizes: dict[sympy.Symbol, str]) -> str:
    """What the host function returns: what forward does, and beside that what attributes become, in their order.

    ``sizes``: Python for each size symbol.

    Raises:
        Unwritable: the result holds an object that is no tensor, tuple, named tuple, list, dict or dataclass.
    """
    kept = [(one, graph.output_leaves[one.leaf]) for one in graph.assigned if one.leaf is not None]
    own = graph.output_leaves[: len(graph.output_leaves) - len(kept)]
    own_text = _returned(graph, [_leaf(leaf, variables, sizes) for leaf in own])
    views = {operation.value for operation in plan.operations if isinstance(operation, TakeView)}
    taken = {_memory(v, views) for v in own if isinstance(v, Value)}
    texts = []
    for one, value in kept:
        memory = _memory(value, views)
        shared = memory in taken or isinstance(memory.op, Input)
        if one.returned:
            own_memory = ""
        else:  # elements that share one would make a tensor that nothing can be added to in place
            own_memory = ".clone()" if shared else ".contiguous()" if _is_expanded(value, views) else ""
        texts.append(f"{variables[value]}{own_memory}")
        taken.add(memory)
    if not texts:
        return own_text
    return ", ".join([f"({own_text})" if _is_bare_tuple(graph) else own_text, *texts])


def _leaf(leaf: Any, variables: dict[Value, str], sizes: dict[sympy.Symbol, str]) -> str:
    """A tensor, a number computed from sizes (``return x, height, width``), or a constant."""
    if isinstance(leaf, Value):
        return variables[leaf]
    return python(leaf.expr, sizes) if isinstance(leaf, Scalar) else literal(leaf) or repr(leaf)


def _is_bare_tuple(graph: Graph) -> bool:
    """Whether what forward returns is a tuple, which is written without parentheses."""
    return graph.output_spec.type is tuple and not graph.output_spec.is_leaf()


def _memory(value: Value, views: set[Value]) -> Value:
    """The value in whose memory it lies; ``views``: those that torch takes."""
    while value in views and isinstance(value.op, View):
        value = value.op.operand
    return value


def _is_expanded(value: Value, views: set[Value]) -> bool:
    while value in views and isinstance(value.op, View):
        if value.op.name == "expand":
            return True
        value = value.op.operand
    return False


def _returned(graph: Graph, leaves: list[str]) -> str:
    """What forward returns; ``leaves``: Python for its tensors and constants."""
    variables = named_results.variables(graph.output_spec)

    def build(spec: Any, rest: list[str]) -> str:
        if spec.is_leaf():
            return rest.pop(0)
        items = [build(child, rest) for child in named_results.children(spec)]
        if spec.type is tuple:
            text = f"{', '.join(items)}{',' if len(items) == 1 else ''}"
            return text if spec is graph.output_spec and items else f"({text})"
        if spec.type is list:
            return f"[{', '.join(items)}]"
        if spec.type is dict:
            return "{" + ", ".join(f"{k!r}: {i}" for k, i in zip(spec.context, items, strict=True)) + "}"
        named = named_results.of_node(spec)
        if named is not None:
            return f"{variables[named]}({named_results.arguments(spec, items)})"
        if spec.type.__module__ == torch.return_types.__name__:  # of torch.topk, torch.max, …: made from one tuple
            return f"torch.return_types.{spec.type.__name__}(({', '.join(items)}{',' if len(items) == 1 else ''}))"
        raise Unwritable(
            "forward",
            f"the result is of the class {spec.type.__name__}; it has to be a tensor, tuple, named tuple, list, dict or "
            "dataclass",
        )

    return build(graph.output_spec, leaves)
