"""Hooks that a module has on itself: the class of a kernel inherits the constructor that registers them, and ``__call__`` runs them around its forward."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.utils import _pytree as pytree


class ArgumentsReplaced(Exception):
    """A hook before forward gives it other arguments than those of the call; ``hook``: its name."""

    def __init__(self, hook: str) -> None:
        self.hook = hook
        super().__init__(f"{hook} replaces the arguments of forward")


def leave_out(module: torch.nn.Module) -> None:
    """Take the hooks after forward from ``module``, which has to be a copy: in a graph with them they would count twice."""
    for hooks in (module._forward_hooks, module._forward_hooks_with_kwargs, module._forward_hooks_always_called):
        hooks.clear()


def refuse_replaced(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Run the hooks before forward. They stay: what they assign, as ``weight_norm`` does, belongs to the graph.

    They run on copies, since they may change buffers, parameters or the arguments in place.

    Raises:
        ArgumentsReplaced: one of them returns tensors or values that are not those of the call.
        Exception: what one of them raises.
    """
    module = _with_own_tensors(module)
    args, kwargs = pytree.tree_map_only(torch.Tensor, _cloned, (args, kwargs))
    given = [id(leaf) for leaf in pytree.tree_leaves((args, kwargs))]
    for key, hook in module._forward_pre_hooks.items():
        takes_keywords = key in module._forward_pre_hooks_with_kwargs
        with torch.no_grad():
            result = hook(module, args, kwargs) if takes_keywords else hook(module, args)
        if result is None:
            continue
        if not takes_keywords:
            result = result if isinstance(result, tuple) else (result,), kwargs
        if [id(leaf) for leaf in pytree.tree_leaves(result)] != given:
            raise ArgumentsReplaced(getattr(hook, "__qualname__", type(hook).__qualname__))


def _with_own_tensors(module: torch.nn.Module) -> torch.nn.Module:
    """A copy that shares no tensor; those that a gradient flows through, which ``weight_norm`` assigns, are copied, too."""
    held = [
        tensor
        for part in module.modules()
        for tensors in (part._parameters, part._buffers, vars(part))
        for tensor in tensors.values()
        if isinstance(tensor, torch.Tensor)
    ]
    return copy.deepcopy(module, {id(tensor): _cloned(tensor) for tensor in held})


def _cloned(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor, or of a parameter."""
    found = tensor.detach().clone()
    return torch.nn.Parameter(found, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else found
