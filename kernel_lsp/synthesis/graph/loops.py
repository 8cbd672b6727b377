"""The body of a recurrence at one of its steps: what stands for the outside becomes what is there."""

from __future__ import annotations

import dataclasses
from typing import Any

import sympy

from . import maps
from .sizes import ONE
from .value import Contract, Given, Held, Op, Recurrence, Value, View, topological


def before(loop: Recurrence, step: sympy.Expr) -> sympy.Expr:
    """Where the states that step number ``step`` begins with stand among those of ``Recur`` with ``each``."""
    return sympy.expand(loop.steps - step) if loop.backward else step


def after(loop: Recurrence, step: sympy.Expr) -> sympy.Expr:
    """Where those stand that it ends with."""
    return sympy.expand(loop.steps - step - ONE) if loop.backward else sympy.expand(step + ONE)


def at_step(loop: Recurrence, step: sympy.Expr) -> tuple[Value, ...]:
    """The states after step number ``step`` over ``loop.held`` and values from outside."""
    place = after(loop, step) if loop.backward else step
    known = dict(zip(loop.held, loop.held, strict=True))
    for part, given in zip(loop.parts, loop.given, strict=True):
        assert isinstance(part.op, Given)
        along = part.op.along
        whole = (
            given
            if along is None
            else Value(View(maps.select(given.shape, along, place), given, "select"), part.shape, given.dtype)
        )
        known[part] = whole
    for value in topological(list(loop.next)):
        if value not in known:
            known[value] = dataclasses.replace(value, op=_over(value.op, known))
    return tuple(known[value] for value in loop.next)


def contracted(loop: Recurrence) -> dict[Value, int]:
    """The states that the body multiplies by a matrix, with the dimension that is summed."""
    found: dict[Value, int] = {}
    for value in topological(list(loop.next)):
        if isinstance(value.op, Contract):
            state, summed = value.op.left, value.op.summed
            assert isinstance(state.op, Held) and len(summed) == 1
            found[state] = value.op.left_axes.index(summed)
    return found


def _over(op: Op, known: dict[Value, Value]) -> Op:
    def swap(item: Any) -> Any:
        if isinstance(item, Value):
            return known[item]
        return tuple(swap(i) for i in item) if isinstance(item, tuple) else item

    return dataclasses.replace(op, **{field.name: swap(getattr(op, field.name)) for field in dataclasses.fields(op)})
