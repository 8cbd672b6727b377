"""Scans: what the elements up to each come to; ``graph/monoids.py`` has the operations."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, NotLowered, normalise
from ..graph.monoids import MONOIDS
from ..graph.value import Value
from .registry import lowers


def _scan(kind: str) -> Any:
    def lower(x: Value, dim: int, *, out: torch.dtype) -> Value:
        if not x.shape:
            return Build.cast(x, out)  # a scalar is itself
        value = Build.scan(kind, Build.cast(x, out), normalise(dim, len(x.shape)), out)
        value.meaning = (MONOIDS[kind].scanned, (x, (normalise(dim, len(x.shape)),)))
        return value

    return lower


lowers("aten.cumsum", about="x[0] + ... + x[i] along one dimension; long ones in several programs")(_scan("sum"))
lowers("aten.cumprod", about="x[0] * ... * x[i] along one dimension")(_scan("prod"))


@lowers(
    "aten.logcumsumexp",
    about="log(exp(x[0]) + ... + exp(x[i])) along one dimension, without overflow",
    formula="logcumsumexp(v)[i] = log(exp(v[0]) + ... + exp(v[i]))",
)
def logcumsumexp(x: Value, dim: int, *, out: torch.dtype) -> Value:
    if not x.dtype.is_floating_point:
        raise NotLowered("logcumsumexp of what is no floating point number")
    return _scan("logaddexp")(x, dim, out=out)
