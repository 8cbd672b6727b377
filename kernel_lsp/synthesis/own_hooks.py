"""Hooks that a module has on itself: the class of a kernel inherits the constructor that registers them, and ``__call__`` runs them around its forward."""

from __future__ import annotations

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
    """Run the hooks before forward of ``module``, which has to be a copy. They stay: what they assign, as ``weight_norm`` does, belongs to the graph.

    Raises:
        ArgumentsReplaced: one of them returns tensors or values that are not those of the call.
        Exception: what one of them raises.
    """
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
