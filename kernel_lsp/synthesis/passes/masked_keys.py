"""What follows from the indices of elements alone: keys that a causal mask hides from a row, and conditions that always hold.

Comparisons of a row's index with a key's are what is looked at: ``j > i + b`` for a number ``b``. A causal mask is one, whether it is written
with ``torch.tril``, ``torch.arange`` or ``is_causal``. A mask that lies in memory is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import sympy

from ..graph.functions import FUNCTIONS
from ..graph.sizes import Index, broadcast, same_shape
from ..graph.value import Iota, Pointwise, Scalar, Value, View, operands
from ..kernel.access import operand_indices
from ..kernel.domain import Domain, Refined, Unalignable

_COMPARISONS = ("gt", "ge", "lt", "le")


@dataclass
class Places:
    """The indices of a tile: ``row`` and ``key`` are atoms of ``domain``. ``known``: values that are no question of places."""

    domain: Domain
    row: sympy.Symbol
    key: sympy.Symbol
    known: set[Value]
    _thresholds: dict[Value, tuple[sympy.Expr, bool] | None] = field(default_factory=dict)

    def operands(self, v: Value, index: Index) -> list[tuple[Value, Index]]:
        """(operand, its index) pairs, none where an access is not linear."""
        try:
            return operand_indices(v, index, self.domain)
        except (Unalignable, Refined):
            return []

    def threshold(self, v: Value, index: Index) -> tuple[sympy.Expr, bool] | None:
        """(b, holds) of a comparison that ``holds``, or does not, exactly where ``key - row > b``."""
        if v not in self._thresholds:
            self._thresholds[v] = self._compared(v, index)
        return self._thresholds[v]

    def _compared(self, v: Value, index: Index) -> tuple[sympy.Expr, bool] | None:
        if not isinstance(v.op, Pointwise) or v.op.function not in _COMPARISONS:
            return None
        left, right = (self.place(o, v, index) for o in v.op.operands)
        if left is None or right is None:
            return None
        gap = self.domain.resolve(left - right)
        sign = gap.coeff(self.key, 1)
        rest = sympy.expand(gap - sign * (self.key - self.row))
        if abs(sign) != 1 or rest.free_symbols & self.domain.size.keys():
            return None
        # sign * (key - row) + rest, compared with 0
        greater, strict = v.op.function in ("gt", "ge"), v.op.function in ("gt", "le")
        if sign == 1:
            return (-rest if strict else -rest - 1), greater
        strict = v.op.function in ("ge", "lt")
        return (rest if strict else rest - 1), not greater

    def place(self, operand: Any, around: Value, index: Index) -> sympy.Expr | None:
        """An integer that an operand of ``around`` is, as an expression of the atoms and of sizes."""
        if isinstance(operand, Scalar):
            return None if operand.is_float else operand.expr
        if not isinstance(operand, Value):
            return sympy.Integer(operand) if isinstance(operand, int) else None
        at = broadcast(index, around.shape, operand.shape)
        return self._integer(operand, at)

    def _integer(self, v: Value, index: Index) -> sympy.Expr | None:
        op = v.op
        if isinstance(op, Iota):
            return index[op.dim] * op.step + op.start
        if isinstance(op, View) and not op.map.guard:
            return next((self._integer(o, i) for o, i in self.operands(v, index)), None)
        if not isinstance(op, Pointwise) or v.dtype.is_floating_point:
            return None
        if op.function == "constant":
            return sympy.Integer(int(op.operands[0]))
        parts = [self.place(o, v, index) for o in op.operands]
        if op.function in ("identity", "to_int32", "to_int64"):
            return parts[0]
        if any(part is None for part in parts):
            return None
        if op.function in ("add", "sub", "mul"):
            return sympy.expand(FUNCTIONS[op.function].evaluate(*parts))
        return None


@dataclass(frozen=True)
class Assumed:
    """Of every element ``key - row > beyond``, or (not ``above``) of none."""

    places: Places
    beyond: sympy.Expr
    above: bool

    def holds(self, v: Value, index: Index) -> bool | None:
        """Whether a comparison holds everywhere, or nowhere; None where that is not known."""
        found = self.places.threshold(v, index)
        if found is None:
            return None
        gap = sympy.expand(self.beyond - found[0])
        if self.above and gap.is_nonnegative:
            return found[1]
        return not found[1] if not self.above and gap.is_nonpositive else None

    def number(self, v: Any, index: Index) -> float | None:
        """The number that every element is, where it is one whatever the tensors hold. What is hidden by minus infinity counts as finite."""
        if not isinstance(v, Value):
            return None if isinstance(v, Scalar) else v
        op = v.op
        if v in self.places.known:
            return None
        if isinstance(op, View) and not op.map.guard:
            return next((self.number(o, i) for o, i in self.places.operands(v, index)), None)
        if not isinstance(op, Pointwise):
            return None
        if op.function == "constant":
            return op.operands[0]
        if (held := self.holds(v, index)) is not None:
            return held
        return self._computed(v, op, index)

    def _computed(self, v: Value, op: Pointwise, index: Index) -> float | None:
        def of(operand: Any) -> float | None:
            at = broadcast(index, v.shape, operand.shape) if isinstance(operand, Value) else ()
            return self.number(operand, at)

        numbers = [of(o) for o in op.operands]
        if op.function == "where" and numbers[0] is not None:
            return numbers[1] if numbers[0] else numbers[2]
        if None not in numbers:
            try:
                return FUNCTIONS[op.function].evaluate(*numbers)
            except (ValueError, OverflowError, ZeroDivisionError, TypeError):
                return None
        decides = {"and": False, "or": True, "add": -math.inf}.get(op.function)
        return decides if decides is not None and decides in [n for n in numbers if n is not None] else None

    def simplified(self, v: Value, index: Index) -> Value:
        """``v`` without what is the same everywhere: the branch that is taken, the sum without what adds 0."""
        op = v.op
        if v in self.places.known:
            return v
        if isinstance(op, View) and not op.map.guard:
            pairs = self.places.operands(v, index)
            inner = self.simplified(*pairs[0]) if pairs else op.operand
            return v if inner is op.operand else _like(v, View(op.map, inner, op.name))
        if not isinstance(op, Pointwise):
            return v
        at = {o: broadcast(index, v.shape, o.shape) for o in operands(v)}
        chosen: Any = None
        if op.function == "where" and (held := self.number(op.operands[0], at.get(op.operands[0], ()))) is not None:
            chosen = op.operands[1] if held else op.operands[2]
        elif op.function == "add":
            zeros = [i for i, o in enumerate(op.operands) if isinstance(o, Value) and self.number(o, at[o]) == 0]
            chosen = op.operands[1 - zeros[0]] if zeros else None
        if isinstance(chosen, Value) and same_shape(chosen.shape, v.shape) and chosen.dtype == v.dtype:
            return self.simplified(chosen, at[chosen])
        parts = tuple(self.simplified(o, at[o]) if isinstance(o, Value) else o for o in op.operands)
        if all(a is b for a, b in zip(parts, op.operands, strict=True)):
            return v
        return _like(v, Pointwise(op.function, parts))


def _like(v: Value, op: Any) -> Value:
    return Value(op, v.shape, v.dtype, v.name, v.meaning, v.node, v.module)


def bounds_of(v: Value, index: Index, places: Places) -> list[sympy.Expr]:
    """Each b such that something on the way to ``v`` asks whether ``key - row > b``."""
    found: dict[sympy.Expr, None] = {}
    seen: set[Value] = set()

    def visit(v: Value, index: Index) -> None:
        if v in seen or v in places.known:
            return
        seen.add(v)
        if (threshold := places.threshold(v, index)) is not None:
            found[sympy.expand(threshold[0])] = None
        elif isinstance(v.op, Pointwise | View):
            for o, i in places.operands(v, index):
                visit(o, i)

    visit(v, index)
    return list(found)


def hidden_beyond(v: Value, index: Index, places: Places, nothing: float) -> Assumed | None:
    """The smallest b known of which ``v`` is ``nothing`` wherever ``key - row > b``, as what holds of all other elements."""
    found: sympy.Expr | None = None
    for bound in bounds_of(v, index, places):
        if Assumed(places, bound, above=True).number(v, index) == nothing:
            less = found is None or sympy.expand(found - bound).is_positive
            found = bound if less else found
    return None if found is None else Assumed(places, found, above=False)
