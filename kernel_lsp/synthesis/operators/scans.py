"""Scans: what the elements up to each come to."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, normalise
from ..graph.value import Value
from .registry import lowers


def scan(kind: str) -> Any:
    def lower(x: Value, dim: int, *, out: torch.dtype) -> Value:
        """cumsum and cumprod: y[i] = x[0] + ... + x[i] along one dimension; a scalar is itself."""
        if not x.shape:
            return Build.cast(x, out)
        value = Build.scan(kind, Build.cast(x, out), normalise(dim, len(x.shape)), out)
        value.meaning = (f"cum{kind}", (x, (normalise(dim, len(x.shape)),)))
        return value

    return lower


for _name, _kind in (("cumsum", "sum"), ("cumprod", "prod")):
    lowers(f"aten.{_name}", about=f"The {_kind} up to each element")(scan(_kind))
