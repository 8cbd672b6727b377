"""Finding the steps of a loop in a graph in which they were written out one after the other.

The last step is compared with the one before it: two values are taken, and what they are computed from side by side. Where that
comes to a value of the step before, the steps meet: it is a state, and its counterpart the state one step earlier. From there on the
states alone are compared, step by step, until something differs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...graph.order import topological
from ...graph.value import Value
from .forms import Form, Forms, strided

#: fewer steps stay as they are
LEAST_STEPS = 4
#: values of one form in a step that are told apart
_MOST_ALIKE = 8
#: values that are compared before the search ends, for each value of the graph
_MOST_LOOKS = 40
#: what steps may have in common with the one before
_MOST_STATES = 16

#: The values of a state: before the first step, and after each.
Orbit = tuple[Value, ...]


@dataclass
class Search:
    """Where the search is in a graph: places of its values in order, and how many looks are left."""

    forms: Forms
    order: list[Value]
    place: dict[Value, int] = field(default_factory=dict)
    looks: int = 0

    def __post_init__(self) -> None:
        self.place = {value: i for i, value in enumerate(self.order)}
        self.looks = _MOST_LOOKS * len(self.order)


def chains(outputs: list[Value], forms: Forms) -> Iterator[list[Orbit]]:
    """The states of loops, those of the last one first. The same loop comes again, from another value of its steps."""
    search = Search(forms, topological(outputs))
    alike = _classes(search)
    for value in reversed(search.order):
        members, at = alike.get(value, ([], 0))
        for period in range(1, min(_MOST_ALIKE, at) + 1):
            found = _chain(search, value, members[at - period])
            if found is not None:
                yield found
            if search.looks <= 0:
                return


def _classes(search: Search) -> dict[Value, tuple[list[Value], int]]:
    """For each value those that may be its counterparts in other steps, in order, and its place among them."""
    kinds: dict[Value, int] = {v: hash(form.key) if (form := search.forms(v)) else id(v) for v in search.order}
    for _ in range(2):
        kinds = {v: hash((kinds[v], *(kinds[o] for o in _operands(search, v)))) for v in search.order}
    classes: dict[int, list[Value]] = {}
    found: dict[Value, tuple[list[Value], int]] = {}
    for value in search.order:
        if search.forms(value) is not None:
            members = classes.setdefault(kinds[value], [])
            found[value] = (members, len(members))
            members.append(value)
    return found


def _operands(search: Search, value: Value) -> tuple[Value, ...]:
    form = search.forms(value)
    return () if form is None else form.operands


def _chain(search: Search, last: Value, before: Value) -> list[Orbit] | None:
    first = _compared(search, {last: before}, None)
    if first is None or not 0 < len(first.met) <= _MOST_STATES:
        return None
    after: dict[Value, Value] = {}
    for value, earlier in first.pairs.items():
        if earlier in first.met and after.setdefault(earlier, value) is not value:
            return None
    states = _innermost(search, first, after)
    if not states:
        return None
    orbits = [[after[state], state, first.met[state]] for state in states]
    of = {value: value for value in first.pairs} | {earlier: value for value, earlier in first.pairs.items()}
    strides = dict(first.strides)
    while True:
        roots = {orbit[-2]: orbit[-1] for orbit in orbits}
        found = _compared(search, roots, {orbit[-1] for orbit in orbits})
        if found is None or len(found.met) < len(orbits):
            break
        if any(strides.setdefault(of.get(v, v), stride) != stride for v, stride in found.strides.items()):
            break
        of = {earlier: of.get(value, value) for value, earlier in found.pairs.items()}
        for orbit in orbits:
            orbit.append(found.met[orbit[-1]])
    if len(orbits[0]) <= LEAST_STEPS:
        return None
    return [tuple(reversed(orbit)) for orbit in orbits]


@dataclass
class _Step:
    """A step beside the one before. ``pairs``: value → its counterpart; ``met``: the state it begins with → the state one earlier."""

    pairs: dict[Value, Value]
    met: dict[Value, Value] = field(default_factory=dict)
    strides: dict[Value, tuple[int, ...]] = field(default_factory=dict)


def _compared(search: Search, roots: dict[Value, Value], states: set[Value] | None) -> _Step | None:
    """What ``roots`` are computed from, beside their counterparts, down to ``states``; None where something else differs.

    Without ``states`` a step ends where it reads what is a counterpart already. What is later in the graph is looked at first, so that
    this is known by then.
    """
    place, step, counterparts = search.place, _Step(dict(roots)), set[Value]()
    waiting = [(-place[value], value) for value in roots]
    heapq.heapify(waiting)
    while waiting:
        _, value = heapq.heappop(waiting)
        earlier = step.pairs[value]
        if value in (counterparts if states is None else states) and value not in roots:
            step.met[value] = earlier
            del step.pairs[value]
            continue
        search.looks -= 1
        mine, other = search.forms(value), search.forms(earlier)
        if not _alike(mine, other) or search.looks < 0:
            return None
        assert mine is not None and other is not None
        counterparts.add(earlier)
        step.strides[value] = strided(other, mine)
        for a, b in zip(mine.operands, other.operands, strict=True):
            if a is b:
                continue
            if a not in step.pairs:
                ends = a in (counterparts if states is None else states)
                if not ends and search.forms(a) is None:
                    return None
                step.pairs[a] = b
                heapq.heappush(waiting, (-place[a], a))
            elif step.pairs[a] is not b:
                return None
    return step


def _alike(a: Form | None, b: Form | None) -> bool:
    return a is not None and b is not None and a.key == b.key


def _innermost(search: Search, step: _Step, after: dict[Value, Value]) -> list[Value]:
    """The states that need each other and no other loop's: of two cells in one loop, those of the first."""
    states = list(step.met)
    bit = {state: 1 << i for i, state in enumerate(states)}
    needs: dict[Value, int] = {}
    for value in sorted({*step.pairs, *step.met}, key=search.place.__getitem__):
        needs[value] = bit.get(value, 0)
        if value in step.pairs:
            for operand in _operands(search, value):
                needs[value] |= needs.get(operand, 0)
    closure = [needs[after[state]] for state in states]
    for _ in states:
        closure = [reached | _union(closure, reached) for reached in closure]
    cycles = [i for i, reached in enumerate(closure) if reached >> i & 1]
    if not cycles:
        return []
    within = sum(1 << i for i in cycles)
    chosen = min(cycles, key=lambda i: (closure[i] & within).bit_count())
    return [states[i] for i in cycles if closure[chosen] >> i & 1]


def _union(closure: list[int], reached: int) -> int:
    result = 0
    for i, own in enumerate(closure):
        if reached >> i & 1:
            result |= own
    return result
