"""A family of values computed together: one value with a dimension more, in front, along which the steps of a loop lie."""

from __future__ import annotations

import sympy

from ...graph import maps
from ...graph.build import Build
from ...graph.map import Map, dim, dims
from ...graph.sizes import ONE, Index
from ...graph.value import Concat, Contract, Gather, Pointwise, Recur, Reduce, Scan, Shape, Value, View
from .forms import Family, Forms, Members, NotAlike, same


class Together:
    """``steps`` values of a family as one."""

    def __init__(self, forms: Forms, steps: int) -> None:
        self.forms, self.steps = forms, sympy.Integer(steps)
        self._known: dict[Family, Value] = {}

    def whole(self, family: Family) -> Value:
        """The values of all steps, [steps, *shape].

        Raises:
            NotAlike: they cannot be computed together.
        """
        if same(family):
            return Build.expand(Build.unsqueeze(family[0], 0), (self.steps, *family[0].shape))
        if family not in self._known:
            self._known[family] = self._computed(family)
        return self._known[family]

    def _computed(self, family: Family) -> Value:
        members, last = self.forms.opened(family), family[-1]
        op, key = last.op, members.form.key
        assert isinstance(key, tuple)
        if key[0] == "product":
            value = self._product(members, last, transposed=key[-1])
        elif isinstance(op, Pointwise):
            value = self._pointwise(op, members, last)
        elif isinstance(op, View):
            value = self._view(op, members)
        elif isinstance(op, Reduce):
            value = Value(Reduce(op.kind, self._along(members), tuple(d + 1 for d in op.dims), op.part), (), last.dtype)
        elif isinstance(op, Scan):
            value = Value(Scan(op.kind, self._along(members), tuple(d + 1 for d in op.dims)), (), last.dtype)
        elif isinstance(op, Concat):
            value = Value(Concat(tuple(self.whole(v) for v in members.operands), op.dim + 1), (), last.dtype)
        elif isinstance(op, Gather) and op.kind == "rows" and op.dim == 0 and same(members.operands[0]):
            value = Value(Gather(op.table, self.whole(members.operands[1]), 0, op.kind), (), last.dtype)
        elif isinstance(op, Contract):
            value = self._contract(op, members, last)
        else:
            raise NotAlike
        value.shape = (self.steps, *last.shape)
        value.name, value.node, value.module = value.name or last.name, last.node, last.module
        return value

    def _along(self, members: Members) -> Value:
        """The only operand."""
        (family,) = members.operands
        return self.whole(family)

    def _product(self, members: Members, last: Value, *, transposed: bool) -> Value:
        rows, weights = members.operands
        if not same(weights) or same(rows):
            raise NotAlike
        return product(self.whole(rows), weights[0], last, transposed=transposed)

    def _pointwise(self, op: Pointwise, members: Members, last: Value) -> Value:
        families = iter(members.operands)
        given = [self.aligned(next(families), last) if isinstance(v, Value) else v for v in op.operands]
        return Value(Pointwise(op.function, tuple(given)), (), last.dtype)

    def aligned(self, family: Family, result: Value) -> Value:
        """The values of all steps, so that they broadcast to those of ``result``: what all steps share stays as it is."""
        if same(family):
            return family[0]
        value = self.whole(family)
        for _ in range(len(result.shape) - len(family[0].shape)):
            value = Build.unsqueeze(value, 1)
        return value

    def _view(self, op: View, members: Members) -> Value:
        (family,) = members.operands
        if same(family):
            return _of_one(op, members.strides, self.steps)
        base, map = self.whole(family), op.map
        strides = members.strides or (0,) * len(map.index)
        fixed = not any(strides)
        index = _counting(map.index, strides, self.steps)
        inverse = None
        if fixed and map.inverse is not None:
            inverse = (dim(0), *(None if e is None else _moved((e,))[0] for e in map.inverse))
        guard = tuple((_moved((e,))[0], low, high) for e, low, high in map.guard)
        shape, operand = (self.steps, *map.shape), (self.steps, *map.operand)
        whole = Map(shape, operand, (dim(0), *index), guard, map.pad, inverse, map.reshapes and fixed)
        if op.name == "permute" and fixed:
            whole = maps.permute(operand, (0, *(1 + d for d in map.permutation or ())))
        return Value(View(whole, base, op.name if fixed else "steps"), shape, op.operand.dtype, op.operand.name)

    def _contract(self, op: Contract, members: Members, last: Value) -> Value:
        letter = next(c for c in "stuvwxyzabcdefgh" if c not in op.left_axes + op.right_axes)
        left, right = (family[0] if same(family) else self.whole(family) for family in members.operands)
        left_axes, right_axes = (
            letters if same(family) else letter + letters
            for family, letters in zip(members.operands, (op.left_axes, op.right_axes), strict=True)
        )
        return Value(Contract(left, right, left_axes, right_axes, letter + op.axes), (), last.dtype, "product")


