"""What each pass along a long row carries: which reductions share it, and which need not wait for another pass.

A reduction waits for those that its operand is computed from. Two forms need not wait for a number ``u`` of the row, though: the
sum of exp(x - u) and that of (x - u)^2 follow from what can be carried along while ``u`` is not known (``monoids.py``). So softmax
reads its row once for the maximum and the sum, and a norm once for the mean and the variance.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.monoids import MONOIDS, Monoid, monoid_of
from ..graph.sizes import ONE
from ..graph.value import Fold, Pointwise, Reduce, Value, operands, topological
from ..kernel.steps import Kernel


@dataclass(frozen=True)
class Running:
    """``element`` folded by ``monoid``: ``results`` maps what it gives to the reductions that are that. ``about``: the row's number."""

    monoid: Monoid
    element: Value
    results: dict[str, Value]
    about: Value | None = None

    @property
    def fold(self) -> Value:
        """The reduction that it is for; where there are two, the later."""
        return list(self.results.values())[-1]


def passes(kernel: Kernel) -> list[list[Running]]:
    """What each pass folds, in order. Scans are not among them: they run in the loop that uses them."""
    reductions = [v for v in kernel.folds if isinstance(v.op, Reduce)]
    late: dict[Value, Running] = {}
    depths: dict[Value, int] = {}

    def depth(v: Value) -> int:
        """How many passes it takes until ``v`` is known."""
        if v in depths:
            return depths[v]
        leaf = v in kernel.leaves and v not in kernel.folds
        below = max([depth(o) for o in operands(v)], default=0) if not leaf else 0
        if v in reductions:
            found = _early(v, reductions)
            if found is not None and found.about is not None and depth(found.about) == depth(found.element) + 1:
                late[v], below = found, depth(found.element)
            below += 1
        depths[v] = below
        return below

    levels: dict[int, list[Running]] = {}
    for v in reductions:
        depth(v)
    taken: set[Value] = set()
    for v, found in late.items():  # the greatest element is carried by one of those that need it
        if (highest := found.results.get("highest")) in taken:
            late[v] = _alone(found)
        elif highest is not None:
            taken.add(highest)
    for v in reductions:
        if v not in taken:
            levels.setdefault(depths[v], []).append(late.get(v) or plain(v))
    return [levels[n] for n in sorted(levels)]


def tiles_carried(kernel: Kernel) -> int:
    """The most tiles that a pass of the kernel carries along; at least one."""
    counts = [sum(c.holds != "count" for one in level for c in one.monoid.carried) for level in passes(kernel)]
    return max([1, *counts])


def plain(v: Value) -> Running:
    """A fold by itself."""
    assert isinstance(v.op, Fold)
    operand = v.op.operand
    return Running(monoid_of(v.op.kind, floating=operand.dtype.is_floating_point), operand, {"result": v})


def _alone(found: Running) -> Running:
    return Running(found.monoid, found.element, {"sum": found.results["sum"]}, found.about)


def _early(v: Value, reductions: list[Value]) -> Running | None:
    """``v`` as a fold that need not know the number of the row in it; None where it has another form."""
    op = v.op
    assert isinstance(op, Reduce)
    if op.kind != "sum" or not isinstance(op.operand.op, Pointwise) or not v.dtype.is_floating_point:
        return None
    function, terms = op.operand.op.function, op.operand.op.operands
    if function == "mul" and terms[0] is terms[1]:
        split = _difference(terms[0], op)
        return Running(MONOIDS["squares"], split[0], {"squares": v}, split[1]) if split else None
    split = _difference(terms[0], op) if function == "exp" else None
    if split is None:
        return None
    element, about = split
    for highest in reductions:
        other = highest.op
        assert isinstance(other, Reduce)
        same_row = (other.operand, other.dims) == (element, op.dims)
        if same_row and other.kind in ("max", "amax") and highest in topological([about]):
            return Running(MONOIDS[f"exponentials_{other.kind}"], element, {"highest": highest, "sum": v}, about)
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
