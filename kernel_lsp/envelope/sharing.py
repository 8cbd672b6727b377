"""Conditions on what a module holds under several names: tied weights, and submodules that are used twice.

A graph has such a tensor once, and what is known of a submodule is asked of it under its first name. A module whose constructor
was given another setting, or whose weights were untied later, holds two in their places.
"""

from __future__ import annotations

import torch

from kernel_lsp.naming import attribute

from .modules import submodules


def several_names(module: torch.nn.Module) -> dict[str, list[str]]:
    """The Python inside forward of each submodule, parameter and buffer with more than one name: its first one → the others.

    A submodule with several names is gone through once, so that what it holds has none but those below its first.
    """
    first: dict[int, str] = {id(module): "self"}
    for source, child in submodules(module):
        first.setdefault(id(child), source)
    result: dict[str, list[str]] = {}
    for path, child in module.named_modules():
        for held in (child._parameters, child._buffers, child._modules):
            for key, value in held.items():
                source = attribute(f"{path}.{key}" if path else key)
                if value is not None and first.setdefault(id(value), source) != source:
                    result.setdefault(first[id(value)], []).append(source)
    return result


def sharing_conditions(module: torch.nn.Module) -> list[str]:
    """That what had several names is still one thing: ``self.head.weight is self.embedding.weight``."""
    return [f"{other} is {first}" for first, others in several_names(module).items() for other in others]
