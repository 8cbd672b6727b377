"""Random results by what they have in common: dtype and shape, and mean, mean square and the share of zeros over several draws.

A kernel may draw other numbers than the module (dropout does not say which), but of the same distribution.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import torch

from kernel_lsp.validation.trees import tensors_of

#: draws of a result that are compared; of one that takes long
MANY, FEW = 16, 8

#: standard errors by which two means may differ, by the draws of each: Student's t is beyond them once in a million times at the most; and a
#: share of the size of what is drawn: a mean that is zero but for rounding has no size
_ERRORS, _ERRORS_OF_FEW, _SHARE = 7.0, 9.0, 1e-3

_STATISTICS: dict[str, Callable[[torch.Tensor], float]] = {
    "mean": lambda t: t.mean().item(),
    "mean square": lambda t: t.square().mean().item(),
    "share of zeros": lambda t: (t == 0).double().mean().item(),
}


def difference(mine: list[Any], theirs: list[Any]) -> str:
    """What differs between draws of one result and draws of another, trees of tensors; empty where nothing does, or that cannot be told."""
    pairs = [[tensors_of(tree) for tree in draws] for draws in (mine, theirs)]
    if len({len(tensors) for draws in pairs for tensors in draws}) != 1:
        return "it returns another number of tensors"
    for i, (own, other) in enumerate(zip(zip(*pairs[0], strict=True), zip(*pairs[1], strict=True), strict=True)):
        if own[0].dtype != other[0].dtype or own[0].shape != other[0].shape:
            return f"output {i} is {_words(own[0])}, the module's {_words(other[0])}"
        if not other[0].dtype.is_floating_point or not other[0].numel():
            continue
        found = {name: [[of(t.double()) for t in draws] for draws in (own, other)] for name, of in _STATISTICS.items()}
        size = math.sqrt(max(map(max, found["mean square"])))  # NaN and infinite where a draw is
        for name, (a, b) in found.items():
            if not all(map(math.isfinite, [*a, *b])):
                continue
            spread = math.sqrt((statistics.variance(a) + statistics.variance(b)) / len(a))
            left, right = statistics.fmean(a), statistics.fmean(b)
            scale = size if name == "mean" else max(abs(left), abs(right))
            errors = _ERRORS if len(a) >= MANY else _ERRORS_OF_FEW
            if abs(left - right) > errors * spread + _SHARE * scale:
                return f"the {name} of output {i} is {left:.4g} in {len(a)} calls, the module's {right:.4g}"
    return ""


def _words(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {list(tensor.shape)}"
