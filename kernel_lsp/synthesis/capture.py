"""The module's graph: ``torch.export`` with every input dimension that can vary left dynamic."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.utils import _pytree as pytree


def capture(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, training: bool = False
) -> ExportedProgram:
    """Export ``module`` in eval (or training) mode on example inputs, undecomposed, without gradients.

    ``Dim.AUTO`` leaves a dimension dynamic unless the forward needs its value. Sizes 0 and 1 specialise in
    torch.export. Raises whatever torch.export raises.
    """
    module = _copied(module).train(training)
    kwargs = kwargs or {}
    shapes = pytree.tree_map(_all_dynamic, (args, kwargs))
    with torch.no_grad():
        # One dictionary by parameter name would need the signature; export takes the pair as it is
        # when positional shapes are a tuple and keyword shapes follow by name.
        dynamic: Any = shapes[0] if not kwargs else _by_name(module, shapes)
        exported = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic, strict=False)
        # What changes a tensor in place becomes what returns a new one; only where needed, for it traces again.
        return exported.run_decompositions({}) if any(map(_in_place, exported.graph.nodes)) else exported


def _copied(module: torch.nn.Module) -> torch.nn.Module:
    """A copy that shares the tensors: tracing assigns attributes, but computes with fake tensors alone."""
    held = [t for part in module.modules() for t in vars(part).values() if isinstance(t, torch.Tensor)]
    tensors = [*module.parameters(), *module.buffers(), *held]
    return copy.deepcopy(module, {id(tensor): tensor for tensor in tensors})


def _in_place(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and schema.is_mutable and schema.name != "aten::detach_"


def _all_dynamic(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return {i: Dim.AUTO for i in range(value.dim())}
    return None


def _by_name(module: torch.nn.Module, shapes: tuple[Any, Any]) -> dict[str, Any]:
    bound = inspect.signature(module.forward).bind(*shapes[0], **shapes[1])
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return named
