"""Reductions over other dimensions, and what runs along a dimension without leaving it."""

from __future__ import annotations

from typing import Any

from .carry import Call, Carry, broadcast, require


def reduced(call: Call) -> Carry:
    """Over ``dim``, which stays as 1 with ``keepdim``; without ``dim`` over everything. ``max`` of two is elementwise."""
    if "other" in call.args:
        return broadcast(call.tensors(), len(call.shapes[0]), call.name)
    carry = call.only("self")
    rank = call["self"].rank
    given = call.get("dim")
    require(given is not None and given != [], f"{call.name} goes over every dimension")
    return _without(call, carry, call.dims(given, rank), bool(call.get("keepdim", False)))


def _without(call: Call, carry: Carry, dims: set[int], keep: bool) -> Carry:
    require(carry.dim not in dims, f"{call.name} goes over it")
    return carry if keep else carry.at(carry.dim - sum(d < carry.dim for d in dims))


def along(call: Call) -> Carry:
    """Softmax, scans, sorting: ``dim`` (or ``dims``) stays, its elements depend on each other."""
    carry = call.only("self")
    given = call["dims"] if "dims" in call.args else call["dim"]
    require(given is not None and given != [], f"{call.name} goes over every dimension")
    require(carry.dim not in call.dims(given, call["self"].rank), f"{call.name} goes over it")
    return carry


def triangle(call: Call) -> Carry:
    """Which elements are kept depends on the row and column: the last two dimensions."""
    carry = call.only("self")
    require(carry.dim < call["self"].rank - 2, f"{call.name} goes over it")
    return carry


def similarity(call: Call) -> Carry:
    """cosine_similarity: two tensors broadcast, then reduced over ``dim``."""
    operands = [call["x1"], call["x2"]]
    rank = max(t.rank for t in operands)
    return _without(call, broadcast(operands, rank, call.name), call.dims(call["dim"], rank), False)


def distance(call: Call) -> Carry:
    """pairwise_distance: the last dimension goes."""
    operands = [call["x1"], call["x2"]]
    rank = max(t.rank for t in operands)
    return _without(call, broadcast(operands, rank, call.name), {rank - 1}, bool(call["keepdim"]))


RULES: dict[str, Any] = {
    **{
        f"aten.{name}": reduced
        for name in [
            *("sum", "mean", "prod", "amax", "amin", "max", "min", "aminmax", "argmax", "argmin", "any", "all"),
            *("var", "std", "var_mean", "std_mean", "logsumexp", "norm", "linalg_vector_norm", "nansum", "nanmean"),
            *("median", "nanmedian", "count_nonzero"),
        ]
    },
    **{
        f"aten.{name}": along
        for name in [
            *("softmax", "_softmax", "log_softmax", "_log_softmax", "cumsum", "cumprod", "logcumsumexp", "cummax"),
            *("cummin", "sort", "argsort", "topk", "flip", "roll", "glu"),
        ]
    },
    "aten.tril": triangle,
    "aten.triu": triangle,
    "aten.cosine_similarity": similarity,
    "aten.pairwise_distance": distance,
}
