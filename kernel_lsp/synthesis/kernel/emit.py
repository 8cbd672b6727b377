"""Expressions and statements of a kernel's body, from values and their indices.

An ``Axis`` is one tile axis (or a scalar program index) with the domain's atoms flattened into it. The emitter
turns ``(value, index)`` into Triton text: it loads what is stored, computes what is not, assigns what is used more
than once to a named variable, and applies a mask where a reduction would otherwise see masked-off lanes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy
import torch

from ..graph.functions import ATOM, FUNCTIONS, PRODUCT, SUM, UNARY, literal, wrap
from ..graph.names import variable_name
from ..graph.sizes import ONE, ZERO, Index, broadcast, offset, same
from ..graph.value import Concat, Gather, Iota, Pointwise, Reduce, Scalar, Shape, Value, View
from .access import GATHERED, gather_index, gather_table, operand_indices, reshaped_leaf
from .arguments import Arguments
from .domain import Domain

_WIDTH = 72  # an expression longer than this gets a variable of its own


@dataclass(eq=False)
class Axis:
    """``variable`` holds the flattened index of ``atoms`` (outermost first); a vector axis has a ``mask`` or needs none."""

    variable: str
    atoms: list[sympy.Symbol]
    vector: bool
    mask: str = ""
    looped: bool = False


@dataclass(frozen=True)
class Term:
    """An expression: its text, precedence, the vector axes its shape has, and what masked-off lanes hold (if known)."""

    text: str
    precedence: int
    axes: frozenset[Axis]
    pad: float | None = None


class Emitter:
    """Writes statements into ``lines`` (once per program) or ``inner`` (inside the loop over a looped axis)."""

    def __init__(
        self, domain: Domain, axes: list[Axis], arguments: Arguments, stored: set[Value], placed: dict[Value, Index]
    ) -> None:
        self.domain, self.axes, self.arguments = domain, axes, arguments
        self.stored, self.placed = stored, placed
        self.lines: list[str] = []
        self.inner: list[str] = []
        self.memo: dict[tuple[Value, Index], Term] = {}
        self.uses: dict[tuple[Value, Index], int] = {}
        self.values: dict[sympy.Symbol, Term] = {}  # placeholders for indices that were loaded
        self.reduced: dict[Value, Term] = {}
        self.strided: dict[Value, list[sympy.Symbol]] = {}
        self.conditions: list[Term] = []
        self.pad_hint = 0.0
        self.library = False
        self.reduced_axis: Axis | None = None
        self.raw_half = False  # keep half precision as loaded, for tl.dot

    # -- indices ------------------------------------------------------------------------------------------------

    def key(self, value: Value, index: Index) -> tuple[Value, Index]:
        return value, tuple(self.domain.resolve(e) for e in index)

    def index_term(self, expr: sympy.Expr) -> Term:
        """A linear index expression as text over the axes' variables."""
        expr = self.domain.resolve(expr)
        parts: list[tuple[str, int]] = []
        shape: frozenset[Axis] = frozenset()
        for symbol, term in self.values.items():
            c = expr.coeff(symbol, 1)
            if c != ZERO:
                parts.append(self._times(term.text, term.precedence, c))
                shape |= term.axes
                expr = sympy.expand(expr - c * symbol)
        coefficients, rest = self.domain.terms(expr)
        for axis in self.axes:
            for text, precedence, c in self._runs(axis, [coefficients.get(a, ZERO) for a in axis.atoms]):
                parts.append(self._times(text, precedence, c))
                if axis.vector:
                    shape |= {axis}
        if rest != ZERO or not parts:
            parts.append(self.arguments.size(rest))
        # Scalars first: the pointer is moved once, then the tile's offsets are added.
        text, precedence = parts[0]
        for more, p in parts[1:]:
            text += f" - {more[1:]}" if more.startswith("-") else f" + {wrap(more, p, SUM)}"
            precedence = SUM
        return Term(text, precedence, shape)

    def _times(self, text: str, precedence: int, c: sympy.Expr) -> tuple[str, int]:
        if c == ONE:
            return text, precedence
        if c == -ONE:
            return "-" + wrap(text, precedence, UNARY), UNARY
        factor = wrap(*self.arguments.size(c), UNARY)
        return f"{wrap(text, precedence, PRODUCT)} * {factor}", PRODUCT

    def _runs(self, axis: Axis, coefficients: list[sympy.Expr]) -> list[tuple[str, int, sympy.Expr]]:
        """(text, precedence, coefficient) for each maximal run of atoms that moves through memory as one index."""
        sizes = [self.domain.size[a] for a in axis.atoms]
        result: list[tuple[str, int, sympy.Expr]] = []
        j = len(sizes) - 1
        inner: sympy.Expr = ONE
        while j >= 0:
            i, run = j, sizes[j]
            while i > 0 and same(coefficients[i - 1], coefficients[i] * sizes[i]):
                i -= 1
                run = sympy.expand(run * sizes[i])
            if coefficients[j] != ZERO:
                text, precedence = axis.variable, ATOM
                if axis is self.reduced_axis:
                    for divisor in ([inner] if inner != ONE else []) + ([run] if i > 0 else []):
                        self.arguments.divide_by(divisor)
                if inner != ONE:
                    text, precedence = f"{text} // {wrap(*self.arguments.size(inner), UNARY)}", PRODUCT
                if i > 0:
                    text, precedence = (
                        f"{wrap(text, precedence, PRODUCT)} % {wrap(*self.arguments.size(run), UNARY)}",
                        PRODUCT,
                    )
                result.append((text, precedence, coefficients[j]))
            inner = sympy.expand(inner * run)
            j = i - 1
        return result[::-1]

    # -- values --------------------------------------------------------------------------------------------------

    def count(self, value: Value, index: Index) -> None:
        """Count how often each (value, index) is used, so that shared ones get a variable."""
        key = self.key(value, index)
        self.uses[key] = self.uses.get(key, 0) + 1
        if (
            self.uses[key] > 1
            or reshaped_leaf(value, self.stored) is not None
            or value in self.reduced
            or isinstance(value.op, Reduce)
        ):
            return
        if isinstance(value.op, Gather):
            self.count(value.op.index, gather_index(value, index))
            self.count(value.op.table, gather_table(value, index, GATHERED))
            return
        for operand, i in operand_indices(value, key[1], self.domain):
            self.count(operand, i)

    def value(self, value: Value, index: Index) -> Term:
        """The value at ``index`` as an expression, emitting whatever has to come first."""
        key = self.key(value, index)
        if value in self.reduced:
            return self.reduced[value]
        if key in self.memo:
            return self.memo[key]
        leaf = reshaped_leaf(value, self.stored)
        if leaf is not None and (leaf is value or leaf not in self.strided):
            term = self.load(leaf, key[1], shape=value.shape)
        else:
            term = self._computed(value, key)
            used = self.uses.get(key, 1)
            simple = (term.precedence == ATOM and term.text.isidentifier()) or isinstance(value.op, View)
            named = bool(value.name) and not isinstance(value.op, View | Iota)
            if (used > 1 or named or len(term.text) > _WIDTH) and not simple and not _is_literal(value):
                term = self.assign(variable_name(value), term)
        if not self.conditions:
            self.memo[key] = term
        return term

    def _computed(self, value: Value, key: tuple[Value, Index]) -> Term:
        op, index = value.op, key[1]
        if isinstance(op, Pointwise):
            return self._pointwise(value, op, index)
        if isinstance(op, View):
            ((operand, i),) = operand_indices(value, index, self.domain)
            return self.value(operand, i)
        if isinstance(op, Concat):
            return self._concat(value, op, index)
        if isinstance(op, Iota):
            return self.index_term(index[op.dim] * op.step + op.start)
        if isinstance(op, Gather):
            chosen = self.value(op.index, gather_index(value, index))
            if not chosen.text.isidentifier():
                chosen = self.assign("index", chosen)
            symbol = sympy.Symbol(f"at_{len(self.values)}", integer=True)
            self.values[symbol] = chosen
            at = gather_table(value, index, symbol)
            leaf = reshaped_leaf(op.table, self.stored)
            if leaf is not None and leaf not in self.strided:
                return self.load(leaf, at, name=value.name or "picked", shape=op.table.shape)
            return self.value(op.table, at)
        raise AssertionError(f"{type(op).__name__} inside a kernel")

    def _operand(self, operand: Value | Scalar | float, value: Value, index: Index) -> Term:
        if isinstance(operand, Value):
            return self.value(operand, broadcast(index, value.shape, operand.shape))
        if isinstance(operand, Scalar):
            text, precedence = self.arguments.scalar(operand)
            return Term(text, precedence, frozenset())
        text = literal(operand)
        return Term(text, UNARY if text.startswith("-") else ATOM, frozenset(), float(operand))

    def _pointwise(self, value: Value, op: Pointwise, index: Index) -> Term:
        if op.function == "identity":
            return self._operand(op.operands[0], value, index)
        if op.function == "constant":
            number = op.operands[0]
            return Term(literal(number), ATOM if number >= 0 else UNARY, frozenset(), float(number))
        function = FUNCTIONS[op.function]
        self.library |= function.library
        terms = [self._operand(o, value, index) for o in op.operands]
        texts = [wrap(t.text, t.precedence, least) for t, least in zip(terms, function.inner, strict=True)]
        axes = frozenset().union(*(t.axes for t in terms))
        return Term(
            function.text.format(*texts), function.precedence, axes, _pad(op.function, terms, self.reduced_axis)
        )

    def _concat(self, value: Value, op: Concat, index: Index) -> Term:
        place = self.index_term(index[op.dim])
        pairs = operand_indices(value, index, self.domain)
        end = ZERO
        pieces: list[tuple[Term, Term]] = []
        for i, (operand, at) in enumerate(pairs):
            begin, end = end, sympy.expand(end + operand.shape[op.dim])
            text = wrap(place.text, place.precedence, SUM)
            limit_low, limit = wrap(*self.arguments.size(begin), SUM), wrap(*self.arguments.size(end), SUM)
            if i == 0:
                condition = Term(f"{text} < {limit}", 30, place.axes)
            elif i == len(pairs) - 1:
                condition = Term(f"{text} >= {limit_low}", 30, place.axes)
            else:
                condition = Term(f"({text} >= {limit_low}) & ({text} < {limit})", 50, place.axes)
            self.conditions.append(condition)
            pieces.append((condition, self.value(operand, at)))
            self.conditions.pop()
        result = pieces[-1][1]
        for condition, piece in reversed(pieces[:-1]):
            text = f"tl.where({condition.text}, {piece.text}, {result.text})"
            result = Term(text, ATOM, condition.axes | piece.axes | result.axes)
        return result

    # -- memory -----------------------------------------------------------------------------------------------------

    def address(self, value: Value, index: Index, shape: Shape) -> Term:
        """The element offset of ``value`` at ``index`` into ``shape``: by its strides where they are arguments, else row-major."""
        strides = self.strided.get(value)
        if strides is None:
            return self.index_term(offset(index, shape))
        return self.index_term(sum((i * s for i, s in zip(index, strides, strict=True)), ZERO))

    def load(self, value: Value, index: Index, name: str = "", shape: Shape | None = None) -> Term:
        """Load a stored value, addressed as if it had ``shape`` (same elements in row-major order)."""
        pointer = self.arguments.pointers.get(value)
        if pointer is None:
            pointer = self.arguments.pointers[value] = self.arguments.names.fresh(f"{variable_name(value)}_ptr")
        where = self.address(value, index, value.shape if shape is None else shape)
        masks = [a.mask for a in self.axes if a in where.axes and a.mask]
        axes = where.axes
        for condition in self.conditions:
            masks.append(wrap(condition.text, condition.precedence, 50))
            axes |= condition.axes
        text = f"{pointer} + {wrap(where.text, where.precedence, SUM)}" if where.text != "0" else pointer
        other = self.pad_hint if value.dtype.is_floating_point else 0.0
        if masks:
            missing = axes - where.axes
            for axis in self.axes:
                if axis in missing:
                    text += f" + 0 * {axis.variable}"
            fill = literal(other) if value.dtype.is_floating_point else "0"
            text = f"tl.load({text}, mask={' & '.join(_bracket(m, len(masks)) for m in masks)}, other={fill})"
        else:
            text = f"tl.load({text})"
        if value.dtype in (torch.float16, torch.bfloat16) and not self.raw_half:
            text += ".to(tl.float32)"
        elif value.dtype == torch.bool:
            text += ".to(tl.int1)"
        return self.assign(name or variable_name(value), Term(text, ATOM, axes, other if masks else None))

    def assign(self, name: str, term: Term) -> Term:
        """Give the expression a variable; statements that do not vary along the looped axis stay outside the loop."""
        if any(line.startswith(f"{name} = tl.load(") for line in (*self.lines, *self.inner)) and term.text.startswith(
            "tl.load("
        ):
            name = f"{name}_part"  # the same tensor, addressed elsewhere
        name = self.arguments.names.fresh(name)
        inside = any(a.looped for a in term.axes)
        (self.inner if inside else self.lines).append(f"{name} = {term.text}")
        return Term(name, ATOM, term.axes, term.pad)

    def store(self, value: Value, index: Index) -> None:
        """Store an output; its pointer is registered by the caller's order of outputs."""
        term = self.value(value, index)
        where = self.address(value, index, value.shape)
        axes = where.axes
        masks = [a.mask for a in self.axes if a in axes and a.mask]
        pointer = self.arguments.outputs[value]
        text = f"{pointer} + {wrap(where.text, where.precedence, SUM)}" if where.text != "0" else pointer
        stored = term.text
        if len(stored) > _WIDTH:
            stored = self.assign(variable_name(value), term).text
        mask = f", mask={' & '.join(_bracket(m, len(masks)) for m in masks)}" if masks else ""
        inside = any(a.looped for a in axes)
        (self.inner if inside else self.lines).append(f"tl.store({text}, {stored}{mask})")


def _bracket(mask: str, count: int) -> str:
    return mask if count == 1 or mask.isidentifier() or mask.startswith("(") else f"({mask})"


def _is_literal(value: Value) -> bool:
    return isinstance(value.op, Pointwise) and value.op.function == "constant"


def _pad(function: str, terms: list[Term], reduced: Axis | None) -> float | None:
    """What masked-off lanes hold after ``function``; None where that is not known.

    Uniform operands (the same along the reduced axis) count as finite: infinity plus them stays, zero times them stays.
    """
    pads = [t.pad for t in terms]
    if all(p is not None for p in pads):
        try:
            return float(FUNCTIONS[function].evaluate(*pads))
        except (ValueError, OverflowError, ZeroDivisionError, TypeError):
            return None
    uniform = [p is None and reduced not in t.axes for p, t in zip(pads, terms, strict=True)]
    if len(terms) == 2 and any(uniform):
        known = next((p for p in pads if p is not None), None)
        if known is None:
            return None
        if function in ("add", "sub") and math.isinf(known):
            return known if pads[0] is not None or function == "add" else -known
        if function == "mul" and known == 0:
            return 0.0
    return None
