"""What does not fit between a module and the inputs of its example, where its forward raised."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.validation import channel


def dtypes(module: torch.nn.Module, inputs: Any) -> str:
    """What to do where all floating-point inputs have one dtype and the module's tensors another; "" otherwise."""
    held = {t.dtype for t in [*module.parameters(), *module.buffers()] if t.is_floating_point()}
    leaves = [leaf for leaf in pytree.tree_leaves(channel.plain(inputs)) if isinstance(leaf, torch.Tensor)]
    given = {leaf.dtype for leaf in leaves if leaf.is_floating_point()}
    if len(held) != 1 or len(given) != 1 or held == given:
        return ""
    own, other = (str(found.pop()).removeprefix("torch.") for found in (held, given))
    return (
        f"The example inputs are {other}, the module's tensors {own}: make both of one dtype, or yield an example in {own} first, "
        f"for then the module is converted for one in {other}."
    )
