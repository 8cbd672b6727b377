"""Recurrences that one launch goes through: the layers of a stack, each a step behind the one below, and the two directions of a layer.

The steps of one recurrence keep a few multiprocessors busy, and wait for memory most of the time. Those of a layer need only
what the layer below made in the same step, so layers run side by side as a wavefront.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import sympy

from ..graph import maps
from ..graph.build import Build
from ..graph.loops import PROJECTED, made_of_numbers, number_of, results, substituted
from ..graph.lowered import Graph
from ..graph.order import topological
from ..graph.sizes import ZERO, same
from ..graph.value import Below, Concat, Contract, Given, Pointwise, Recur, Recurrence, Value, View

#: Whether so many recurrences like this one fit a launch; layers have the weights of their inputs on chip, too.
Fits = Callable[[Recurrence, int], bool]


def join_recurrences(graph: Graph, layers_fit: Fits, directions_fit: Fits) -> int:
    """Join recurrences of one body where they fit. Returns how many launches went."""
    before = len(_loops(graph))
    for chain in _chains(graph):
        start = 0
        while start < len(chain):
            count = max(
                (n for n in range(1, len(chain) - start + 1) if n == 1 or layers_fit(chain[start], n)), default=1
            )
            if count > 1:
                _replace(graph, chain[start : start + count], _stacked(chain[start : start + count]))
            start += count
    for pair in _pairs(graph):
        if directions_fit(pair[0], 2):
            _replace(graph, list(pair), _side_by_side(pair))
    return before - len(_loops(graph))


def _loops(graph: Graph) -> list[Recurrence]:
    """The recurrences, in the order in which they can run."""
    return list(dict.fromkeys(v.op.loop for v in topological(graph.outputs) if isinstance(v.op, Recur)))


def _chains(graph: Graph) -> list[list[Recurrence]]:
    """Recurrences each of which takes all steps of the one before as its input, and nothing else but that layer's weights."""
    loops = _loops(graph)
    following: dict[Recurrence, Recurrence] = {}
    for loop in loops:
        found = _source(loop)
        if found is not None and found[0] not in following and _alike(found[0], loop):
            following[found[0]] = loop
    starts = [loop for loop in loops if loop in following and loop not in following.values()]
    chains = []
    for loop in starts:
        chain = [loop]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        chains.append(chain)
    return chains


def _alike(a: Recurrence, b: Recurrence) -> bool:
    """Whether two recurrences have one body, over states of one shape."""
    if not a.name or a.name != b.name or a.members or b.members or len(a.parts) != len(b.parts):
        return False
    shapes = zip((*a.held, *a.parts), (*b.held, *b.parts), strict=True)
    sizes = [pair for x, y in shapes for pair in zip(x.shape, y.shape, strict=True)]
    return a.given[0].dtype == b.given[0].dtype and same(a.steps, b.steps) and all(same(n, m) for n, m in sizes)


def _source(loop: Recurrence) -> tuple[Recurrence, Value, list[Value]] | None:
    """The recurrence below, the weight of its steps in this one's input, and the biases added to it; None for other inputs."""
    value, biases = loop.given[0], []
    while isinstance(value.op, Pointwise) and value.op.function == "add":
        left, right = value.op.operands
        if not (isinstance(left, Value) and isinstance(right, Value) and len(right.shape) == 1):
            return None
        biases.append(right)
        value = left
    if loop.backward or not isinstance(value.op, Contract):
        return None
    steps, weight = value.op.left, value.op.right
    if not (isinstance(weight.op, View) and weight.op.name == "permute" and len(weight.shape) == 2):
        return None
    if not (isinstance(steps.op, View) and steps.op.name == "slice" and isinstance(steps.op.operand.op, Recur)):
        return None
    below = steps.op.operand.op
    fits = below.each and below.state == 0 and not below.loop.backward and len(steps.shape) == 3
    return (below.loop, weight.op.operand, biases) if fits else None


def _pairs(graph: Graph) -> list[tuple[Recurrence, Recurrence]]:
    """The two directions of a layer: the products of one tensor with two weights are given to them."""
    loops = [loop for loop in _loops(graph) if loop.members is None]
    found: list[tuple[Recurrence, Recurrence]] = []
    for first in loops:
        taken = {loop for pair in found for loop in pair}
        for second in loops:
            if first.backward or not second.backward or {first, second} & taken or not _alike(first, second):
                continue
            if _along(first) == _along(second) and _input(first.given[0]) is _input(second.given[0]) is not None:
                found.append((first, second))
                break
    return found


def _along(loop: Recurrence) -> int | None:
    assert isinstance(loop.parts[0].op, Given)
    return loop.parts[0].op.along


def _input(value: Value) -> Value | None:
    """What a recurrence's input is a product of."""
    while isinstance(value.op, Pointwise) and value.op.function == "add" and isinstance(value.op.operands[0], Value):
        value = value.op.operands[0]
    return value.op.left if isinstance(value.op, Contract) else None


