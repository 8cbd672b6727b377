"""The body of a recurrence at one of its steps: its placeholders replaced by that step's values."""

from __future__ import annotations

import dataclasses
from typing import Any

import sympy
import torch

from . import maps
from .order import topological
from .sizes import ONE, Index
from .value import Below, Contract, Given, Held, Op, Pointwise, Recur, Recurrence, Shape, Value, View, operands, viewed

#: what the inputs bring to the gates of all steps: their product with a weight, and biases
PROJECTED = "projected"


def before(loop: Recurrence, step: sympy.Expr) -> sympy.Expr:
    """Where the states that step number ``step`` begins with stand among those of ``Recur`` with ``each``."""
    return sympy.expand(loop.steps - step) if loop.backward else step


def after(loop: Recurrence, step: sympy.Expr) -> sympy.Expr:
    """Where those stand that it ends with."""
    return sympy.expand(loop.steps - step - ONE) if loop.backward else sympy.expand(step + ONE)


def results(
    loop: Recurrence, state: int, dtype: torch.dtype, name: str, *, each: bool, along: int = 0, begun: bool = True
) -> Value:
    """A result of a recurrence."""
    op = Recur(loop, state, each, along, begun)
    return Value(op, result_shape(op), dtype, name)


def result_shape(op: Recur) -> Shape:
    """The shape of ``op``'s result: [members, *state], with the steps before dimension ``along`` where it has each."""
    shape = op.loop.held[op.state].shape
    several = () if op.loop.members is None else (sympy.Integer(op.loop.members),)
    places = (op.loop.steps + (1 if op.begun else 0),) if op.each else ()
    return (*several, *shape[: op.along], *places, *shape[op.along :])


def place_in(op: Recur, place: sympy.Expr, index: Index) -> Index:
    """Where the element at ``index`` of a state lies in a result of each step, by its ``place`` in one with all of them."""
    own = place if op.begun or op.loop.backward else sympy.expand(place - ONE)
    return (*index[: op.along], own, *index[op.along :])


def reads_back(op: Recur, state: int) -> bool:
    """Whether it is where a step reads a state that the one before made."""
    return op.state == state and op.each and op.along == 0 and (op.begun or begins_with_zeros(op.loop, state))


def at_step(loop: Recurrence, step: sympy.Expr, member: sympy.Expr | None = None) -> tuple[Value, ...]:
    """The states after step number ``step`` over ``loop.held``, ``loop.below`` and values from outside."""
    place = after(loop, step) if loop.backward else step
    known = {v: v for v in (*loop.held, loop.below) if v is not None}
    for part, given in zip(loop.parts, loop.given, strict=True):
        assert isinstance(part.op, Given)
        whole, along = of_member(given, member), part.op.along
        known[part] = whole if along is None else _selected(whole, along, place)
    return substituted(loop.next, known)


def of_member(value: Value, member: sympy.Expr | None) -> Value:
    """What is given to one member of a recurrence."""
    return value if member is None else _selected(value, 0, member)


def _selected(value: Value, dim: int, place: sympy.Expr) -> Value:
    map = maps.select(value.shape, dim, place)
    return Value(View(map, value, "select"), map.shape, value.dtype)


def substituted(values: tuple[Value, ...], known: dict[Value, Value]) -> tuple[Value, ...]:
    """``values`` with others in place of the values in ``known``."""
    known = dict(known)
    for value in topological(list(values)):
        if value not in known:
            moved = any(known[operand] is not operand for operand in operands(value))
            known[value] = dataclasses.replace(value, op=_over(value.op, known)) if moved else value
    return tuple(known[value] for value in values)


def contracted(loop: Recurrence) -> dict[Value, int]:
    """The states that the body multiplies by a matrix, and ``below`` where it does so, with the dimension that is summed."""
    found: dict[Value, int] = {}
    for value in topological(list(loop.next)):
        if isinstance(value.op, Contract):
            state, summed = value.op.left, value.op.summed
            assert isinstance(state.op, Held | Below) and len(summed) == 1
            found[state] = value.op.left_axes.index(summed)
    return found


def traced(loop: Recurrence, state: Value) -> int:
    """The number of the state of which every step is stored so that ``state``, or ``below``, can be read."""
    return 0 if state is loop.below else loop.held.index(state)


def made_of_numbers(value: Value) -> bool:
    """Whether it is addressed from a number alone, as a state of zeros is: nothing has to be stored."""
    op = viewed(value).op
    return isinstance(op, Pointwise) and op.function == "constant"


def number_of(value: Value) -> float:
    """The number of a value that is ``made_of_numbers``."""
    op = viewed(value).op
    assert isinstance(op, Pointwise)
    number: float = op.operands[0]
    return number


def begins_with_zeros(loop: Recurrence, state: int) -> bool:
    """Whether a state is zero before the first step: then a load that leaves that step out gives it."""
    first = loop.first[state]
    return made_of_numbers(first) and number_of(first) == 0


def _over(op: Op, known: dict[Value, Value]) -> Op:
    def swap(item: Any) -> Any:
        if isinstance(item, Value):
            return known[item]
        return tuple(swap(i) for i in item) if isinstance(item, tuple) else item

    return dataclasses.replace(op, **{field.name: swap(getattr(op, field.name)) for field in dataclasses.fields(op)})
