"""Reductions that are computed in the same pass as the row's number on which their operand depends.

The sum of exp(x - u) and that of (x - u)^2 follow from what can be carried along while ``u`` is not known (``monoids.py``). So a
softmax reads its row once for the maximum and the sum, and a norm once for the mean and the variance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .order import topological
from .sizes import ONE
from .value import Pointwise, Reduce, Value


@dataclass(frozen=True)
class Early:
    """``element`` folded by the monoid ``kind``: ``results`` maps what it gives to the reductions that are that; ``about``: ``u``."""

    kind: str
    element: Value
    results: dict[str, Value]
    about: Value


def early(v: Value, reductions: Iterable[Value]) -> Early | None:
    """``v`` as such a fold, None where it has another form. ``reductions``: those among which its maximum may be."""
    op = v.op
    assert isinstance(op, Reduce)
    if op.kind != "sum" or not isinstance(op.operand.op, Pointwise) or not v.dtype.is_floating_point:
        return None
    function, terms = op.operand.op.function, op.operand.op.operands
    if function == "mul" and terms[0] is terms[1]:
        split = _difference(terms[0], op)
        return Early("squares", split[0], {"squares": v}, split[1]) if split else None
    split = _difference(terms[0], op) if function == "exp" else None
    if split is None:
        return None
    element, about = split
    for highest in reductions:
        other = highest.op
        assert isinstance(other, Reduce)
        same_row = (other.operand, other.dims) == (element, op.dims)
        if same_row and other.kind in ("max", "amax") and highest in topological([about]):
            return Early(f"exponentials_{other.kind}", element, {"highest": highest, "sum": v}, about)
    return None


def _difference(term: object, op: Reduce) -> tuple[Value, Value] | None:
    """(x, u) of ``x - u``, where ``u`` is one number for all that ``op`` folds."""
    if not isinstance(term, Value) or not isinstance(term.op, Pointwise) or term.op.function != "sub":
        return None
    x, u = term.op.operands
    if not isinstance(x, Value) or not isinstance(u, Value) or x.shape != op.operand.shape:
        return None
    rank = len(x.shape) - len(u.shape)
    if any(d >= rank and u.shape[d - rank] != ONE for d in op.dims):
        return None
    return x, u