def _stacked(chain: list[Recurrence]) -> Recurrence:
    """The layers as members of one recurrence: the lowest is given its inputs, the others take them from the one below."""
    lowest, count = chain[0], len(chain)
    found = [source for loop in chain[1:] if (source := _source(loop)) is not None]
    given = list(lowest.given)
    inputs = _padded(Build.unsqueeze(given[0], 0), 0, count - 1)
    weights = _padded(_together([weight for _, weight, _ in found]), 1, 0)
    biases = [_together([own[i] for _, _, own in found]) for i in range(len(found[0][2]))]
    if biases:
        whole = biases[0] if len(biases) == 1 else Build.pointwise("add", *biases, dtype=biases[0].dtype, name="bias")
        biases = [_padded(whole, 1, 0)]
    own = [_together([loop.given[i] for loop in chain]) for i in range(1, len(given))]
    # Their share of the inputs: what is given to the lowest (0 for the others), and a product with what is below (0 for the lowest).
    hidden, share = lowest.held[0], lowest.parts[0]
    below = Value(Below(), hidden.shape, hidden.dtype, "below")
    weight = Value(Given(), weights.shape[1:], weights.dtype, weights.name)
    product = Build.contract(below, weight, "bk", "nk", "bn", hidden.dtype)
    added = [Value(Given(), bias.shape[1:], bias.dtype, bias.name) for bias in biases]
    whole = Build.pointwise("add", share, product)
    for bias in added:
        whole = Build.pointwise("add", whole, bias)
    return Recurrence(
        lowest.name,
        lowest.steps,
        False,
        lowest.held,
        (*lowest.parts, weight, *added),
        substituted(lowest.next, {share: whole}),
        _firsts(chain),
        (inputs, *own, weights, *biases),
        count,
        below,
        lowest.bounded,
    )


def _side_by_side(pair: tuple[Recurrence, Recurrence]) -> Recurrence:
    """Both directions as members of one that goes forward: what is given to the backward one is turned around."""
    forward, backward = pair
    along = _along(forward)
    assert along is not None
    turned = Build.view(backward.given[0], maps.flip(backward.given[0].shape, (along,)), "flip")
    inputs = _together([forward.given[0], turned], name=PROJECTED)
    own = [_together([loop.given[i] for loop in pair]) for i in range(1, len(forward.given))]
    return Recurrence(
        forward.name,
        forward.steps,
        False,
        forward.held,
        forward.parts,
        forward.next,
        _firsts(list(pair)),
        (inputs, *own),
        2,
        bounded=forward.bounded,
    )


def _firsts(loops: list[Recurrence]) -> tuple[Value, ...]:
    return tuple(_together([loop.first[i] for loop in loops]) for i in range(len(loops[0].first)))


def _together(values: list[Value], name: str = "") -> Value:
    """The values along a new first dimension; what they are selected from where that is all of it."""
    first = values[0]
    if len(values) > 1 and all(made_of_numbers(v) for v in values):
        numbers = {number_of(v) for v in values}
        if len(numbers) == 1:
            return Build.expand(Build.unsqueeze(first, 0), (sympy.Integer(len(values)), *first.shape))
    pieces = tuple(Build.unsqueeze(v, 0) for v in values)
    whole = Concat(pieces, 0)
    known = _all_of(whole)
    if known is not None:
        return known
    if len(pieces) == 1:
        return pieces[0]
    return Value(whole, (sympy.Integer(len(values)), *first.shape), first.dtype, name or _of_all(first.name))


def _of_all(name: str) -> str:
    """``weight_hh`` for the ``weight_hh_l0`` of all layers or directions."""
    return re.sub(r"_l\d+(_reverse)?$", "", name)


def _padded(value: Value, low: int, high: int) -> Value:
    """With zeros before and after along the first dimension."""
    margins = ((sympy.Integer(low), sympy.Integer(high)), *((ZERO, ZERO) for _ in value.shape[1:]))
    padded = Build.view(value, maps.pad(value.shape, margins, 0.0), "pad")
    padded.name = value.name
    return padded


def _replace(graph: Graph, old: list[Recurrence], joined: Recurrence) -> None:
    """Make every result of ``old`` a view of the results of ``joined``."""
    whole: dict[tuple[int, bool], Value] = {}
    for value in topological(graph.outputs):
        op = value.op
        if not isinstance(op, Recur) or op.loop not in old:
            continue
        key = (op.state, op.each)
        if key not in whole:
            whole[key] = results(joined, op.state, value.dtype, value.name, each=op.each)
        place = old.index(op.loop)
        map = maps.select(whole[key].shape, 0, ZERO + place)
        base = whole[key]
        if op.each and op.loop.backward and not joined.backward:
            base = Build.view(base, map, "select")
            map = maps.flip(base.shape, (0,))
            value.op = View(map, base, "flip")
        else:
            value.op = View(map, base, "select")
    for value in topological(graph.outputs):
        if isinstance(value.op, Concat) and value.op.dim == 0 and (every := _all_of(value.op)) is not None:
            value.op = View(maps.reshape(every.shape, value.shape), every, "reshape")


def _all_of(op: Concat) -> Value | None:
    """The tensor of which a concatenation has every place of the first dimension in order; None where it is not so."""
    places = []
    for piece in op.operands:
        if not (isinstance(piece.op, View) and piece.op.name == "unsqueeze"):
            return None
        places.append(piece.op.operand)
    bases = {v.op.operand if isinstance(v.op, View) and v.op.name == "select" else None for v in places}
    base = bases.pop() if len(bases) == 1 else None
    if base is None or base.shape[0] != len(places):
        return None
    maps_of = [v.op.map for v in places if isinstance(v.op, View)]
    return base if all(map == maps.select(base.shape, 0, ZERO + i) for i, map in enumerate(maps_of)) else None
