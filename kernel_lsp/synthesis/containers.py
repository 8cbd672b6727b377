"""Lists and dictionaries among forward's arguments: each call is given its own, and a forward that changes one is found."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.utils import _pytree as pytree


class ArgumentChanged(Exception):
    """Forward puts other things into a list or a dictionary that it is given; ``argument``: the parameter's name, ``kind``: "list"."""

    def __init__(self, argument: str, kind: str) -> None:
        self.argument, self.kind = argument, kind
        super().__init__(f"forward changes the {kind} {argument}")


def own(tree: Any) -> Any:
    """``tree`` with containers of its own, and the same leaves."""
    return pytree.tree_map(lambda leaf: leaf, tree)


def refuse_changes(module: torch.nn.Module) -> None:
    """Let forward of ``module``, which has to be a copy, raise ArgumentChanged where it has changed an argument that holds others."""
    forward = module.forward
    signature = inspect.signature(forward)

    def watched(*args: Any, **kwargs: Any) -> Any:
        given = [(name, value, _held(value)) for name, value in signature.bind(*args, **kwargs).arguments.items()]
        result = forward(*args, **kwargs)
        for name, value, before in given:
            if _held(value) != before:
                raise ArgumentChanged(name, type(value).__name__)
        return result

    watched.__signature__ = signature  # type: ignore[attr-defined]
    module.forward = watched  # type: ignore[method-assign]


def _held(value: Any) -> tuple[Any, list[int]]:
    """What a container holds, told apart by identity."""
    leaves, form = pytree.tree_flatten(value)
    return form, [id(leaf) for leaf in leaves]
