"""What two values that compute alike have in common: the steps of a loop that torch.export unrolled differ in what they read alone.

A value's form is its operation without its operands, and without the numbers that a loop counts along: those are its offsets.
``x[3]`` and ``x[4]`` are of one form, with the offsets 3 and 4.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import sympy

from ...graph import maps
from ...graph.build import Build, opmath
from ...graph.sizes import ONE, ZERO
from ...graph.value import Concat, Contract, Fold, Gather, Pointwise, Recur, Scalar, Value, View

#: One value for each step of a loop, in order.
Family = tuple[Value, ...]


class NotAlike(Exception):
    """The values of a family differ by more than what they read, or cannot be computed together."""


@dataclass(frozen=True)
class Form:
    """How a value is computed, but for what it reads: values with equal ``key`` differ in ``operands`` and ``offsets`` alone."""

    key: Hashable
    operands: tuple[Value, ...]
    offsets: tuple[int, ...] = ()  # of a view: what is added to each index


@dataclass(frozen=True)
class Members:
    """A family that was opened: the form of its last member, a family for each operand, how far the offsets move with each step."""

    form: Form
    operands: tuple[Family, ...]
    strides: tuple[int, ...]


class Forms:
    """The forms of values, each looked at once."""

    def __init__(self) -> None:
        self._known: dict[Value, Form | None] = {}
        self._begun: dict[Value, Value] = {}

    def __call__(self, value: Value) -> Form | None:
        """None for what has no operands, and for what is like nothing but itself."""
        if value not in self._known:
            self._known[value] = _form(value)
        return self._known[value]

    def opened(self, family: Family) -> Members:
        """The members of a family, which are of one form.

        Raises:
            NotAlike: they are not, or their offsets do not move by equal strides.
        """
        family = self._from_first(family)
        found = [form for value in family if (form := self(value)) is not None]
        if len(found) < len(family) or any(one.key != found[0].key for one in found):
            raise NotAlike
        strides = {strided(a, b) for a, b in pairwise(found)}
        if len(strides) != 1:
            raise NotAlike
        operands = tuple(zip(*(one.operands for one in found), strict=True))
        return Members(found[-1], operands, strides.pop())

    def _from_first(self, family: Family) -> Family:
        """The states after steps one, two, … of a recurrence, after what it begins with: that one is read where they are."""
        second = family[1].op
        if not (isinstance(second, View) and isinstance(second.operand.op, Recur) and second.operand.op.each):
            return family
        loop, state = second.operand.op.loop, second.operand.op.state
        if loop.members is None and loop.first[state] is family[0] and second.map.index[:1] == (ONE,):
            begun = self._begun.setdefault(second.operand, Build.select(second.operand, 0, ZERO))
            return (begun, *family[1:])
        return family


def same(family: Family) -> bool:
    """Whether every step has the same value."""
    return all(value is family[0] for value in family)


def strided(before: Form, after: Form) -> tuple[int, ...]:
    """How far the offsets move."""
    return tuple(b - a for a, b in zip(before.offsets, after.offsets, strict=True))


def product_of(value: Value) -> tuple[Value, Value, bool] | None:
    """(x, weight, whether the weight is transposed) where ``value`` is a product of two matrices, however it was lowered.

    One with a state of zeros, or with one row, is no ``Contract``: its meaning tells.
    """
    op = value.op
    if value.meaning is not None and value.meaning[0] == "matmul":
        x, weight, *turned = value.meaning[1]
    elif isinstance(op, Contract) and _plain(op) and (op.left_axes, op.right_axes, op.axes) == ("mk", "kn", "mn"):
        x, weight, turned = op.left, op.right, []
    else:
        return None
    if len(x.shape) != 2 or len(weight.shape) != 2 or len(value.shape) != 2 or ONE in weight.shape:
        return None
    if not turned and isinstance(weight.op, View) and weight.op.map == maps.permute(weight.op.operand.shape, (1, 0)):
        return x, weight.op.operand, True
    return x, weight, bool(turned)


def _plain(op: Contract) -> bool:
    special = (op.outer, op.lengths, op.exact, op.convolves, op.tf32, op.short_sums, op.full_sums)
    return not any(special) and op.scaled == 1.0


def _form(value: Value) -> Form | None:
    op, typed = value.op, (value.shape, value.dtype)
    if (product := product_of(value)) is not None:
        return Form(("product", value.shape, opmath(value.dtype), product[2]), product[:2])
    if isinstance(op, Pointwise):
        given = tuple(v for v in op.operands if isinstance(v, Value))
        return Form(("pointwise", op.function, typed, tuple(_constants(op))), given) if given else None
    if isinstance(op, View):
        parts = [e.as_coeff_Add() for e in op.map.index]
        whole = all(number.is_Integer for number, _ in parts)
        offsets = tuple(int(number) for number, _ in parts) if whole else ()
        index = tuple(rest for _, rest in parts) if whole else op.map.index
        key = ("view", typed, op.map.operand, index, op.map.guard, op.map.pad, whole)
        return Form(key, (op.operand,), offsets)
    if isinstance(op, Fold):
        start = getattr(op, "start", None)
        plain = Form((type(op), op.kind, op.dims, getattr(op, "part", ""), typed), (op.operand,))
        return plain if start is None else None
    if isinstance(op, Concat):
        return Form(("concat", op.dim, typed, tuple(v.shape for v in op.operands)), op.operands)
    if isinstance(op, Gather):
        return Form(("gather", op.kind, op.dim, typed), (op.table, op.index))
    if isinstance(op, Contract) and _plain(op):
        return Form(("contract", op.left_axes, op.right_axes, op.axes, typed), (op.left, op.right))
    return None


def _constants(op: Pointwise) -> Iterator[Any]:
    """What stands between the operands that are values."""
    for operand in op.operands:
        if isinstance(operand, Value):
            yield None
        elif isinstance(operand, Scalar):
            yield operand.expr, operand.is_float
        elif isinstance(operand, sympy.Basic):
            yield operand
        else:
            yield type(operand).__name__, repr(operand)
