"""Losses: per-element terms and a mean, a sum or nothing. Definitions as in torch.nn.functional's documentation."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered, broadcast_shapes, normalise, opmath
from ..graph.sizes import ONE
from ..graph.value import Value, numel
from .activations import log_sigmoid
from .reductions import softmax_parts
from .registry import lowers

_NONE, _MEAN, _SUM = 0, 1, 2


def _reduced(terms: Value, reduction: int, out: torch.dtype, name: str, *operands: Any) -> Value:
    axes = tuple(range(len(terms.shape)))
    terms.meaning, terms.name = (name, operands), "losses"
    if reduction == _NONE:
        value = Value(terms.op, terms.shape, out, terms.name)
        value.meaning = (name, operands)
        return value
    value = Build.mean(terms, axes, "loss") if reduction == _MEAN else Build.reduce("sum", terms, axes, name="loss")
    value.dtype = out
    value.meaning = (f"{'mean' if reduction == _MEAN else 'sum'}_of_{name}", operands)
    return Build.squeeze(value, axes) if axes else value


@lowers("aten.mse_loss", about="(x - y)^2", formula="mse(a, b) = (a - b)^2")
def mse(x: Value, y: Value, reduction: int = _MEAN, *, out: torch.dtype, **_: Any) -> Value:
    """Elementwise, then reduced as ``reduction`` says: 0 not at all, 1 to the mean, 2 to the sum."""
    difference = Build.pointwise("sub", x, y, name="difference")
    return _reduced(Build.pointwise("mul", difference, difference), reduction, out, "mse", x, y)


@lowers("aten.l1_loss", about="|x - y|")
def l1(x: Value, y: Value, reduction: int = _MEAN, *, out: torch.dtype, **_: Any) -> Value:
    """Elementwise, then reduced as ``reduction`` says."""
    return _reduced(Build.pointwise("abs", Build.pointwise("sub", x, y)), reduction, out, "l1", x, y)


@lowers("aten.smooth_l1_loss")
def smooth_l1(x: Value, y: Value, reduction: int = _MEAN, beta: float = 1.0, *, out: torch.dtype, **_: Any) -> Value:
    """0.5 d^2 / beta where |d| < beta, else |d| - 0.5 beta."""
    if beta == 0:
        return l1(x, y, reduction, out=out)
    distance = Build.pointwise("abs", Build.pointwise("sub", x, y), name="distance")
    quadratic = Build.pointwise("mul", Build.pointwise("mul", distance, distance), 0.5 / beta)
    linear = Build.pointwise("sub", distance, 0.5 * beta)
    terms = Build.pointwise(
        "where", Build.comparison("lt", distance, float(beta)), quadratic, linear, dtype=opmath(out)
    )
    return _reduced(terms, reduction, out, "smooth_l1", x, y)


@lowers("aten.huber_loss", about="0.5 d^2 where |d| <= delta, else delta * (|d| - 0.5 delta)")
def huber(x: Value, y: Value, reduction: int = _MEAN, delta: float = 1.0, *, out: torch.dtype, **_: Any) -> Value:
    """Quadratic up to ``delta``, linear from there.

    Source: Huber, Robust Estimation of a Location Parameter, 1964.
    """
    distance = Build.pointwise("abs", Build.pointwise("sub", x, y), name="distance")
    quadratic = Build.pointwise("mul", Build.pointwise("mul", distance, distance), 0.5)
    linear = Build.pointwise("mul", Build.pointwise("sub", distance, 0.5 * delta), float(delta))
    terms = Build.pointwise(
        "where", Build.comparison("le", distance, float(delta)), quadratic, linear, dtype=opmath(out)
    )
    return _reduced(terms, reduction, out, "huber", x, y)


@lowers("aten.kl_div")
def kl_div(
    x: Value, y: Value, reduction: int = _MEAN, *, log_target: bool = False, out: torch.dtype, **_: Any
) -> Value:
    """y log y - y x, where 0 log 0 is 0; exp(y) * (y - x) for log targets."""
    if log_target:
        terms = Build.pointwise("mul", Build.pointwise("exp", y), Build.pointwise("sub", y, x))
    else:
        own = Build.pointwise("mul", y, Build.pointwise("log", y))
        own = Build.pointwise("where", Build.comparison("eq", y, 0.0), 0.0, own, dtype=opmath(out))
        terms = Build.pointwise("sub", own, Build.pointwise("mul", y, x))
    return _reduced(terms, reduction, out, "kl_div", x, y)


@lowers("aten.binary_cross_entropy")
def binary_cross_entropy(
    x: Value, y: Value, weight: Value | None = None, reduction: int = _MEAN, *, out: torch.dtype, **_: Any
) -> Value:
    """-(y log x + (1 - y) log(1 - x)), logarithms not below -100."""
    log_x = Build.pointwise("maximum", Build.pointwise("log", x), -100.0)
    log_not_x = Build.pointwise("maximum", Build.pointwise("log1p", Build.pointwise("neg", x)), -100.0)
    rest = Build.pointwise("mul", Build.pointwise("sub", y, 1.0), log_not_x)
    terms = Build.pointwise("sub", rest, Build.pointwise("mul", y, log_x))
    if weight is not None:
        terms = Build.pointwise("mul", terms, weight)
    return _reduced(terms, reduction, out, "binary_cross_entropy", x, y)


@lowers("aten.binary_cross_entropy_with_logits", about="Binary cross-entropy of sigmoid(x)")
def binary_cross_entropy_with_logits(
    x: Value,
    y: Value,
    weight: Value | None = None,
    pos_weight: Value | None = None,
    reduction: int = _MEAN,
    *,
    out: torch.dtype,
    **_: Any,
) -> Value:
    """(1 - y) x - log_sigmoid(x), with pos_weight: (1 - y) x - (1 + (pos_weight - 1) y) log_sigmoid(x)."""
    log_sig = log_sigmoid(x, out=opmath(out))
    log_sig.meaning = None
    if pos_weight is not None:
        factor = Build.pointwise("add", Build.pointwise("mul", Build.pointwise("sub", pos_weight, 1.0), y), 1.0)
        log_sig = Build.pointwise("mul", factor, log_sig)
    terms = Build.pointwise(
        "sub", Build.pointwise("mul", Build.pointwise("sub", 1.0, y, dtype=opmath(out)), x), log_sig
    )
    if weight is not None:
        terms = Build.pointwise("mul", terms, weight)
    return _reduced(terms, reduction, out, "binary_cross_entropy_with_logits", x, y)


def _class_last(x: Value) -> Value:
    """[N, C, d…] as [N, d…, C]; [C] and [N, C] as they are."""
    rank = len(x.shape)
    return x if rank <= 2 else Build.permute(x, (0, *range(2, rank), 1))


def _nll(log_probabilities: Value, target: Value, ignore_index: int) -> tuple[Value, Value]:
    """(-log p of the target class, or 0 where ignored; whether it counts), class dimension last."""
    rank = len(log_probabilities.shape)
    counts = Build.comparison("ne", target, ignore_index)
    safe = Build.pointwise("where", counts, target, 0, dtype=target.dtype)
    index = Build.unsqueeze(safe, rank - 1)
    picked = Build.gather(log_probabilities, index, rank - 1, "take", index.shape, "picked")
    picked = Build.squeeze(picked, (rank - 1,))
    loss = Build.pointwise("where", counts, Build.pointwise("neg", picked), 0.0, dtype=opmath(log_probabilities.dtype))
    return loss, counts


def _weighted(
    terms: Value, counts: Value, reduction: int, ignored: bool, out: torch.dtype, name: str, *operands: Any
) -> Value:
    if reduction != _MEAN or not ignored or not terms.shape:
        return _reduced(terms, reduction, out, name, *operands)
    axes = tuple(range(len(terms.shape)))
    terms.meaning, terms.name = (name, operands), "losses"
    total = Build.reduce("sum", terms, axes, name="total")
    kept = Build.reduce("sum", Build.cast(counts, torch.float32), axes, name="count")
    value = Build.pointwise("div", total, kept, dtype=out, name="loss", meaning=(f"mean_of_{name}", operands))
    return Build.squeeze(value, axes)


@lowers("aten.cross_entropy_loss", formula="cross_entropy(v, t) = log(sum(exp(v))) - v[t] in each row")
def cross_entropy(
    x: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    *,
    out: torch.dtype,
    **_: Any,
) -> Value:
    """logsumexp(x) - x[target] per row; label smoothing mixes in the mean over the classes.

    Raises:
        NotLowered: with weights for the classes, for the mean over positions of soft targets, and for label smoothing over a varying
            number of classes.
    """
    if weight is not None:
        raise NotLowered("cross_entropy with class weights")
    scores = _class_last(Build.cast(x, opmath(out)))
    last = len(scores.shape) - 1
    if target.dtype.is_floating_point:
        shifted, _exps, denominator = softmax_parts(scores, last)
        log_p = Build.pointwise("sub", shifted, Build.pointwise("log", denominator))
        probabilities = _class_last(target)
        if label_smoothing:
            mixed = Build.pointwise("mul", probabilities, 1.0 - label_smoothing)
            classes = scores.shape[-1]
            if not classes.is_number:
                raise NotLowered("label smoothing over a dynamic number of classes")
            probabilities = Build.pointwise("add", mixed, label_smoothing / float(classes))
        terms = Build.pointwise("neg", Build.reduce("sum", Build.pointwise("mul", probabilities, log_p), (last,)))
        terms = Build.squeeze(terms, (last,))
        if reduction == _MEAN and len(terms.shape) > 1:
            raise NotLowered("mean over positions of soft targets")
        return _reduced(terms, reduction, out, "cross_entropy", x, target)
    highest = Build.reduce("max", scores, (last,), name="row_max")
    exps = Build.pointwise("exp", Build.pointwise("sub", scores, highest))
    denominator = Build.reduce("sum", exps, (last,), name="denominator")
    log_total = Build.pointwise("add", Build.pointwise("log", denominator), highest, name="log_total")
    nll, counts = _nll(scores, target, ignore_index)
    picked = nll.op.operands[1].op.operands[0]  # type: ignore[attr-defined]  # x[target]
    if label_smoothing:
        # Of shifted scores v: log(sum(exp(v))) less what the target's v and the mean of all weigh.
        shifted = Build.pointwise("sub", scores, highest)
        own = Build.pointwise(
            "mul", Build.pointwise("sub", picked, Build.squeeze(highest, (last,))), 1 - label_smoothing
        )
        spread = Build.pointwise("mul", Build.squeeze(Build.mean(shifted, (last,)), (last,)), float(label_smoothing))
        log_sum = Build.squeeze(Build.pointwise("log", denominator), (last,))
        loss = Build.pointwise("sub", Build.pointwise("sub", log_sum, own), spread)
    else:
        loss = Build.pointwise("sub", Build.squeeze(log_total, (last,)), picked)
    terms = Build.pointwise("where", counts, loss, 0.0, dtype=opmath(out))
    return _weighted(terms, counts, reduction, True, out, "cross_entropy", x, target)


@lowers("aten.nll_loss", "aten.nll_loss_nd", about="Minus the log probability of the target class")
def nll_loss(
    x: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
    *,
    out: torch.dtype,
    **_: Any,
) -> Value:
    """``x``: log probabilities [N, C] or [N, C, ...], ``target``: classes [N, ...]; those that are ``ignore_index`` do not count.

    Raises:
        NotLowered: with weights for the classes.
    """
    if weight is not None:
        raise NotLowered("nll_loss with class weights")
    terms, counts = _nll(_class_last(x), target, ignore_index)
    return _weighted(terms, counts, reduction, True, out, "nll", x, target)


@lowers("aten.hinge_embedding_loss", about="x where y is 1, max(0, margin - x) where it is -1, their sum elsewhere")
def hinge_embedding(
    x: Value, y: Value, margin: float = 1.0, reduction: int = _MEAN, *, out: torch.dtype, **_: Any
) -> Value:
    """``y`` has 1 and -1; for any other number both terms count, as torch computes it."""
    away = Build.pointwise("maximum", Build.pointwise("sub", float(margin), x, dtype=opmath(out)), 0.0)
    far = Build.pointwise("where", Build.comparison("ne", y, 1.0), away, 0.0, dtype=opmath(out))
    near = Build.pointwise("where", Build.comparison("ne", y, -1.0), x, 0.0, dtype=opmath(out))
    return _reduced(Build.pointwise("add", far, near), reduction, out, "hinge_embedding", x, y)


@lowers("aten.multi_margin_loss", about="max(0, margin - x[t] + x)^p over the other classes, by their number")
def multi_margin(
    x: Value,
    target: Value,
    p: float = 1,
    margin: float = 1,
    weight: Value | None = None,
    reduction: int = _MEAN,
    *,
    out: torch.dtype,
    **_: Any,
) -> Value:
    """``x``: [N, C] or [C], ``target``: classes [N] or (); ``p`` is 1 or 2. NaN is not above 0, and adds nothing."""
    rows = x if len(x.shape) == 2 else Build.reshape(x, (ONE, numel(x.shape)))  # one row, whose target may be a number
    index = Build.reshape(target, (rows.shape[0], ONE))
    picked = Build.gather(rows, index, 1, "take", index.shape, "picked")
    gap = Build.pointwise("add", Build.pointwise("sub", float(margin), picked, dtype=opmath(out)), rows, name="gap")
    terms = gap if p == 1 else Build.pointwise("mul", gap, gap)
    if weight is not None:
        terms = Build.pointwise("mul", terms, Build.gather(weight, index, 0, "rows", index.shape, "weight"))
    place = Build.iota(rows.shape, 1, target.dtype)
    # As torch compares: a NaN is not above 0, and adds nothing.
    other, above = Build.comparison("ne", place, index), Build.comparison("gt", gap, 0.0)
    counts = Build.pointwise("and", other, above, dtype=torch.bool)
    terms = Build.pointwise("where", counts, terms, 0.0, dtype=opmath(out))
    losses = Build.reshape(Build.mean(terms, (1,)), target.shape)
    return _reduced(losses, reduction, out, "multi_margin", x, target)


@lowers("aten.cosine_similarity")
def cosine_similarity(x: Value, y: Value, dim: int = 1, eps: float = 1e-8, *, out: torch.dtype, **_: Any) -> Value:
    """x . y / (max(|x|, eps) * max(|y|, eps)).

    Raises:
        NotLowered: for tensors of different ranks, and for numbers.
    """
    rank = max(len(x.shape), len(y.shape))
    if rank == 0 or len(x.shape) != len(y.shape):
        raise NotLowered("cosine_similarity of tensors that broadcast to more dims, or of numbers")
    axes = (normalise(dim, rank),)
    # The lengths are those of the broadcast tensors.
    x, y = (_spread(v, axes[0], broadcast_shapes(x.shape, y.shape)[axes[0]]) for v in (x, y))

    def length(v: Value) -> Value:
        root = Build.pointwise("sqrt", Build.reduce("sum", Build.pointwise("mul", v, v), axes))
        return Build.pointwise("maximum", root, float(eps), name="length")

    dot = Build.reduce("sum", Build.pointwise("mul", x, y), axes, name="dot")
    value = Build.pointwise("div", dot, Build.pointwise("mul", length(x), length(y)), dtype=out)
    value.meaning = ("cosine_similarity", (x, y))
    return Build.squeeze(value, axes)


def _spread(x: Value, dim: int, size: sympy.Expr) -> Value:
    """``x`` with ``size`` elements along ``dim``, where it has one."""
    return x if x.shape[dim] == size else Build.expand(x, (*x.shape[:dim], size, *x.shape[dim + 1 :]))
