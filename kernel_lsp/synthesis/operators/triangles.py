"""The triangles of matrices, where the rest is zero, and matrices with ones on their diagonal."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build
from ..graph.value import Shape, Value
from .registry import lowers


def _triangle(x: Value, diagonal: int, keep: str) -> Value:
    rank = len(x.shape)
    row, col = Build.iota(x.shape, rank - 2, name="i"), Build.iota(x.shape, rank - 1, name="j")
    edge = row if diagonal == 0 else Build.pointwise("add", row, diagonal)
    inside = Build.pointwise(keep, col, edge, dtype=torch.bool)
    if x.dtype == torch.bool:
        return Build.pointwise("and", inside, x, dtype=torch.bool)
    zero: Any = 0.0 if x.dtype.is_floating_point else 0
    return Build.pointwise("where", inside, x, zero, dtype=x.dtype)


@lowers("aten.tril", about="The lower triangle")
def tril(x: Value, diagonal: int = 0, **_: Any) -> Value:
    """``where(column <= row + diagonal, x, 0)`` in the last two dims."""
    return _triangle(x, diagonal, "le")


@lowers("aten.triu", about="The upper triangle")
def triu(x: Value, diagonal: int = 0, **_: Any) -> Value:
    """``where(column >= row + diagonal, x, 0)`` in the last two dims."""
    return _triangle(x, diagonal, "ge")


@lowers("aten.eye", about="Ones on the diagonal of a matrix, zeros elsewhere", addressing=True)
def eye(*_: Any, shape: Shape, out: torch.dtype, **__: Any) -> Value:
    """Whether row and column are the same, as a number."""
    same = Build.comparison("eq", Build.iota(shape, 0, name="i"), Build.iota(shape, 1, name="j"))
    ones = Build.cast(same, out)
    ones.name = "eye"
    return ones
