"""The tensors of trees: of (args, kwargs) and of results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

#: the classes of which it is known where the elements lie; ``type(t) in PLAIN``, since isinstance would ask objects for their class
PLAIN = (torch.Tensor, torch.nn.Parameter)


def tensors_of(tree: Any) -> list[torch.Tensor]:
    """The tensors among the leaves of a tree, in order."""
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def doubled(tree: Any) -> Any:
    """Floats to float64, complex to complex128."""
    return pytree.tree_map(_doubled, tree)


def convert(module: torch.nn.Module, dtype: torch.dtype) -> None:
    """A module's floats to ``dtype``, and complex tensors to the one with such parts: ``module.to`` would drop their imaginary parts."""
    module._apply(lambda tensor: _converted(tensor, dtype))


def _converted(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(dtype.to_complex())
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _doubled(value: Any) -> Any:
    return _converted(value, torch.float64) if isinstance(value, torch.Tensor) else value


def copied(tree: Any) -> Any:
    """The tensors of a tree in memory of their own, without history."""
    return pytree.tree_map(lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v, tree)


def on_cpu(tree: Any) -> Any:
    """The tensors of a tree on the CPU."""
    return pytree.tree_map(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, tree)


def filled(tree: Any, values: Iterable[Any]) -> Any:
    """A tree with ``values`` in place of its tensors, in order."""
    leaves, spec = pytree.tree_flatten(tree)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    for place, value in zip(places, values, strict=True):
        leaves[place] = value
    return pytree.tree_unflatten(leaves, spec)


def without_memory(tree: Any) -> Any:
    """The tensors of a tree as shapes, dtypes and strides alone."""
    return pytree.tree_map(lambda v: torch.empty_like(v, device="meta") if isinstance(v, torch.Tensor) else v, tree)
