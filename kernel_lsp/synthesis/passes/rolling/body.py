"""The body of a recurrence, from the values that its steps had when they were written out.

What needs no state is computed for all steps at once before it: products above all. A product of a concatenation, or of a sum, is the
sum of the products of its parts, of which the state's alone stays in the body. Terms that need no state are added to each other before.
"""

from __future__ import annotations

import dataclasses

import sympy
import torch

from ...graph.build import Build, opmath
from ...graph.loops import PROJECTED, contracted, made_of_numbers, substituted
from ...graph.map import at, dims
from ...graph.sizes import ONE, ZERO, Index, broadcast, same_shape
from ...graph.value import Concat, Contract, Given, Held, Pointwise, Recurrence, Shape, Value, View, operands
from .chain import Orbit
from .forms import Family, Forms, Members, NotAlike, same
from .together import Together, product

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
#: weights that one product takes together
_MOST_WEIGHTS = 8


@dataclasses.dataclass
class _Sum:
    """Terms of a sum: ``inside`` the body; ``families`` that need no state; ``apart`` what is computed for all steps already."""

    inside: list[Value]
    families: list[Family] = dataclasses.field(default_factory=list)
    apart: list[Value] = dataclasses.field(default_factory=list)

    @property
    def multiplied(self) -> bool:
        return any(isinstance(term.op, Contract) for term in self.inside)


def recurrence(orbits: list[Orbit], forms: Forms) -> tuple[Recurrence, list[int]]:
    """The recurrence that computes the states ``orbits``, and the number of each there.

    Raises:
        NotAlike: no schedule takes its body.
    """
    body = _Body(orbits, forms)
    mine = list(body.held)
    after = [body.value(orbit[1:]) for orbit in orbits]
    for made, held in body.made.items():  # what is multiplied instead of a state is a state itself
        known = dict(zip(body.held, after, strict=False))
        after.append(substituted((made,), known)[0])
        body.held.append(held)
        outside = dict(zip(body.held, body.first, strict=False)) | {part: given for part, given in body.given()}
        first = substituted((made,), outside)[0]
        body.first.append(dataclasses.replace(first, dtype=body.first[0].dtype))
    for state, value in zip(body.held, after, strict=True):
        if not same_shape(value.shape, body.shape):
            raise NotAlike
        state.name = state.name or ("hidden" if state in body.products else "carried")
        if not value.name and isinstance(value.op, Pointwise):
            value.name = f"next_{state.name}"
    after = list(_one_weight(tuple(after), body))
    given = sorted(body.given(), key=lambda pair: _along(pair[0]) is None)
    loop = Recurrence(
        "",
        sympy.Integer(len(orbits[0]) - 1),
        False,
        tuple(body.held),
        tuple(part for part, _ in given),
        tuple(after),
        tuple(body.first),
        tuple(value for _, value in given),
    )
    _check(loop)
    loop = _multiplied_first(loop)
    return loop, [loop.held.index(held) for held in mine]


def _along(part: Value) -> int | None:
    assert isinstance(part.op, Given)
    return part.op.along


