"""The formula of a value, for docstrings: operations by the names a reader knows, inputs by theirs."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from dataclasses import dataclass
from typing import Any

import sympy
from torch.utils._sympy.functions import FloorDiv

from kernel_lsp.size_text import python

from ..graph.division import is_size
from ..graph.functions import ATOM, DIVISION, FUNCTIONS, LOWEST, SUM, UNARY, least_precedences, literal, wrap
from ..graph.map import Map, dim
from ..graph.monoids import MONOIDS
from ..graph.names import variable_name
from ..graph.sizes import ONE, ZERO, same, same_shape
from ..graph.value import (
    Concat,
    Contract,
    Gather,
    Iota,
    Partial,
    Peak,
    Pointwise,
    Recur,
    Reduce,
    Sample,
    Scalar,
    Scan,
    Shape,
    TorchCall,
    Value,
    View,
    operands,
)
from ..operators.registry import DEFINITIONS

#: Views that a formula leaves out.
_SAME_ELEMENTS = ("reshape", "squeeze", "unsqueeze", "expand")

#: Views that a formula writes as an index.
_PARTS = ("slice", "select")

#: Functions that a formula writes as words; those bind less than any operator.
_WORDS = frozenset(["and", "or", "not"])

#: What a formula has in the place of terms that would make it longer than ``_LONGEST``, and what a reader is told of that.
LEFT_OUT = "..."
ABOUT_LEFT_OUT = "In a long formula ... stands for what is left out."
_LONGEST = 480
_LONGEST_PLACE = 22  # in brackets
_MOST_PIECES = 4  # of a concatenation in a formula that leaves something out


def formula(
    value: Value, names: dict[Value, str], *, sizes: dict[sympy.Symbol, str] | None = None, top: bool = True
) -> str:
    """``value`` as a formula over ``names`` (inputs and stored intermediates); of a long one, as many levels as fit.

    ``sizes``: what size symbols are called, for sizes that are computed with.
    """
    for indices in (True, False):
        with contextlib.suppress(_TooLong):
            return _Printer(names, sizes, indices=indices, longest=_LONGEST).text(value, top)[0]
    shown = _Printer(names, sizes, levels=2).text(value, top)[0]
    with contextlib.suppress(_TooLong):
        for levels in itertools.count(3) if len(shown) <= _LONGEST else ():
            text = _Printer(names, sizes, levels, longest=_LONGEST).text(value, top)[0]
            if text == shown:  # a long concatenation is never shown whole
                break
            shown = text
    return shown


def formulas(pairs: list[tuple[str, Value]], names: dict[Value, str], sizes: dict[sympy.Symbol, str]) -> str:
    """What a kernel stores, (variable, value) pairs, as formulas over ``names``; the states of one recurrence as one."""
    loops = {value.op.loop for _, value in pairs if isinstance(value.op, Recur)}
    if len(pairs) > 1 and len(loops) == 1 and all(isinstance(value.op, Recur) for _, value in pairs):
        calls, states = zip(*(formula(value, names, sizes=sizes).rsplit(".", 1) for _, value in pairs), strict=True)
        variables = ", ".join(variable for variable, _ in pairs)
        same = variables == ", ".join(states)
        return f"{variables} = {'' if same else ', '.join(states) + ' of '}{calls[0]}"
    return "; ".join(f"{variable} = {formula(value, names, sizes=sizes)}" for variable, value in pairs)


def definitions(text: str) -> list[str]:
    """The definitions of the named operations that a formula uses."""
    return [line for name, line in DEFINITIONS.items() if re.search(rf"\b(mean_of_|sum_of_)?{name}\(", text)]


class _TooLong(Exception):
    """A formula is longer than its printer's ``longest``."""


