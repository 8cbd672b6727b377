"""Recurrences that begin with zeros store what comes after each step alone, without a first plane of zeros."""

from __future__ import annotations

import dataclasses

import sympy

from ..graph.loops import begins_with_zeros, result_shape
from ..graph.lowered import Graph
from ..graph.map import dim
from ..graph.maps import reshape
from ..graph.order import topological
from ..graph.sizes import ONE, same
from ..graph.value import Recur, Shape, Value, View, operands


def leave_out(graph: Graph) -> int:
    """Let traces of states begin after the first step, where only those places are read. Returns how many do."""
    values = topological(graph.outputs)
    users: dict[Value, list[Value]] = {}
    for value in values:
        for operand in operands(value):
            users.setdefault(operand, []).append(value)
    count = 0
    for value in values:
        op = value.op
        if not (isinstance(op, Recur) and op.each and op.begun and op.along == 0):
            continue
        if begins_with_zeros(op.loop, op.state):
            count += _Shorter(graph, users).left_out(value)
    return count


class _Shorter:
    """A trace that begins later, and the views that become views of it."""

    def __init__(self, graph: Graph, users: dict[Value, list[Value]]) -> None:
        self.outputs, self.users = set(graph.outputs), users
        self.moved: list[tuple[Value, Value, View | None]] = []  # a view, what it is of now; None: it is all of that

    def left_out(self, trace: Value) -> bool:
        op = trace.op
        assert isinstance(op, Recur)
        without = dataclasses.replace(op, begun=False)
        shorter = Value(without, result_shape(without), trace.dtype, trace.name)
        if not self._views(trace, shorter, 0 if op.loop.members is None else 1, at_end=op.loop.backward):
            return False
        wholes = [base for _, base, view in self.moved if view is None]
        for value, base, view in self.moved:
            if view is not None:
                value.op = view
            elif wholes.count(base) == 1 and not any(other is base for _, other, v in self.moved if v is not None):
                value.op = base.op
            else:
                value.op = View(reshape(base.shape, value.shape), base, "reshape")
            value.name = value.name or trace.name
        return True

    def _views(self, value: Value, shorter: Value, d: int, *, at_end: bool) -> bool:
        """Whether every reader of ``value`` reads places that ``shorter``, which lacks one along ``d``, has too.

        ``at_end``: it is the last place that it lacks.
        """
        if value in self.outputs:
            return False
        steps = shorter.shape[d]
        for user in self.users.get(value, []):
            op = user.op
            if not isinstance(op, View) or op.map.guard or op.map.reshapes:
                return False
            place = op.map.index[d]
            along = next((j for j in range(len(user.shape)) if place.has(dim(j))), None)
            if along is None:
                if at_end or not (place.is_Integer and place >= ONE):
                    return False
                self.moved.append((user, shorter, _over(op, shorter, d, place - ONE, user.shape)))
            elif same(place, dim(along) if at_end else dim(along) + ONE) and same(user.shape[along], steps):
                if any(e != dim(i) for i, e in enumerate(op.map.index) if i != d) or len(user.shape) != len(
                    value.shape
                ):
                    return False
                self.moved.append((user, shorter, None))
            elif same(user.shape[along], value.shape[d]) and (
                same(place, dim(along)) or same(place, steps - dim(along))
            ):
                turned = not same(place, dim(along))
                shape = (*user.shape[:along], steps, *user.shape[along + 1 :])
                view = _over(op, shorter, d, place - ONE if turned else place, shape)
                between = Value(view, shape, user.dtype, user.name)
                if not self._views(user, between, along, at_end=at_end != turned):
                    return False
            else:
                return False
        return True


def _over(op: View, operand: Value, d: int, place: sympy.Expr, shape: Shape) -> View:
    """The view of ``operand``, whose dimension ``d`` it addresses by ``place``."""
    index = (*op.map.index[:d], sympy.expand(place), *op.map.index[d + 1 :])
    moved = dataclasses.replace(
        op.map, shape=shape, operand=operand.shape, index=index, inverse=None
    )  # that was of the larger one
    return View(moved, operand, op.name)
