"""Functions of each row of one tensor with each row of another: distances, bilinear forms."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..graph.build import Build, NotLowered
from ..graph.value import Value, numel
from .registry import lowers


@lowers("aten.cdist", "aten._cdist_forward", about="The distance of each row from each, of order 1, 2 or infinity")
def cdist(x: Value, y: Value, p: float = 2.0, *_: Any, out: torch.dtype, **__: Any) -> Value:
    """Of differences, whatever their number: equal rows are at distance 0, which products would not give.

    Raises:
        NotLowered: for orders other than 1, 2 and infinity.
    """
    left, right = Build.unsqueeze(x, len(x.shape) - 1), Build.unsqueeze(y, len(y.shape) - 2)
    difference = Build.arithmetic("sub", left, right, result=out, name="difference")
    axes = (len(difference.shape) - 1,)
    if p == 2:
        squares = Build.reduce("sum", Build.pointwise("mul", difference, difference), axes)
        distance = Build.pointwise("sqrt", squares, name="distance")
    elif p == 1:
        distance = Build.reduce("sum", Build.pointwise("abs", difference), axes, name="distance")
    elif p == math.inf:
        distance = Build.reduce("amax", Build.pointwise("abs", difference), axes, name="distance")
    else:
        raise NotLowered(f"distances of order {p}")
    return Build.squeeze(distance, axes)


@lowers("aten.bilinear", about="x W[o] y + bias for each o")
def bilinear(x: Value, y: Value, weight: Value, bias: Value | None = None, *, out: torch.dtype, **_: Any) -> Value:
    """[..., O] of x [..., I], y [..., J] and weight [O, I, J]: a product for x W, then a sum over J beside y.

    Raises:
        NotLowered: for dtypes other than float32, float16 and bfloat16.
    """
    if out not in (torch.float32, torch.float16, torch.bfloat16):
        raise NotLowered(f"a bilinear form in {out}")
    rows = x.shape[:-1]
    flat_x = Build.reshape(x, (numel(rows), x.shape[-1]))
    flat_y = Build.reshape(y, (numel(rows), y.shape[-1]))
    between = Build.contract(flat_x, weight, "bi", "oij", "boj", out)
    terms = Build.pointwise("mul", between, Build.unsqueeze(flat_y, 1))
    value = Build.squeeze(Build.reduce("sum", terms, (2,)), (2,))
    if bias is not None:
        value = Build.pointwise("add", value, bias)
    return Build.reshape(value, (*rows, weight.shape[0]))