class _Printer:
    """Prints formulas.

    ``levels``: how many are printed, None for all. ``longest``: a text of more characters is given up as soon as a part of it has as many;
    where operations share their operands the whole text is exponential in their number.
    """

    def __init__(
        self,
        names: dict[Value, str],
        sizes: dict[sympy.Symbol, str] | None,
        levels: int | None = None,
        *,
        indices: bool = True,
        longest: int | None = None,
    ) -> None:
        self.names, self.sizes, self.levels, self.indices, self.longest = names, sizes or {}, levels, indices, longest
        self.level = 0

    def text(self, value: Value, top: bool = False) -> tuple[str, int]:
        """The formula of ``value``, and how strongly its last operation binds.

        Raises:
            _TooLong: it has more than ``longest`` characters.
        """
        text, precedence = self._text(value, top)
        if self.longest is not None and len(text) > self.longest:
            raise _TooLong
        return text, precedence

    def _text(self, value: Value, top: bool) -> tuple[str, int]:
        if value in self.names and not top:
            return self.names[value], ATOM
        op = value.op
        if isinstance(op, View) and op.name in _SAME_ELEMENTS and value.meaning in (None, op.operand.meaning):
            return self.text(op.operand)
        if isinstance(op, View):
            return self._shown(value)
        if self.level == self.levels and operands(value):
            return LEFT_OUT, ATOM
        self.level += 1
        shown = self._shown(value)
        self.level -= 1
        return shown

    def _shown(self, value: Value) -> tuple[str, int]:
        if value.meaning is not None:
            name, operands = value.meaning
            if name == "matmul":
                left, right = (wrap(*self.text(v), 85) for v in operands[:2])
                return f"{left} @ {right}{'.T' if operands[2:] else ''}", 80  # the right one's transpose
            parts = [self._argument(v) for v in operands]
            return f"{name}({', '.join(parts)})", ATOM
        return self._plain(value)

    def _argument(self, given: Any) -> str:
        """An argument of a named operation: a tensor, the dimensions that it is over, or a setting as it is written."""
        if isinstance(given, Value):
            return self.text(given)[0]
        return given if isinstance(given, str) else f"dim={_dims(given)}"

    def _plain(self, value: Value) -> tuple[str, int]:
        op = value.op
        if isinstance(op, Pointwise):
            return self._pointwise(op)
        if isinstance(op, View):
            if op.name in _PARTS and self.indices and (indexed := self._part(value)) is not None:
                return indexed
            text, precedence = self.text(op.operand)
            if op.name == "permute":
                order = ", ".join(map(str, op.map.permutation or ()))
                return f"{wrap(text, precedence, ATOM)}.permute({order})", ATOM
            if op.name == "slice":
                return f"part of {text}" if precedence == ATOM else f"part of ({text})", UNARY
            if op.name in (*_SAME_ELEMENTS, "select", "flip", "cut", "longer"):
                return text, precedence
            return f"{op.name}({text})", ATOM
        if isinstance(op, Scan):
            return f"{MONOIDS[op.kind].scanned}({self.text(op.operand)[0]}, dim={_dims(op.dims)})", ATOM
        if isinstance(op, Reduce | Partial) and op.part:
            part = next(c for c in MONOIDS[op.kind].carried if c.key == op.part)
            return part.formula.format(self.text(op.operand)[0]), ATOM
        if isinstance(op, Reduce | Partial):
            return f"{op.kind}({self.text(op.operand)[0]}, dim={_dims(op.dims)})", ATOM
        if isinstance(op, Concat):
            few = op.operands if self.levels is None else op.operands[:_MOST_PIECES]
            pieces = [self.text(v)[0] for v in few]
            if few != op.operands:
                pieces.append(f"{LEFT_OUT} {len(op.operands) - len(few)} more")
            return f"cat({', '.join(pieces)})", ATOM
        if isinstance(op, Recur):
            loop, state = op.loop, op.loop.held[op.state].name or "state"
            given = ", ".join(self.text(v)[0] for v in loop.given)
            return f"{loop.name or 'recurrence'}({given}).{'' if op.each else 'last_'}{state}", ATOM
        if isinstance(op, Gather):
            return f"{wrap(*self.text(op.table), ATOM)}[{self.text(_from_the_end(op.index))[0]}]", ATOM
        if isinstance(op, Contract) and (op.left_axes[-2:], op.right_axes[-2:]) != ("mk", "kn"):
            letters = f'"{op.left_axes},{op.right_axes}->{op.axes}"'
            return f"einsum({letters}, {self.text(op.left)[0]}, {self.text(op.right)[0]})", ATOM
        if isinstance(op, Contract):
            return f"{wrap(*self.text(op.left), 85)} @ {wrap(*self.text(op.right), 85)}", 80
        if isinstance(op, Peak):
            return f"max(abs({self.text(op.rounded)[0]}))", ATOM
        if isinstance(op, Sample):
            return f"max(abs(some of {self.text(op.operand)[0]}))", ATOM
        if isinstance(op, Iota):
            return ("i" if op.dim == 0 else "j"), ATOM
        if isinstance(op, TorchCall) and op.is_view:
            return f"{op.target.removeprefix('torch.')}({self.text(operands(value)[0])[0]})", ATOM
        if isinstance(op, TorchCall):
            return (op.call or op).target.split(".")[-2] + "(…)", ATOM
        return variable_name(value), ATOM

    def _part(self, value: Value) -> tuple[str, int] | None:
        """A part with its index, as Python has it; None where that is long, or what is shown has other dimensions."""
        whole, maps = value, list[Map]()
        while isinstance(whole.op, View) and whole.op.name in _PARTS and whole.meaning is None:
            if whole is not value and whole in self.names:
                break
            maps.insert(0, whole.op.map)
            whole = whole.op.operand
        spans = spans_of(maps, whole.shape)
        texts = [self._span(span, n) for span, n in zip(spans, whole.shape, strict=True)] if spans is not None else []
        cut = [d for d, text in enumerate(texts) if text != ":"]
        if not cut or None in texts:
            return None
        shown = self._as_shown(whole).shape
        first, last = cut[0], cut[-1] + 1
        if same_shape(whole.shape[:last], shown[:last]):
            index = ", ".join(map(str, texts[:last]))
        elif first > 0 and same_shape(whole.shape[first:], shown[len(shown) - len(whole.shape) + first :]):
            index = ", ".join(["…", *map(str, texts[first:])])  # dimensions that are seen otherwise than shown
        else:
            return None
        text, precedence = self.text(whole)
        return (text, precedence) if text == LEFT_OUT else (f"{wrap(text, precedence, ATOM)}[{index}]", ATOM)

    def _as_shown(self, value: Value) -> Value:
        """What stands for ``value`` in a formula, which leaves out some views."""
        while value not in self.names and isinstance(value.op, View) and value.op.name in _SAME_ELEMENTS:
            if value.meaning not in (None, value.op.operand.meaning):
                break
            value = value.op.operand
        return value

    def _span(self, span: Span, size: sympy.Expr) -> str | None:
        """What stands in brackets for one dimension of ``size``; None where it is long."""
        if span.size is None:
            return self._short(span.start)
        if span.step == 1:
            to_the_end = same(span.start + span.size, size)
        else:
            to_the_end = same(span.size, FloorDiv(sympy.expand(size - span.start + span.step - 1), span.step))
        begin = "" if span.start == 0 else self._short(span.start)
        end = "" if to_the_end else self._short(span.start + span.step * (span.size - 1) + 1)
        step = "" if span.step == 1 else self._short(span.step)
        if begin is None or end is None or step is None:
            return None
        return f"{begin}:{end}:{step}" if step else f"{begin}:{end}"

    def _short(self, expr: sympy.Expr) -> str | None:
        """A place, or a size; None where it is long, or its sizes have no names."""
        expr = sympy.expand(expr)
        if not expr.free_symbols <= self.sizes.keys():
            return None
        text = python(expr, self.sizes)
        text = text[1:-1] if isinstance(expr, FloorDiv) else text
        return text if len(text) <= _LONGEST_PLACE else None

    def _pointwise(self, op: Pointwise) -> tuple[str, int]:
        if op.function == "constant":
            return literal(op.operands[0]), ATOM
        if op.function == "identity":
            return self._operand(op.operands[0])
        function = FUNCTIONS[op.function]
        if op.function in _WORDS:
            parts = [wrap(*self._operand(o), ATOM) for o in op.operands]
            return function.formula.format(*parts), LOWEST
        shown = function.formula or function.text
        floats = any(isinstance(o, Value) and o.dtype.is_floating_point for o in op.operands)
        least = least_precedences(op.function, floats)
        inner = [LOWEST if f"({{{i}}})" in shown else one for i, one in enumerate(least)]
        parts = [wrap(*self._operand(o), least) for o, least in zip(op.operands, inner, strict=True)]
        return shown.format(*parts), function.precedence

    def _operand(self, operand: Any) -> tuple[str, int]:
        if isinstance(operand, Value):
            return self.text(operand)
        if isinstance(operand, Scalar):
            return self._size(operand)
        text = f"{operand}" if isinstance(operand, float) and math.isinf(operand) else literal(operand)
        return text, UNARY if not isinstance(operand, bool) and operand < 0 else ATOM

    def _size(self, number: Scalar) -> tuple[str, int]:
        """A number that is computed of sizes; one word for it where it is no integer, or the sizes have no names."""
        if number.is_float or not number.expr.free_symbols <= self.sizes.keys():
            return ("scale" if number.is_float else "n"), ATOM
        text = python(number.expr, self.sizes)
        return text, ATOM if " " not in text or text.startswith("(") else SUM if number.expr.is_Add else DIVISION