class _Body:
    def __init__(self, orbits: list[Orbit], forms: Forms) -> None:
        self.forms, self.together = forms, Together(forms, len(orbits[0]) - 1)
        self.shape: Shape = orbits[0][-1].shape
        for orbit in orbits:
            if not all(same_shape(v.shape, self.shape) and v.dtype == orbits[0][0].dtype for v in orbit):
                raise NotAlike
        self.held = [Value(Held(), self.shape, opmath(orbit[0].dtype)) for orbit in orbits]
        self.first = [orbit[0] for orbit in orbits]
        self.products: dict[Value, list[Value]] = {}  # of each state those with a weight
        self.made: dict[Value, Value] = {}  # what the body multiplies that is made of states → a state for it
        self._before = {orbit[:-1]: held for orbit, held in zip(orbits, self.held, strict=True)}
        self._opened: dict[Family, Members] = {}
        self._needs: dict[Family, bool] = {}
        self._sums: dict[Family, _Sum] = {}
        self._values: dict[Family, Value] = {}
        self._parts: dict[tuple[Value, int | None], Value] = {}

    def given(self) -> list[tuple[Value, Value]]:
        """(part of the body, what is given for it)."""
        return [(part, value) for (value, _), part in self._parts.items()]

    def part(self, value: Value, along: int | None = None) -> Value:
        if along is None and made_of_numbers(value):
            return value
        shape = value.shape if along is None else value.shape[1:]
        return self._parts.setdefault((value, along), Value(Given(along), shape, value.dtype, value.name))

    def drop(self, part: Value) -> None:
        """Nothing in the body is given this any more."""
        self._parts = {key: known for key, known in self._parts.items() if known is not part}

    def opened(self, family: Family) -> Members:
        if family not in self._opened:
            self._opened[family] = self.forms.opened(family)
        return self._opened[family]

    def needs_state(self, family: Family) -> bool:
        if family in self._before:
            return True
        if same(family):
            return False
        if family not in self._needs:
            self._needs[family] = any([self.needs_state(one) for one in self.opened(family).operands])
        return self._needs[family]

    def value(self, family: Family) -> Value:
        """What the body has for a family."""
        if family not in self._values:
            terms = self._terms(family)
            inside = list(terms.inside)
            alone = len(terms.families) == 1 or all([self._in_body(one) for one in terms.families])
            if terms.apart or not alone:
                inside.insert(0, self._added(terms, family[-1]))
            else:
                inside[:0] = [self._without_state(one) for one in terms.families]
            total = inside[0]
            for term in inside[1:]:
                total = Build.pointwise("add", total, term)
            self._values[family] = total
        return self._values[family]

    def _added(self, terms: _Sum, like: Value) -> Value:
        """Terms that need no state, added up for all steps before the recurrence."""
        values = [*terms.apart, *(self.together.aligned(family, like) for family in terms.families)]
        values.sort(key=lambda v: len(v.shape) <= len(like.shape))  # what differs from step to step comes first
        total = values[0]
        for value in values[1:]:
            total = Build.pointwise("add", total, value, dtype=like.dtype)
        if len(values) > 1:
            total.name = PROJECTED
        return self.part(total, 0 if len(total.shape) > len(like.shape) else None)

    def _terms(self, family: Family) -> _Sum:
        if family not in self._sums:
            self._sums[family] = self._split(family)
        return self._sums[family]

    def _split(self, family: Family) -> _Sum:
        if family in self._before:
            return _Sum([self._before[family]])
        if not self.needs_state(family):
            return _Sum([], [family])
        members, last = self.opened(family), family[-1]
        op, key = last.op, members.form.key
        assert isinstance(key, tuple)
        if key[0] == "product":
            return self._product(members, last, transposed=key[-1])
        if isinstance(op, Pointwise):
            if op.function == "add" and len(members.operands) == 2:
                left, right = (self._terms(one) for one in members.operands)
                kept = all(same_shape(v.shape, last.shape) for v in (*left.inside, *right.inside))
                if kept and (left.multiplied or right.multiplied):
                    lists = zip(vars(left).values(), vars(right).values(), strict=True)
                    return _Sum(*[[*a, *b] for a, b in lists])
            return _Sum([self._pointwise(op, members, last)])
        if isinstance(op, View) and not any(members.strides):
            inner = self.value(members.operands[0])
            return _Sum([Value(View(op.map, inner, op.name), last.shape, inner.dtype)])
        raise NotAlike

    def _pointwise(self, op: Pointwise, members: Members, last: Value) -> Value:
        families = iter(members.operands)
        given = tuple(self.value(next(families)) if isinstance(v, Value) else v for v in op.operands)
        return Value(Pointwise(op.function, given), last.shape, opmath(last.dtype), last.name)

    def _without_state(self, family: Family) -> Value:
        """What is given to the body: elementwise steps of what is in memory are left to it, other values computed before."""
        if same(family):
            return self.part(family[0])
        members, last = self.opened(family), family[-1]
        if not self._in_body(family) or all(map(same, members.operands)):
            return self.part(self.together.whole(family), 0)
        if isinstance(last.op, Pointwise):
            return self._pointwise(last.op, members, last)
        assert isinstance(last.op, View)
        inner = self._without_state(members.operands[0])
        return Value(View(last.op.map, inner, last.op.name), last.shape, inner.dtype)

    def _in_body(self, family: Family) -> bool:
        if same(family):
            return True
        members, op = self.opened(family), family[-1].op
        if isinstance(op, View):
            return same(members.operands[0]) or (not any(members.strides) and self._in_body(members.operands[0]))
        return isinstance(op, Pointwise) and all([self._in_body(one) for one in members.operands])

    def _product(self, members: Members, last: Value, *, transposed: bool) -> _Sum:
        rows, weights = members.operands
        if not same(weights):
            raise NotAlike
        weight, result, across = weights[0], _Sum([]), 1 if transposed else 0
        for family, start, size in self._pieces(rows, ZERO):
            part = weight if size == weight.shape[across] else Build.slice(weight, across, start, ONE, size)
            part.name = part.name or weight.name
            if self.needs_state(family):
                result.inside.append(self._contract(family, part, transposed=transposed))
            elif same(family):
                turned = Build.permute(part, (1, 0)) if transposed else part
                result.apart.append(Build.matmul(family[0], turned, last.dtype))
            else:
                whole = self.together.whole(family)
                result.apart.append(product(whole, part, last, transposed=transposed))
        return result

    def _pieces(self, family: Family, start: sympy.Expr) -> list[tuple[Family, sympy.Expr, sympy.Expr]]:
        """(family, first column, columns) whose products add up to that of ``family``."""
        if not same(family) and self.needs_state(family) and family not in self._before:
            members, last = self.opened(family), family[-1]
            if isinstance(last.op, Concat) and last.op.dim == 1:
                found = []
                for piece in members.operands:
                    found += self._pieces(piece, start)
                    start += piece[-1].shape[1]
                return found
            added = isinstance(last.op, Pointwise) and last.op.function == "add" and len(members.operands) == 2
            alike = all(same_shape(one[-1].shape, last.shape) for one in members.operands)
            if added and alike and not all(self.needs_state(one) for one in members.operands):
                return [piece for one in members.operands for piece in self._pieces(one, start)]
        return [(family, start, family[-1].shape[1])]

    def _contract(self, family: Family, weight: Value, *, transposed: bool) -> Value:
        state = self.value(family)
        if not isinstance(state.op, Held):
            if not same_shape(state.shape, self.shape) or not self._of_states(state):
                raise NotAlike
            state = self.made.setdefault(state, Value(Held(), self.shape, state.dtype, "multiplied"))
        turned = weight if transposed else Build.permute(weight, (1, 0))
        product = Build.contract(state, self.part(turned), "bk", "nk", "bn", state.dtype)
        self.products.setdefault(state, []).append(product)
        return product

    def _of_states(self, value: Value) -> bool:
        """Whether it is elementwise in states, and in what all steps are given."""
        if isinstance(value.op, Given):
            return value.op.along is None
        if isinstance(value.op, Held):
            return True
        return isinstance(value.op, Pointwise | View) and all(self._of_states(v) for v in operands(value))


