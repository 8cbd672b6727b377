"""Scans: what the elements up to each come to."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, normalise
from ..graph.value import Value
from .registry import lowers


def _scan(kind: str) -> Any:
    def lower(x: Value, dim: int, *, out: torch.dtype) -> Value:
        if not x.shape:
            return Build.cast(x, out)  # a scalar is itself
        value = Build.scan(kind, Build.cast(x, out), normalise(dim, len(x.shape)), out)
        value.meaning = (f"cum{kind}", (x, (normalise(dim, len(x.shape)),)))
        return value

    return lower


lowers("aten.cumsum", about="x[0] + ... + x[i] along one dimension; long ones in several programs")(_scan("sum"))
lowers("aten.cumprod", about="x[0] * ... * x[i] along one dimension")(_scan("prod"))
