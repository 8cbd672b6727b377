"""Random results by what they have in common: dtype and shape, and over several draws what `_STATISTICS` names.

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

_NAN = "share of NaN"
_STATISTICS: dict[str, Callable[[torch.Tensor], float]] = {
    _NAN: lambda t: t.isnan().double().mean().item(),
    "share of infinite elements": lambda t: t.isinf().double().mean().item(),
    "mean": lambda t: _mean(t[t.isfinite()]),
    "mean square": lambda t: _mean(t[t.isfinite()].square()),
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
        size = math.sqrt(max(map(max, found["mean square"])))
        for name, (a, b) in found.items():
            left, right = statistics.fmean(a), statistics.fmean(b)
            if (
                name == _NAN and left and not right
            ):  # however rare: a module that gives one now and then could not be trained
                return f"output {i} has NaN in {sum(map(bool, a))} of {len(a)} calls, the module's in none"
            scale = size if name == "mean" else max(abs(left), abs(right))
            if not math.isfinite(scale):  # squares of float64's largest numbers
                continue
            if abs(left - right) > _allowed(a, b) + _SHARE * scale:
                return f"the {name} of output {i} is {left:.4g} in {len(a)} calls, the module's {right:.4g}"
    return ""


def _allowed(a: list[float], b: list[float]) -> float:
    """By how much the means of two statistics may differ: by some of their standard errors.

    Not at all where all draws of one are greater than all of the other, which of one distribution 16 draws are once in 300 million times.
    Draws that spread widely, as squares of Cauchy's distribution do, have a standard error that allows every mean.
    """
    if len(a) >= MANY and (min(a) > max(b) or max(a) < min(b)):
        return 0.0
    errors = _ERRORS if len(a) >= MANY else _ERRORS_OF_FEW
    return errors * math.sqrt((statistics.variance(a) + statistics.variance(b)) / len(a))


def _mean(finite: torch.Tensor) -> float:
    return finite.mean().item() if finite.numel() else 0.0


def _words(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {list(tensor.shape)}"