@dataclass(frozen=True)
class Span:
    """Which places of a dimension: ``size`` of them, ``step`` apart, from ``start``; with a size of None that place alone, without the dimension."""

    start: sympy.Expr
    step: sympy.Expr
    size: sympy.Expr | None


def spans_of(maps: list[Map], whole: Shape) -> list[Span] | None:
    """What views, one after the other, leave of the dimensions of ``whole``; None where they are more than slices and single places."""
    spans = [Span(ZERO, ONE, n) for n in whole]
    for map in maps:
        left = [d for d, span in enumerate(spans) if span.size is not None]
        if map.guard or len(left) != len(map.index):
            return None
        seen = 0
        for d, expr in zip(left, map.index, strict=True):
            start, step = spans[d].start, spans[d].step
            if is_size(expr):
                spans[d] = Span(start + step * expr, step, None)
                continue
            factor = sympy.expand(expr).coeff(dim(seen))
            rest = sympy.expand(expr - factor * dim(seen))
            if not (is_size(factor) and is_size(rest)) or seen == len(map.shape):
                return None
            spans[d] = Span(start + step * rest, step * factor, map.shape[seen])
            seen += 1
        if seen != len(map.shape):
            return None
    return spans


def _from_the_end(index: Value) -> Value:
    """What an index is before a size is added to the negative ones: in brackets those count from the end anyway."""
    op = index.op
    while isinstance(op, View) and op.name in _SAME_ELEMENTS:
        index = op.operand
        op = index.op
    if not isinstance(op, Pointwise) or op.function != "where":
        return index
    asked, behind, place = op.operands
    if not isinstance(place, Value) or not (isinstance(asked, Value) and isinstance(behind, Value)):
        return index
    compared, added = asked.op, behind.op
    if not isinstance(compared, Pointwise) or not isinstance(added, Pointwise):
        return index
    below = compared.function == "lt" and compared.operands == (place, 0)
    return place if below and added.function == "add" and added.operands[0] is place else index


def _dims(dims: Any) -> str:
    return str(dims[0]) if len(dims) == 1 else str(tuple(dims))
