"""Loops that torch.export unrolled become recurrences again.

All of their steps become one launch; products that need no state come before it, and what the steps hand on, computed for all
of them at once, after it.

``forms.py`` says when two values compute alike, ``chain.py`` finds the steps, ``body.py`` makes one body of them, ``together.py``
computes for all steps what needs no state. What has no counterpart in other steps, and bodies that no schedule takes, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, islice

import sympy

from ...graph import maps
from ...graph.build import Build
from ...graph.loops import reads_back, results
from ...graph.lowered import Graph
from ...graph.order import topological
from ...graph.sizes import ONE, ZERO
from ...graph.value import Concat, Pointwise, Recur, Recurrence, TorchCall, Value, View, operands
from .body import recurrence
from .chain import LEAST_STEPS, Orbit, chains
from .forms import Family, Forms, NotAlike
from .together import Together, joined, stacked

#: places where a loop could be cut into steps that are tried
_MOST_TRIES = 6
_STACK, _CAT = "torch.ops.aten.stack.default", "torch.ops.aten.cat.default"


def roll(graph: Graph, pays: Callable[[Recurrence], bool] = lambda _: True) -> int:
    """Make recurrences of loops for which that ``pays``. Returns how many."""
    loops: list[Recurrence] = []
    before = _calls(graph)
    while (found := _next(graph, pays)) is not None:
        _replace(graph, *found)
        loops.append(found[1])
    if loops:
        _collect(graph, loops)
        _take_ends(graph, loops)
        for node in before.keys() - _calls(graph).keys():
            graph.kept.remove(before[node])
            graph.lowered.append(node)
    return len(loops)


def _calls(graph: Graph) -> dict[str, str]:
    """The exported nodes that stay calls of torch, and their operators."""
    calls = [v for v in topological(graph.outputs) if isinstance(v.op, TorchCall)]
    return {
        v.node: (v.op.call or v.op).target.removeprefix("torch.ops.")
        for v in calls
        if isinstance(v.op, TorchCall) and not v.op.is_view
    }


def _next(graph: Graph, pays: Callable[[Recurrence], bool]) -> tuple[list[Orbit], Recurrence, list[int]] | None:
    """The states of a loop, the recurrence that computes them, and the number of each state there."""
    forms = Forms()
    for orbits in islice(chains(graph.outputs, forms), _MOST_TRIES):
        try:
            loop, numbers = recurrence(orbits, forms)
        except (NotAlike, RecursionError):
            continue
        if pays(loop):
            return orbits, loop, numbers
    return None


def _replace(graph: Graph, orbits: list[Orbit], loop: Recurrence, numbers: list[int]) -> None:
    """Make what the rest of the graph reads of the states results of ``loop``."""
    at = {value: (orbit, step) for orbit, states in enumerate(orbits) for step, value in enumerate(states) if step}
    read: dict[Value, None] = {}
    seen: set[Value] = set()
    waiting = list(graph.outputs)
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in at:
            read[value] = None
        else:
            waiting += operands(value)
    traces: dict[int, Value] = {}
    for value in read:
        orbit, step = at[value]
        if orbit not in traces:
            number = numbers[orbit]
            traces[orbit] = results(loop, number, value.dtype, loop.held[number].name, each=True)
        trace = traces[orbit]
        value.op, value.meaning = View(maps.select(trace.shape, 0, sympy.Integer(step)), trace, "select"), None


def _collect(graph: Graph, loops: list[Recurrence]) -> None:
    """What steps hand on one by one, and a concatenation puts together, is computed for all steps at once."""
    forms, order = Forms(), topological(graph.outputs)
    seen = _seen_by_torch(graph, order)
    for value in order:
        outer, (value, around) = value, _alike(value)
        found = _pieces(value)
        if found is None or len(found[0]) < LEAST_STEPS:
            continue
        pieces, d, along_new = found
        try:
            whole = Together(forms, len(pieces)).whole(pieces)
        except (NotAlike, RecursionError):
            continue
        if whole.dtype != value.dtype or not any(_loop(v) in loops for v in topological([whole])):
            continue
        made = stacked(whole, d) if along_new else joined(whole, d, value.shape)
        if value in seen and along_new and d and (own := _stored_so(whole, d)) is not None:
            made = own
        if value in seen and isinstance(made.op, View) and made.op.map.permutation is not None:
            made = Build.pointwise("identity", made, dtype=made.dtype, name=made.name)  # in torch's order of elements
        value.op, value.meaning, value.name = made.op, made.meaning, value.name or made.name
        outer.op = around or outer.op


def _alike(value: Value) -> tuple[Value, Concat | None]:
    """The longest run of pieces of one shape, and a concatenation with that as one piece; ``value`` itself where no others are beside it.

    Steps wrote them to places of a tensor that is longer than the loop, or may be.
    """
    op = value.op
    if not isinstance(op, Concat) or len(op.operands) <= LEAST_STEPS:
        return value, None
    runs = [[*run] for _, run in groupby(op.operands, lambda v: v.shape)]
    longest = max(runs, key=len)
    if len(runs) == 1 or len(longest) < LEAST_STEPS:
        return value, None
    size = sympy.expand(sum((v.shape[op.dim] for v in longest), ZERO))
    shape = (*value.shape[: op.dim], size, *value.shape[op.dim + 1 :])
    together = Value(Concat(tuple(longest), op.dim), shape, value.dtype)
    before, after = ([v for run in side for v in run] for side in _sides(runs, longest))
    return together, Concat((*before, together, *after), op.dim)


def _sides(runs: list[list[Value]], one: list[Value]) -> tuple[list[list[Value]], list[list[Value]]]:
    at = next(i for i, run in enumerate(runs) if run is one)
    return runs[:at], runs[at + 1 :]


def _stored_so(whole: Value, d: int) -> Value | None:
    """A result of a recurrence that has its steps along dimension ``d``, where ``whole`` is all of them."""
    op = whole.op
    base = op.operand if isinstance(op, View) else whole
    if not isinstance(base.op, Recur) or not reads_back(base.op, base.op.state):
        return None
    begun = base is whole
    if isinstance(op, View) and op.map != maps.slice_(base.shape, 0, ONE, ONE, base.op.loop.steps):
        return None
    return results(base.op.loop, base.op.state, whole.dtype, whole.name, each=True, along=d, begun=begun)


def _pieces(value: Value) -> tuple[Family, int, bool] | None:
    """What a concatenation consists of, its dimension, and whether that is a new one."""
    op = value.op
    if isinstance(op, Concat):
        inner = [v.op.operand if isinstance(v.op, View) and v.op.name == "unsqueeze" else None for v in op.operands]
        own = tuple(v for v in inner if v is not None)
        if len(own) == len(op.operands) and all(
            isinstance(v.op, View) and v.op.map == maps.unsqueeze(o.shape, op.dim)
            for v, o in zip(op.operands, own, strict=True)
        ):
            return own, op.dim, True
        return op.operands, op.dim, False
    if isinstance(op, TorchCall) and op.target in (_STACK, _CAT) and op.call is None:
        pieces, *more = op.args
        dim = more[0] if more else op.kwargs.get("dim", 0)
        if all(isinstance(v, Value) for v in pieces) and isinstance(dim, int):
            return tuple(pieces), dim % len(value.shape), op.target == _STACK
    return None


def _seen_by_torch(graph: Graph, order: list[Value]) -> set[Value]:
    """Results and what torch computes with, also through views: there the order of the elements in memory shows."""
    found = {*graph.outputs, *(v for call in order if isinstance(call.op, TorchCall) for v in operands(call))}
    for value in reversed(order):
        if value in found and isinstance(value.op, View):
            found.add(value.op.operand)
    return found


def _loop(value: Value) -> Recurrence | None:
    return value.op.loop if isinstance(value.op, Recur) else None


def _take_ends(graph: Graph, loops: list[Recurrence]) -> None:
    """States after the last step are results of their own: every step is stored only where others are read."""
    views: dict[Value, list[Value]] = {}
    for value in topological(graph.outputs):
        op = value.op
        if not isinstance(op, View) or _loop(op.operand) not in loops:
            continue
        recur = op.operand.op
        assert isinstance(recur, Recur)
        if op.map == maps.select(op.operand.shape, 0, recur.loop.steps):
            value.op = Recur(recur.loop, recur.state, False)
        elif value in graph.outputs:
            views.setdefault(op.operand, []).append(value)
    for several in views.values():  # results have memory of their own
        for value in several[1:]:
            copied = Build.view(*_view_of(value))
            value.op = Pointwise("identity", (copied,))


def _view_of(value: Value) -> tuple[Value, maps.Map, str]:
    assert isinstance(value.op, View)
    return value.op.operand, value.op.map, value.op.name
