"""What each pass along a long row carries: which reductions share it, and which need not wait for another pass.

A reduction waits for those that its operand is computed from, but for the forms that need not (``graph/early_reductions.py``).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ..graph.early_reductions import early
from ..graph.monoids import MONOIDS, Monoid, kind_of
from ..graph.value import Fold, Reduce, Value, operands
from ..kernel.execution_plan import Kernel


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


def passes(kernel: Kernel, apart: bool = False) -> list[list[Running]]:
    """What each pass folds, in order. Scans are not among them: they run in the loop that uses them. ``apart``: see ``Passes``."""
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
            found = None if apart else early(v, reductions)
            if found is not None and depth(found.about) == depth(found.element) + 1:
                late[v] = Running(MONOIDS[found.kind], found.element, found.results, found.about)
                below = depth(found.element)
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
    gathered = _gathered(reductions)
    for v in reductions:
        if v not in taken and gathered.get(v, v) is v:
            levels.setdefault(depths[v], []).append(late.get(v) or _parts(v, gathered) or plain(v))
    return [levels[n] for n in sorted(levels)]


def tiles_carried(kernel: Kernel) -> int:
    """The most tiles that a pass of the kernel carries along; at least one."""
    counts = [sum(len(one.monoid.of_lanes) for one in level) for level in passes(kernel)]
    return max([1, *counts])


def times_read(kernel: Kernel, apart: bool = False) -> int:
    """How often a kernel reads its operand where it does not keep it: once for what is carried together, once to store."""
    reduced = set(kernel.domain.reduced)
    stores_all = any(reduced & set().union(*(e.free_symbols for e in index)) for _, index in kernel.stores)
    return max(1, len(passes(kernel, apart)) + stores_all)


def plain(v: Value) -> Running:
    """A fold by itself."""
    assert isinstance(v.op, Fold)
    operand = v.op.operand
    return Running(MONOIDS[kind_of(v.op.kind, floating=operand.dtype.is_floating_point)], operand, {"result": v})


def _gathered(reductions: list[Value]) -> dict[Value, Value]:
    """Of what a monoid carries of the same elements, each part → the last of them, which they are computed with."""
    last: dict[object, Value] = {}
    for v in reductions:
        assert isinstance(v.op, Reduce)
        if v.op.part:
            last[v.op.kind, v.op.operand, v.op.dims] = v
    return {v: last[v.op.kind, v.op.operand, v.op.dims] for v in reductions if isinstance(v.op, Reduce) and v.op.part}


def _parts(v: Value, gathered: dict[Value, Value]) -> Running | None:
    """What a chunk of ``v``'s row carries on."""
    op = v.op
    assert isinstance(op, Reduce)
    if v not in gathered:
        return None
    monoid = MONOIDS[op.kind]
    keys = tuple(c.key for c in monoid.of_lanes)
    parts = {w.op.part: w for w, end in gathered.items() if end is v and isinstance(w.op, Reduce)}
    monoid = dataclasses.replace(monoid, finish=monoid.gather, results=keys)
    return Running(monoid, op.operand, {key: parts[key] for key in keys if key in parts})


def _alone(found: Running) -> Running:
    return Running(found.monoid, found.element, {"sum": found.results["sum"]}, found.about)
