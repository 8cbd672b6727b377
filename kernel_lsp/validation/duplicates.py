"""Copies of a module, also of one that holds a tensor which a gradient flows through.

``torch.nn.utils.weight_norm`` leaves such a one in the attribute ``weight`` when it is applied, and computes it anew before each call.
copy.deepcopy refuses them.
"""

from __future__ import annotations

import copy

import torch


def duplicate(module: torch.nn.Module) -> torch.nn.Module:
    """A copy that shares no tensor with the module. Tensors that a gradient flows through are copied without their history.

    Raises:
        Exception: something else that it holds cannot be copied.
    """
    computed = [
        tensor
        for part in module.modules()
        for held in (part._buffers, vars(part))
        for tensor in held.values()
        if isinstance(tensor, torch.Tensor) and not tensor.is_leaf
    ]
    return copy.deepcopy(module, {id(tensor): tensor.detach().clone() for tensor in computed})
