"""Scaled dot product attention as two products with a softmax between them; ``passes/chains.py`` puts these into one kernel."""

from __future__ import annotations

import math
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import FloatPow, PythonMod, ToFloat

from ..graph import maps
from ..graph.build import Build, NotLowered, Operand, opmath
from ..graph.sizes import ONE, ZERO
from ..graph.value import Scalar, Value
from .products import batched
from .registry import lowers


def _equal(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """What torch checks when it runs, and torch.export does not: the sizes along which tensors meet."""
    q, k, v = given["q"], given["k"], given["v"]
    pairs = [(q.shape[-1], k.shape[-1]), (k.shape[-2], v.shape[-2])]
    if given.get("enable_gqa"):
        pairs += [(PythonMod(q.shape[-3], heads), ZERO) for heads in (k.shape[-3], v.shape[-3]) if heads != ONE]
    else:
        pairs += _met(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    mask = given.get("mask")
    if mask is not None:
        pairs += _met((*q.shape[:-1], k.shape[-2]), mask.shape)
    return tuple((a, b) for a, b in pairs if not (a.is_number and b.is_number))


def _met(*shapes: tuple[sympy.Expr, ...]) -> list[tuple[sympy.Expr, sympy.Expr]]:
    """Pairs of sizes that are equal where the shapes are broadcast; a size that varies is not one."""
    first, *others = shapes
    pairs: list[tuple[sympy.Expr, sympy.Expr]] = []
    for other in others:
        pairs += [(a, b) for a, b in zip(first[::-1], other[::-1], strict=False) if ONE not in (a, b)]
    return pairs


def _scale(width: sympy.Expr) -> Operand:
    """One over the square root of a size."""
    if width.is_number:
        return 1.0 / math.sqrt(float(width))
    return Scalar(FloatPow(ToFloat(width), sympy.Float(-0.5)), is_float=True)


def _for_heads(x: Value, heads: sympy.Expr) -> Value:
    """Keys or values [..., fewer heads, S, E] for as many heads as the queries have: consecutive ones share a head."""
    dim, own = len(x.shape) - 3, x.shape[-3]
    if own in (heads, ONE):
        return x
    if own.is_number and heads.is_number:
        return Build.view(x, maps.repeat_interleave(x.shape, dim, heads // own), "repeat_interleave")
    shape = (*x.shape[:dim], heads, *x.shape[-2:])
    return Build.view(x, maps.scaled(x.shape, shape, {dim: (own, heads)}), "repeat_interleave")


def _weights(scores: Value, out: torch.dtype) -> Value:
    """The softmax of [..., L, S] along S, with zeros where all of a row is minus infinity, as torch's attention has it."""
    last = len(scores.shape) - 1
    highest = Build.reduce("max", scores, (last,), name="row_max")
    unseen = Build.comparison("eq", highest, -math.inf)
    shift = Build.pointwise("where", unseen, 0.0, highest, dtype=highest.dtype, name="shift")
    exps = Build.pointwise("exp", Build.pointwise("sub", scores, shift, name="shifted"), name="numerator")
    total = Build.reduce("sum", exps, (last,), name="denominator")
    nothing = Build.comparison("eq", total, 0.0)
    divisor = Build.pointwise("where", nothing, 1.0, total, dtype=total.dtype, name="divisor")
    meaning = ("softmax", (scores, (last,)))
    return Build.pointwise("div", exps, divisor, dtype=out, name="weights", meaning=meaning)


@lowers(
    "aten.scaled_dot_product_attention",
    about="softmax(q k^T * scale + mask) v, 0 where a row sees nothing; not with dropout",
    formula="attention(q, k, v) = softmax(q @ k.T * scale) @ v",
    equal=_equal,
)
def attention(
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
    out: torch.dtype,
    **_: Any,
) -> Value:
    """q [..., L, E], k [..., S, E], v [..., S, D] to [..., L, D]; the leading dimensions broadcast.

    ``is_causal``: row i sees keys 0 to i, also where L and S differ. ``enable_gqa``: heads of k and v are shared by several of q.

    Source: Vaswani et al., Attention Is All You Need, 2017.

    Raises:
        NotLowered: with dropout, for empty tensors, and for dtypes that ``matmul`` has no product of.
    """
    if dropout_p:
        raise NotLowered("attention with dropout")
    if any(ZERO in x.shape for x in (q, k, v)):
        raise NotLowered("attention to nothing")
    if enable_gqa:
        k, v = (_for_heads(x, q.shape[-3]) for x in (k, v))
    rank = len(k.shape)
    turned = Build.permute(k, (*range(rank - 2), rank - 1, rank - 2))
    factor: Operand = _scale(q.shape[-1]) if scale is None else scale if isinstance(scale, Scalar) else float(scale)
    scores = Build.pointwise("mul", batched(q, turned, out), factor, dtype=opmath(out), name="scores")
    if is_causal:
        last = len(scores.shape) - 1
        i, j = Build.iota(scores.shape, last - 1, name="i"), Build.iota(scores.shape, last, name="j")
        hidden = Build.pointwise("gt", j, i, dtype=torch.bool)
        scores = Build.pointwise("where", hidden, -math.inf, scores, dtype=opmath(out))
    if mask is not None:
        if mask.dtype == torch.bool:
            scores = Build.pointwise("where", mask, scores, -math.inf, dtype=opmath(out))
        else:
            scores = Build.pointwise("add", scores, mask, dtype=opmath(out))
    value = batched(_weights(scores, out), v, out)
    value.meaning = ("attention", (q, k, v))
    return value