def product(rows: Value, weight: Value, like: Value, *, transposed: bool) -> Value:
    """``rows`` [steps, rows, K] times a matrix, as ``linear`` makes it of a whole layer's input: one row is no dimension."""
    single = rows.shape[1] == ONE
    turned = Build.permute(weight, (1, 0)) if transposed else weight
    left = Build.squeeze(rows, (1,)) if single else rows
    value = Build.matmul(left, turned, like.dtype)
    value.meaning = ("matmul", (left, weight, "T") if transposed else (left, weight))
    return Build.unsqueeze(value, 1) if single else value


def _of_one(op: View, strides: tuple[int, ...], steps: sympy.Integer) -> Value:
    """Views of one tensor at places that move with the steps."""
    base, map = op.operand, op.map
    moving = [d for d, n in enumerate(strides) if n]
    d = moving[0] if len(moving) == 1 else None
    rest = dims(len(base.shape) - 1)
    if d is not None and not map.guard and map.index[:d] + map.index[d + 1 :] == rest and map.index[d].is_Integer:
        start = map.index[d] - strides[d] * (steps - 1)
        return _places(base, d, start, strides[d], steps)
    index = _counting(map.index, strides, steps)
    guard = tuple((_moved((e,))[0], low, high) for e, low, high in map.guard)
    shape = (steps, *map.shape)
    return Value(View(Map(shape, map.operand, index, guard, map.pad), base, "steps"), shape, base.dtype, base.name)


def _places(base: Value, d: int, start: sympy.Expr, stride: int, steps: sympy.Integer) -> Value:
    """Places of dimension ``d``, which comes first."""
    value = base
    if (start, stride, steps) != (0, 1, base.shape[d]):
        value = Build.slice(base, d, start, sympy.Integer(stride), steps)
        assert isinstance(value.op, View)
        from_end = base.shape[0] - steps
        if isinstance(base.op, Recur) and not (stride == 1 and (start == 0 or start == from_end)):
            value.op.name = "steps"  # the host takes no other part of a recurrence's steps
    value.name = value.name or base.name
    if d == 0:
        return value
    order = (d, *(i for i in range(len(base.shape)) if i != d))
    return Build.permute(value, order)


def _counting(last: Index, strides: tuple[int, ...], steps: sympy.Integer) -> Index:
    """The index of each step, of which the last one is known."""
    return tuple(e + n * (dim(0) - steps + 1) for e, n in zip(_moved(last), strides, strict=True))


def _moved(index: Index) -> Index:
    """The same with each of the view's dimensions one further to the right."""
    place = {dim(i): dim(i + 1) for i in range(16)}
    return tuple(e.xreplace(place) for e in index)


def joined(whole: Value, d: int, shape: Shape) -> Value:
    """The concatenation along dimension ``d`` of what the steps have in ``whole``."""
    order = (*range(1, d + 1), 0, *range(d + 1, len(whole.shape)))
    return Build.reshape(whole if d == 0 else Build.permute(whole, order), shape)


def stacked(whole: Value, d: int) -> Value:
    """What the steps have in ``whole`` along dimension ``d``."""
    order = (*range(1, d + 1), 0, *range(d + 1, len(whole.shape)))
    return whole if d == 0 else Build.permute(whole, order)
