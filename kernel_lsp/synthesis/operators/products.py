"""Matrix products and what contains them: mm, bmm, matmul, linear, addmm, attention."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..graph.build import Build, NotLowered, opmath
from ..graph.sizes import ONE
from ..graph.value import Value
from .reductions import softmax_parts
from .registry import lowers


@lowers("aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.dot", about="Matrix product")
def matmul(x: Value, y: Value, *, out: torch.dtype, **_: Any) -> Value:
    if out not in (torch.float32, torch.float16, torch.bfloat16):
        raise NotLowered(f"matrix products in {out}")
    row, col = len(x.shape) == 1, len(y.shape) == 1
    if row and col:
        return Build.squeeze(Build.reduce("sum", Build.pointwise("mul", x, y), (0,), name="product"), (0,))
    if not col and (row or x.shape[-2] == ONE) and len(y.shape) == 2:
        # A vector-matrix product: likewise, down the columns.
        rank = len(x.shape)
        spread = Build.unsqueeze(x, rank) if row else Build.permute(x, (*range(rank - 2), rank - 1, rank - 2))
        dim = len(spread.shape) - 2
        value = Build.reduce("sum", Build.pointwise("mul", spread, y), (dim,), name="product")
        return Build.squeeze(value, (dim,)) if row else value
    if not row and not col and y.shape[-1] == ONE and len(y.shape) == 2:
        # The same with the vector as a matrix of one column.
        vector, last = Build.squeeze(y, (1,)), len(x.shape) - 1
        return Build.reduce("sum", Build.pointwise("mul", x, vector), (last,), name="product")
    if col:
        # A matrix-vector product reads the matrix once: a reduction, not a tiled product.
        last = len(x.shape) - 1
        return Build.squeeze(Build.reduce("sum", Build.pointwise("mul", x, y), (last,), name="product"), (last,))
    if row:
        raise NotLowered("a vector times a batch of matrices")
    product = Build.matmul(x, y, out)
    product.meaning = ("matmul", (x, y))
    return product


@lowers("aten.addmm", "aten.baddbmm", about="beta * c + alpha * (x @ y)")
def addmm(c: Value, x: Value, y: Value, *, beta: Any = 1, alpha: Any = 1, out: torch.dtype, **_: Any) -> Value:
    product = matmul(x, y, out=out)
    if alpha != 1:
        product = Build.pointwise("mul", product, float(alpha), dtype=out)
    if beta != 1:
        c = Build.pointwise("mul", c, float(beta))
    return Build.pointwise("add", product, c, dtype=out)


@lowers("aten.outer", about="The product of each with each")
def outer(x: Value, y: Value, *, out: torch.dtype, **_: Any) -> Value:
    return Build.pointwise("mul", Build.unsqueeze(x, 1), y, dtype=out)


@lowers("aten.scaled_dot_product_attention", formula="attention(q, k, v) = softmax(q @ k.T * scale) @ v")
def attention(
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    out: torch.dtype,
    **_: Any,
) -> Value:
    """softmax(q k^T * scale + mask) v as products and a softmax between them (no single flash kernel yet)."""
    if dropout_p or enable_gqa:
        raise NotLowered("attention with dropout or grouped queries")
    width = q.shape[-1]
    if scale is None:
        if not width.is_number:
            raise NotLowered("attention with a dynamic head dimension")
        scale = 1.0 / math.sqrt(float(width))
    rank = len(k.shape)
    turned = Build.permute(k, (*range(rank - 2), rank - 1, rank - 2))
    scores = Build.pointwise("mul", Build.matmul(q, turned, out), float(scale), dtype=opmath(out), name="scores")
    if is_causal:
        i, j = Build.iota(scores.shape, rank - 2, name="i"), Build.iota(scores.shape, rank - 1, name="j")
        hidden = Build.pointwise("gt", j, i, dtype=torch.bool)
        scores = Build.pointwise("where", hidden, -math.inf, scores, dtype=opmath(out))
    if mask is not None:
        if mask.dtype == torch.bool:
            scores = Build.pointwise("where", mask, scores, -math.inf, dtype=opmath(out))
        else:
            scores = Build.pointwise("add", scores, mask, dtype=opmath(out))
    exps, denominator = softmax_parts(scores, len(scores.shape) - 1)[1:]
    weights = Build.pointwise(
        "div", exps, denominator, dtype=out, name="weights", meaning=("softmax", (scores, (rank - 1,)))
    )
    value = Build.matmul(weights, v, out)
    value.meaning = ("attention", (q, k, v))
    return value


@lowers(
    "aten.linear",
    about="x times a weight's transpose, plus a bias",
    formula="linear(v, weight, bias) = v @ weight.T + bias",
)
def linear(x: Value, weight: Value, bias: Value | None = None, *, out: torch.dtype, **_: Any) -> Value:
    turned = Build.permute(weight, (1, 0))
    product = matmul(x, turned, out=out)
    product.meaning = ("matmul", (x, weight))
    if bias is None:
        return product
    value = Build.pointwise("add", product, bias, dtype=out)
    value.meaning = ("linear", (x, weight, bias))
    return value
