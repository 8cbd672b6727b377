"""The values of a graph in order, with what reads each and what each is computed from: for passes that ask of every product."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from types import UnionType

from .value import Fold, Value, operands


@dataclass(frozen=True)
class Order:
    """``values``: operands first. ``users``: what reads a value, in order. Sets of values are integers, a bit for each place.

    ``above``: the values that one is computed from, and itself. ``folds``: those that reduce or scan.
    """

    values: list[Value]
    place: dict[Value, int] = field(default_factory=dict)
    users: dict[Value, list[Value]] = field(default_factory=dict)
    above: dict[Value, int] = field(default_factory=dict)

    @functools.cached_property
    def folds(self) -> int:
        """Those that reduce or scan."""
        return self.bits(Fold)

    def bit(self, value: Value) -> int:
        """The set of ``value`` alone."""
        return 1 << self.place[value]

    def bits(self, kinds: type | UnionType) -> int:
        """The values whose operation is one of ``kinds``."""
        return sum(self.bit(value) for value in self.values if isinstance(value.op, kinds))

    def below(self, value: Value) -> list[Value]:
        """The values that are computed from ``value``."""
        bit, place = self.bit(value), self.place[value]
        return [other for other in self.values[place + 1 :] if self.above[other] & bit]


def order_of(outputs: list[Value]) -> Order:
    """The order of all that ``outputs`` need."""
    order = Order(topological(outputs))
    for place, value in enumerate(order.values):
        order.place[value] = place
        order.above[value] = 1 << place
        for operand in dict.fromkeys(operands(value)):
            order.users.setdefault(operand, []).append(value)
            order.above[value] |= order.above[operand]
    return order


def topological(outputs: list[Value]) -> list[Value]:
    """Every value that the outputs need, operands first."""
    order: list[Value] = []
    seen: set[Value] = set()
    stack: list[tuple[Value, bool]] = [(v, False) for v in reversed(outputs)]
    while stack:
        value, done = stack.pop()
        if done:
            order.append(value)
            continue
        if value in seen:
            continue
        seen.add(value)
        stack.append((value, True))
        stack.extend((v, False) for v in reversed(operands(value)) if v not in seen)
    return order
