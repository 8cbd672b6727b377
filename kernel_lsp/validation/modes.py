"""Training mode of a module and of the modules in it, which a program may set apart.

Frozen batch norms are in eval mode within a module in train mode, and dropout may be on in a module that is in eval mode.
"""

from __future__ import annotations

import torch
from torch.nn.modules import batchnorm, dropout, instancenorm

#: classes of torch's that compute something else in train mode
_DEPENDS = (
    *(batchnorm._BatchNorm, dropout._DropoutNd, instancenorm._InstanceNorm),
    *(torch.nn.RNNBase, torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer, torch.nn.RReLU),
)


def put(module: torch.nn.Module, training: bool, eval_part: str = "") -> None:
    """Put all of it into a mode. ``eval_part``: what is in eval mode all the same, the module ("itself") or all those in it ("within")."""
    module.train(training)
    if eval_part == "within":
        for child in module.children():
            child.eval()
    elif eval_part == "itself":
        module.training = False


def may_differ(module: torch.nn.Module) -> bool:
    """Whether there is a module in it that may depend on its own mode."""
    within = [m for m in module.modules() if m is not module]
    return any(isinstance(m, _DEPENDS) or not type(m).__module__.startswith("torch.") for m in within)
