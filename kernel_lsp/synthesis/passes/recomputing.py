"""Which intermediate values are stored because kernels would otherwise compute them again and again.

A kernel computes what is elementwise for each element that it needs. Where a value is read at several places (the neighbours
of a stencil, the pieces of a roll), all before it is computed for each of them, and a chain of such steps comes to as many
loads as the product of all steps. Here the *accesses* of each value are followed from the inputs on: which elements of what
is stored one element needs. They are sets, so that what is needed twice counts once, and as soon as one of them shows that
storing a value costs less, that value is stored and is an access itself from there on: no set grows with the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import sympy
import torch

from ..graph.build import FLOAT8
from ..graph.division import simplify, within
from ..graph.functions import FUNCTIONS
from ..graph.map import Guard, dim, dims
from ..graph.order import Order
from ..graph.sizes import ZERO, Index, broadcast
from ..graph.value import Concat, Fold, Gather, Input, Pointwise, Recur, Shape, Value, View, numel, operands
from ..kernel.access import gather_index
from ..kernel.execution_plan import Hints, Kernel, hint
from .host_views import APART

#: What storing an element and a kernel more cost, as so many loads from a cache: memory takes about eight times as long to write or read one.
_STORING = 16.0
#: More loads of one element than these are not computed in one kernel, however small a part of what is stored it reads.
_MOST_LOADS = 128
#: Costs of an element up to this are worked out where several kernels compute it.
_LOOKED_INTO = 1000.0
#: Fewer accesses of the same tensors than these are not looked into.
_FEW = 8
#: An operation, as so many loads: of a few instructions, of the special function unit or a division, and of libdevice or a helper.
_SIMPLE, _SPECIAL, _LONG = 0.1, 0.5, 2.0
_SPECIALS = frozenset(("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "sigmoid", "erf", "div"))
#: What an access costs whose index divides, is clamped or asked for, and one at a place that is loaded itself.
_COMPUTED, _CHOSEN = 2.0, 4.0

#: An element of a value that is not computed here: its index over the indices of what needs it, and the conditions that are asked.
Access = tuple[Value, Index, frozenset[Guard]]


@dataclass
class _Need:
    """One element of a value that one of the value looked at needs, and what it needs itself, by their places in a list."""

    value: Value
    weight: float
    stored: float  # its weight where the value is loaded
    needs: list[int] = field(default_factory=list)


def repeated(order: Order, hints: Hints, kept: Callable[[Value], bool], apart: Collection[Value]) -> set[Value]:
    """Values to be stored before kernels read them, since one kernel would compute them at several places.

    ``kept``: what is stored anyway; ``apart``: what is not to be, between a product and what it completes.
    """
    walk = _Walk(order, hints, kept, apart)
    walk.run()
    return walk.chosen


def in_several(
    order: Order, hints: Hints, computed: Iterable[tuple[Kernel, Collection[Value]]], stored: Collection[Value]
) -> set[Value]:
    """Values to be stored since several kernels compute them, of those that ``stored`` lacks.

    ``computed``: what each kernel computes itself. Of values that are computed from one another it is the one that saves most.
    """
    kernels: dict[Value, list[Kernel]] = {}
    for kernel, values in computed:
        for value in values:
            kernels.setdefault(value, []).append(kernel)
    walk = _Walk(order, hints, lambda v: v in stored, ())
    most = _at_most(order, walk.is_leaf)
    saved: dict[Value, float] = {}
    for value, users in kernels.items():
        if len(users) < 2 or len(users) * most[value] <= _STORING or not walk.can_be_stored(value):
            continue
        elements = sum(_points(kernel, hints) for kernel in users)
        own = _cost(walk.needs(value), 0, ()) if most[value] < _LOOKED_INTO else _LOOKED_INTO
        gain = elements * (own - 1.0) - walk.elements(value) * (own + _STORING)
        if gain > 0:
            saved[value] = gain
    found: set[Value] = set()
    for value in sorted(saved, key=lambda v: (-saved[v], order.place[v])):
        if not any(order.above[value] & order.bit(f) or order.above[f] & order.bit(value) for f in found):
            found.add(value)
    return found


def _at_most(order: Order, is_leaf: Callable[[Value], bool]) -> dict[Value, float]:
    """What one element of each value costs where nothing is needed twice, up to ``_LOOKED_INTO``."""
    costs: dict[Value, float] = {}
    for value in order.values:
        needs = [_CHOSEN if is_leaf(o) else costs[o] for o in operands(value)]
        costs[value] = min(_work(value) + sum(needs), _LOOKED_INTO)
    return costs


def _points(kernel: Kernel, hints: Hints) -> int:
    """How many points the domain of a kernel has."""
    size = kernel.domain.size
    return hint(sympy.Mul(*(size[atom] for atom in [*kernel.domain.kept, *kernel.domain.reduced])), hints)


class _Walk:
    def __init__(self, order: Order, hints: Hints, kept: Callable[[Value], bool], apart: Collection[Value]) -> None:
        self.order, self.hints, self.kept, self.apart = order, hints, kept, apart
        self.chosen: set[Value] = set()
        self.found: dict[Value, frozenset[Access]] = {}  # the accesses of what is computed
        self.tried: dict[
            Value, int
        ] = {}  # how many accesses of the same tensors something before it had when it was looked into
        self.steps: dict[Value, list[Access]] = {}
        self.opaque: set[Value] = set()  # of which nothing is known to gain
        self.moves: dict[tuple[Index, Shape], _Move] = {}  # steps of a chain are alike

    def run(self) -> None:
        """Choose what is stored, operands first."""
        wanted = self._of_many_paths()
        for value in self.order.values:
            if value not in wanted:
                continue
            self._follow(value)
            while not self.is_leaf(value) and (found := self._look_into(value)) is not None:
                self.chosen.add(found)
                for other in self.order.below(found):
                    if other in self.found:
                        self._follow(other)
                    if other is value:
                        break

    def is_leaf(self, value: Value) -> bool:
        """Whether what needs ``value`` loads it."""
        return value in self.chosen or isinstance(value.op, Input | APART | Fold | Recur) or self.kept(value)

    def _of_many_paths(self) -> set[Value]:
        """The values that more paths lead to than are let be, and what they are computed from: others have no more accesses."""
        paths: dict[Value, int] = {}
        wanted: set[Value] = set()
        for value in self.order.values:
            leads = 1 if self.is_leaf(value) else sum(paths[o] for o in operands(value))
            paths[value] = min(leads, _MOST_LOADS)
        for value in reversed(self.order.values):
            if not self.is_leaf(value) and (paths[value] > _FEW or value in wanted):
                wanted |= {value, *operands(value)}
        return {value for value in wanted if not self.is_leaf(value)}

    # -- accesses -----------------------------------------------------------------------------------------------------

    def _follow(self, value: Value) -> None:
        """Note the accesses of ``value``."""
        result: set[Access] = set()
        before = 0
        for operand, index, guards in self._step(value):
            if self.is_leaf(operand) or operand in self.opaque or operand not in self.found:
                result.add((operand, index, guards))
                continue
            before = max(before, self.tried.get(operand, 0))
            if not guards and index == dims(len(operand.shape)):
                result |= self.found[operand]
                continue
            move = self._move(index, value.shape)
            result.update(
                (leaf, tuple(move(e) for e in at), guards | move.guards(asked))
                for leaf, at, asked in self.found[operand]
            )
        self.found[value], self.tried[value] = frozenset(result), before

    def _step(self, value: Value) -> list[Access]:
        known = self.steps.get(value)
        if known is None:
            known = self.steps[value] = list(dict.fromkeys(_step(value, self.order.place[value])))
        return known

    def _move(self, index: Index, shape: Shape) -> _Move:
        if (index, shape) not in self.moves:
            self.moves[index, shape] = _Move(index, _ranges(shape))
        return self.moves[index, shape]

    # -- decisions ----------------------------------------------------------------------------------------------------

    def _look_into(self, value: Value) -> Value | None:
        """What to store so that ``value`` costs less; None where that does not pay, or there is nothing."""
        accesses = self.found[value]
        again = len(accesses) - len({leaf for leaf, _, _ in accesses})
        if again < _FEW or again <= self.tried[value] * 1.25 or isinstance(value.op, View):
            return None
        needs = self.needs(value)
        places: dict[Value, list[int]] = {}
        for i, need in enumerate(needs):
            places.setdefault(need.value, []).append(i)
        whole = _cost(needs, 0, ())
        best: tuple[float, Value] | None = None
        for candidate in self.order.values[: self.order.place[value]]:
            at = places.get(candidate, [])
            if len(at) < 2 or not self.can_be_stored(candidate):
                continue
            own = _cost(needs, at[0], ())
            less = whole - _cost(needs, 0, at)
            share = self.elements(candidate) / self.elements(value)
            gain = less - own * share - _STORING * max(1.0, share)
            if gain <= 0 and len(accesses) > _MOST_LOADS and less > own:
                gain = less - whole  # whatever it costs: the most that goes
            elif gain <= 0:
                continue
            if best is None or gain > best[0]:
                best = gain, candidate
        if best is not None:
            return best[1]
        self.tried[value] = again
        if len(accesses) > _MOST_LOADS:
            self.opaque.add(value)
        return None

    def can_be_stored(self, value: Value) -> bool:
        computed = isinstance(value.op, Pointwise | Concat | Gather) and not self.is_leaf(value)
        storable = value.dtype != torch.bool and value.dtype not in FLOAT8 and not value.dtype.is_complex
        return computed and storable and value not in self.apart

    def elements(self, value: Value) -> int:
        return max(1, hint(numel(value.shape), self.hints))

    def needs(self, value: Value) -> list[_Need]:
        """All that one element of ``value`` needs, itself first; each element once."""
        result: list[_Need] = []
        known: dict[Access, int] = {}
        waiting: list[Access] = []

        def place(access: Access) -> int:
            if access not in known:
                known[access] = len(result)
                leaf = access[0] is not value and self.is_leaf(access[0])
                load = _load(access)
                result.append(_Need(access[0], load if leaf else _work(access[0]), load))
                if not leaf:
                    waiting.append(access)
            return known[access]

        place((value, dims(len(value.shape)), frozenset()))
        while waiting:
            access = waiting.pop()
            v, index, guards = access
            move = self._move(index, value.shape)
            needs = [
                place((operand, tuple(move(e) for e in at), guards | move.guards(asked)))
                for operand, at, asked in self._step(v)
            ]
            result[known[access]].needs = needs
        return result


class _Move:
    """Indices over those of a value, as indices over those of what reads that at ``index``."""

    def __init__(self, index: Index, ranges: dict[sympy.Symbol, sympy.Expr]) -> None:
        self.place, self.ranges = dict(zip(dims(len(index)), index, strict=True)), ranges
        self.known: dict[sympy.Expr, sympy.Expr] = {}
        self.same = index == dims(len(index))

    def __call__(self, expr: sympy.Expr) -> sympy.Expr:
        if self.same:
            return expr
        found = self.known.get(expr)
        if found is None:
            found = self.known[expr] = simplify(expr.xreplace(self.place), self.ranges)
        return found

    def guards(self, guards: Iterable[Guard]) -> frozenset[Guard]:
        """Those that are not always so."""
        moved = ((self(e), low, high) for e, low, high in guards)
        return frozenset(guard for guard in moved if not all(within(*guard, self.ranges)))


def _ranges(shape: Shape) -> dict[sympy.Symbol, sympy.Expr]:
    return {dim(i): n for i, n in enumerate(shape)}


def _step(value: Value, place: int) -> Iterable[Access]:
    """What one element of a value needs of its operands."""
    op, index, ranges, none = value.op, dims(len(value.shape)), _ranges(value.shape), frozenset[Guard]()
    if isinstance(op, Pointwise):
        for v in operands(value):
            yield v, broadcast(index, value.shape, v.shape), none
    elif isinstance(op, View):
        move = _Move(index, ranges)
        yield op.operand, tuple(simplify(e, ranges) for e in op.map.index), move.guards(op.map.guard)
    elif isinstance(op, Concat):
        start = ZERO
        for v in op.operands:
            yield v, (*index[: op.dim], sympy.expand(index[op.dim] - start), *index[op.dim + 1 :]), none
            start = sympy.expand(start + v.shape[op.dim])
    elif isinstance(op, Gather):
        at = gather_index(value, index)
        yield op.index, at, none
        chosen = sympy.Function(f"at_{place}", integer=True)(*at)
        after = op.dim + (1 if op.kind == "take" else len(op.index.shape))
        yield op.table, (*index[: op.dim], chosen, *index[after:]), none


def _load(access: Access) -> float:
    """What it costs to load the element."""
    _, index, guards = access
    computed = [e for e in index if not (e.is_Symbol or e.is_number)]
    functions = [f for e in computed for f in e.atoms(sympy.Function, sympy.Max, sympy.Min)]
    if any(isinstance(f, sympy.core.function.AppliedUndef) for f in functions):
        return _CHOSEN
    if not any(e.free_symbols for e in index):
        return 0.0  # one number for all
    return _COMPUTED if functions or guards else 1.0


def _work(value: Value) -> float:
    """What it costs to compute an element of its operands'."""
    op = value.op
    if not isinstance(op, Pointwise) or op.function in ("constant", "identity"):
        return 0.0
    function = FUNCTIONS[op.function]
    if function.library or function.helper:
        return _LONG
    return _SPECIAL if op.function in _SPECIALS else _SIMPLE


def _cost(needs: list[_Need], root: int, loaded: Collection[int]) -> float:
    """What one element costs where those at the places ``loaded`` are loaded."""
    total, seen, waiting, ends = 0.0, {root}, [root], set(loaded)
    while waiting:
        i = waiting.pop()
        need = needs[i]
        if i in ends:
            total += need.stored
            continue
        total += need.weight
        new = [n for n in need.needs if n not in seen]
        seen.update(new)
        waiting += dict.fromkeys(new)
    return total
