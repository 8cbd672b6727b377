"""The modules of a tree, as both the rules on the tree and those on modes go through them."""

from __future__ import annotations

import torch

from kernel_lsp.naming import attribute


def submodules(module: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """(Python inside forward, module) for the tree."""
    return [(attribute(path), child) for path, child in module.named_modules()]


def is_of_torch(module: torch.nn.Module) -> bool:
    """Whether torch defines the module's class, so that its attributes are known."""
    return type(module).__module__.startswith("torch.nn.")