def _one_weight(after: tuple[Value, ...], body: _Body) -> tuple[Value, ...]:
    """The body with one product for each state: weights of its parts lie one below the other."""
    known: dict[Value, Value] = {}
    of_part = {part: value for part, value in body.given()}
    for state, products in body.products.items():
        units = state.shape[-1]
        weights = [v.op.right for v in products if isinstance(v.op, Contract)]
        whole = all(v.shape[0].is_Integer and v.shape[0] % units == 0 for v in weights) if units.is_Integer else False
        if not 1 < len(set(weights)) <= _MOST_WEIGHTS or len(set(weights)) < len(weights) or not whole:
            continue
        if any(v.dtype != weights[0].dtype for v in weights):
            continue
        rows = sum((v.shape[0] for v in weights), ZERO)
        joined = Build.concat(tuple(of_part[v] for v in weights), 0, (rows, units), weights[0].dtype)
        joined.name = "weights"
        product = Build.contract(state, body.part(joined), "bk", "nk", "bn", state.dtype)
        start = ZERO
        for value, weight in zip(products, weights, strict=True):
            known[value] = Build.slice(product, 1, start, ONE, weight.shape[0])
            start += weight.shape[0]
            body.drop(weight)
    return substituted(after, known) if known else after


def _check(loop: Recurrence) -> None:
    """Check that every state is read where it is stored, and every product at the row and unit that it makes.

    Raises:
        NotAlike: one is not.
    """
    shape, products = loop.held[0].shape, contracted(loop)
    state = tuple(ZERO if n == ONE else e for e, n in zip(dims(len(shape)), shape, strict=True))
    if not loop.given or ZERO in shape:
        raise NotAlike
    if products and (len(shape) != 2 or shape[1] == ONE or not shape[1].is_Integer):
        raise NotAlike
    if any(v.dtype not in _DTYPES for v in loop.held) or (products and len({v.dtype for v in loop.first}) > 1):
        raise NotAlike
    seen: set[tuple[Value, Index]] = set()
    waiting = [(value, state) for value in loop.next]
    while waiting:
        value, index = waiting.pop()
        if (value, index) in seen:
            continue
        seen.add((value, index))
        op = value.op
        if isinstance(op, Held):
            fits = index == state
        elif isinstance(op, Contract):
            shift = sympy.expand(index[1] - state[1])
            fits = index[0] == state[0] and not shift.free_symbols & set(state)
        else:
            fits = True
        if not fits:
            raise NotAlike
        if isinstance(op, Pointwise):
            waiting += [(v, broadcast(index, value.shape, v.shape)) for v in operands(value)]
        elif isinstance(op, View):
            if op.map.guard and not made_of_numbers(value):
                raise NotAlike
            waiting.append((op.operand, tuple(sympy.expand(e) for e in at(op.map, index))))


def _multiplied_first(loop: Recurrence) -> Recurrence:
    """With the states that are multiplied in front, and whether the only one such is within one."""
    products = contracted(loop)
    order = sorted(range(len(loop.held)), key=lambda i: loop.held[i] not in products)
    held, after, first = (tuple(values[i] for i in order) for values in (loop.held, loop.next, loop.first))
    bounded = len(products) == 1 and _within_one(after[0])
    return dataclasses.replace(loop, held=held, next=after, first=first, bounded=bounded)


def _within_one(value: Value) -> bool:
    """Whether no number is beyond -1 and 1."""
    if not isinstance(value.op, Pointwise):
        return isinstance(value.op, View) and _within_one(value.op.operand)
    if value.op.function == "mul":
        return all(isinstance(v, Value) and _within_one(v) for v in value.op.operands)
    return value.op.function in ("tanh", "sigmoid")
