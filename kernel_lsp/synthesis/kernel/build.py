"""Expressions and statements of a kernel's body, from values and their indices.

The builder turns ``(value, index)`` into an expression: it loads what is stored, computes what is not, assigns what is
used more than once to a variable, and notes what masked lanes hold, so that a mask is applied only where a reduction
would otherwise see them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import sympy
import torch

from ..graph import division
from ..graph.names import variable_name
from ..graph.sizes import ONE, ZERO, Index, offset, same
from ..graph.value import Concat, Contract, Fold, Gather, Iota, Peak, Pointwise, Scan, Shape, Value, View
from . import ir
from .access import GATHERED, gather_index, gather_table, inside, operand_indices, reshaped_leaf
from .arguments import Arguments
from .concatenated import concatenated
from .domain import Domain
from .elementwise import elementwise
from .guarded import opaque, padded
from .ir import Apply, Axis, AxisIndex, Expr, Load, Number, Ref, Variable, apply, conjuncts, plus, width
from .statements import Nested, Set, Statement, Store

_AHEAD = 40  # what is wider than this in an offset, and the same in each round of a loop, is computed before the loop
_WIDTH = 72  # an expression wider than this gets a variable of its own


#: Roles of axes whose index a loop changes.
_IN_LOOP = ("loop", "scalar", "unrolled")


class Builder:
    """Adds statements to ``lines`` (once per program) or ``inner`` (inside the loop over a looped axis)."""

    def __init__(
        self, domain: Domain, axes: list[Axis], arguments: Arguments, stored: set[Value], placed: dict[Value, Index]
    ) -> None:
        self.domain, self.axes, self.arguments = domain, axes, arguments
        self.stored, self.placed = stored, placed
        self.lines: list[Statement] = []
        self.inner: list[Statement] = []
        self.memo: dict[tuple[tuple[Value, Index], tuple[Expr, ...]], Expr] = {}  # under which conditions
        self.named: dict[Expr, Expr] = {}  # indices that have a variable
        self.uses: dict[tuple[Value, Index], int] = {}
        self.places: dict[Value, set[Index]] = {}  # where each stored value is loaded
        self.before: set[str] = set()  # the names of what the kernel has loaded elsewhere
        self.suffix = ""  # of the names of what is loaded
        self.beside = "epilogue"  # what of such a tensor is loaded here
        self.needs: list[str] = []  # the names of the values that are being computed, the innermost last
        self.values: dict[sympy.Symbol, Expr] = {}  # placeholders for indices that were loaded
        self.reduced: dict[Value, Expr] = {}
        self.strided: dict[Value, list[sympy.Symbol]] = {}
        self.conditions: list[Expr] = []
        self.shared: dict[tuple[Value, Index], int] = {}  # what is computed under no more than so many conditions
        self.pad_hint = 0.0
        self.reduced_axis: Axis | None = None
        self.scan: Callable[[Value], Expr] | None = None  # computes a scan inside a loop along it
        self.raw_half = False  # keep half precision as loaded, for tl.dot
        self.starts: dict[Expr, Variable] = {}  # parts of offsets that were computed before a loop
        # An atom of which the last few places may be beyond a dimension's end, and what has to hold for a result to be stored.
        self.overhanging: sympy.Symbol | None = None
        self.ends: tuple[Expr, ...] = ()
        self.whole: Axis | None = None  # an axis that every load has, even where nothing varies along it

    # -- indices ------------------------------------------------------------------------------------------------

    def key(self, value: Value, index: Index) -> tuple[Value, Index]:
        """What tells one use of a value from another: its elements' indices in the present atoms."""
        return value, tuple(self.domain.resolve(e) for e in index)

    def index(self, expr: sympy.Expr) -> Expr:
        """An index expression over the axes. Scalars come first: the pointer is moved once, then the tile's offsets are added."""
        expr = self.domain.simplify(expr)
        parts: list[Expr] = []
        for symbol, chosen in self.values.items():
            c = expr.coeff(symbol, 1)
            if c != ZERO:
                parts.append(self._times(chosen, c))
                expr = sympy.expand(expr - c * symbol)
        coefficients, rest = self.domain.terms(expr)
        written_out = [axis for axis in self.axes if axis.role == "unrolled" and coefficients.keys() & {*axis.atoms}]
        numbers: list[tuple[Expr, sympy.Expr]] = []  # of two such loops: Python adds them up when it compiles
        for axis in self.axes:
            for part, c in self._runs(axis, [coefficients.get(a, ZERO) for a in axis.atoms]):
                if len(written_out) > 1 and axis in written_out:
                    numbers.append((part, c))
                else:
                    parts.append(self._times(part, c))
        parts = [*self._summed_by_size(numbers), *parts]
        for c, part in division.terms(rest):
            if not division.is_size(part):
                parts.append(self._times(opaque(self, part), c))
                rest = sympy.expand(rest - c * part)
        if rest != ZERO or not parts:
            parts.append(self.arguments.size(rest))
        first = next((i for i, part in enumerate(parts) if not _is_negated(part)), 0)
        total = parts.pop(first)
        for part in parts:
            total = plus(total, part)
        return total

    def _times(self, factor: Expr, c: sympy.Expr) -> Expr:
        if c == ONE:
            return factor
        if c.could_extract_minus_sign():
            return apply("neg", self._times(factor, -c))
        return apply("mul", factor, self.arguments.size(c))

    def _summed_by_size(self, numbers: list[tuple[Expr, sympy.Expr]]) -> list[Expr]:
        """Numbers times their coefficients, added up where these are multiples of one size, so that equal places are computed alike."""
        found: dict[sympy.Expr, Expr] = {}
        for part, c in numbers:
            times, size = c.as_content_primitive()
            if size.could_extract_minus_sign():
                times, size = -times, -size
            term = self._times(part, times)
            found[size] = plus(found[size], term) if size in found else term
        return [self._times(total, size) for size, total in found.items()]

    def _runs(self, axis: Axis, coefficients: list[sympy.Expr]) -> list[tuple[Expr, sympy.Expr]]:
        """(index, coefficient) for each maximal run of atoms that moves through memory as one index."""
        sizes = [self.domain.size[a] for a in axis.atoms]
        result: list[tuple[Expr, sympy.Expr]] = []
        j = len(sizes) - 1
        inner: sympy.Expr = ONE
        while j >= 0:
            i, run = j, sizes[j]
            while i > 0 and same(coefficients[i - 1], coefficients[i] * sizes[i]):
                i -= 1
                run = sympy.expand(run * sizes[i])
            if coefficients[j] != ZERO:
                part: Expr = AxisIndex(axis)
                if axis is self.reduced_axis:
                    for divisor in ([inner] if inner != ONE else []) + ([run] if i > 0 else []):
                        self.arguments.divide_by(divisor)
                if inner != ONE:
                    part = apply("floordiv_int", part, self.arguments.size(inner))
                if i > 0:
                    part = apply("mod_int", part, self.arguments.size(run))
                result.append((part, coefficients[j]))
            inner = sympy.expand(inner * run)
            j = i - 1
        return result[::-1]

    # -- values --------------------------------------------------------------------------------------------------

    def count(self, value: Value, index: Index) -> None:
        """Count how often each (value, index) is used, so that shared ones get a variable."""
        key = self.key(value, index)
        self.uses[key] = self.uses.get(key, 0) + 1
        leaf = reshaped_leaf(value, self.stored)
        if leaf is not None:
            self.places.setdefault(leaf, set()).add(key[1])
        if self.uses[key] > 1 or leaf is not None or value in self.reduced or isinstance(value.op, Fold | Contract):
            return
        if isinstance(value.op, Gather):
            self.count(value.op.index, gather_index(value, index))
            self.count(value.op.table, gather_table(value, index, GATHERED))
            return
        for operand, i in operand_indices(value, key[1], self.domain):
            self.count(operand, i)

    def value(self, value: Value, index: Index) -> Expr:
        """The value at ``index``, with the statements that have to come first."""
        key = self.key(value, index)
        if value in self.reduced:
            return self.reduced[value]
        if (depth := self.shared.get(key, len(self.conditions))) < len(self.conditions):
            conditions, self.conditions = self.conditions, self.conditions[:depth]
            result = self.value(value, index)
            self.conditions = conditions
            return result
        if (known := self.memo.get((key, ()), self.memo.get((key, tuple(self.conditions))))) is not None:
            return known
        leaf = reshaped_leaf(value, self.stored)
        if leaf is not None and (leaf is value or leaf not in self.strided):
            result = self.load(leaf, key[1], shape=value.shape)
        else:
            named = bool(value.name) and not isinstance(value.op, View | Iota)
            self.needs += [value.name] if named else []
            result = self._computed(value, key)
            self.needs = self.needs[: len(self.needs) - named]
            simple = isinstance(result, Ref | Number) or isinstance(value.op, View)
            if (self.uses.get(key, 1) > 1 or named or width(result) > _WIDTH) and not simple:
                result = self.assign(variable_name(value), result, value.dtype)
        self.memo[key, tuple(self.conditions)] = result
        return result

    def _computed(self, value: Value, key: tuple[Value, Index]) -> Expr:
        op, index = value.op, key[1]
        if isinstance(op, Pointwise):
            return elementwise(self, value, op, index)
        if isinstance(op, View):
            if op.map.guard:
                return padded(self, value, index)
            ((operand, i),) = operand_indices(value, index, self.domain)
            return self.value(operand, i)
        if isinstance(op, Concat):
            return concatenated(self, value, op, index)
        if isinstance(op, Scan) and self.scan is not None:
            return self.scan(value)
        if isinstance(op, Iota):
            return self.index(index[op.dim] * op.step + op.start)
        if isinstance(op, Gather):
            chosen = self.value(op.index, gather_index(value, index))
            if not isinstance(chosen, Ref):
                chosen = self.assign("index", chosen, op.index.dtype)
            symbol = sympy.Symbol(f"at_{len(self.values)}", integer=True)
            self.values[symbol] = chosen
            at = gather_table(value, index, symbol)
            leaf = reshaped_leaf(op.table, self.stored)
            if leaf is not None and leaf not in self.strided:
                return self.load(leaf, at, name=value.name or "picked", shape=op.table.shape)
            return self.value(op.table, at)
        raise AssertionError(f"{type(op).__name__} inside a kernel")

    # -- memory -----------------------------------------------------------------------------------------------------

    def address(self, value: Value, index: Index, shape: Shape) -> Expr:
        """The element offset of ``value`` at ``index`` into ``shape``: by its strides where they are arguments, else row-major."""
        strides = self.strided.get(value)
        if strides is None:
            return self.index(offset(index, shape))
        return self.index(sum((i * s for i, s in zip(index, strides, strict=True)), ZERO))

    def load(
        self, value: Value, index: Index, name: str = "", shape: Shape | None = None, other: float | None = None
    ) -> Expr:
        """Load a stored value, addressed as if it had ``shape`` (same elements in row-major order).

        ``other``: what masked lanes hold; by default the neutral element of the reduction around.
        """
        pointer = self.arguments.pointers.get(value)
        if pointer is None:
            pointer = self.arguments.pointers[value] = self.arguments.variable(f"{variable_name(value)}_ptr")
        shape = value.shape if shape is None else shape
        where = self._ahead(self.address(value, index, shape), value)
        if self.whole is not None and self.whole not in where.axes:
            where = plus(where, apply("mul", Number(0), AxisIndex(self.whole)))
        conditions = [*self.conditions, *(self._sides(index, shape) if self.overhanging is not None else ())]
        if other is None and inside(index, shape, self.domain):
            # One load serves all lanes of an axis, and all rounds of a loop: what is asked along them is asked of the result alone.
            conditions = [c for c in conditions if not any(axis.vector for axis in c.axes - where.axes)]
            if not varies_in_loop(where):
                conditions = [c for c in conditions if not varies_in_loop(c)]
        asked = frozenset[Axis]().union(*(condition.axes for condition in conditions))
        masks = (*self.masks(where.axes | asked), *conditions)  # what is asked spreads the load along its axes
        missing = frozenset().union(*(mask.axes for mask in masks)) - where.axes
        for axis in self.axes:
            if axis in missing and axis.vector:
                where = plus(where, apply("mul", Number(0), AxisIndex(axis)))
        if other is None:
            other = self.pad_hint if value.dtype.is_floating_point else 0
        loaded_there = (value, ()), (where, *masks, Number(other))
        if (known := self.memo.get(loaded_there)) is not None:  # the same elements as another shape
            return known
        result: Expr = Load(pointer, where, masks, other, value.dtype)
        if value.dtype in (torch.float16, torch.bfloat16) and not self.raw_half:
            result = Apply("to_float32", (result,), torch.float32, result.pad)
        elif value.dtype == torch.bool:
            result = Apply("to_int1", (result,), torch.bool, result.pad)
        name = name or variable_name(value)
        if len(self.places.get(value, ())) > 1 and self.needs and self.needs[-1] != name:
            name = f"{name}_{self.needs[-1]}"  # one of several parts: whose it is
        self.memo[loaded_there] = self.assign(name, result, value.dtype)
        return self.memo[loaded_there]

    def _sides(self, index: Index, shape: Shape) -> list[Expr]:
        """That a place to load from is in the tensor, where an overhanging atom may lead beyond and no condition says so.

        What is loaded for a result beyond the end is of no use, so that any element of the tensor does.
        """
        asked = {part for condition in self.conditions for part in conjuncts(condition)}
        found: list[Expr] = []
        for e, n in zip(index, shape, strict=True):
            place = self.domain.simplify(e)
            if self.overhanging not in place.free_symbols:
                continue
            above, below = division.within(place, ZERO, n, self.domain.size)
            if above and below:
                continue
            at = self.index(place)
            at = self.named.get(at, at)
            found += [] if above else [apply("ge", at, Number(0), dtype=torch.bool)]
            found += [] if below else [apply("lt", at, self.arguments.size(n), dtype=torch.bool)]
        return [side for side in found if side not in asked]

    def peak(self, value: Value, index: Index) -> None:
        """Note the largest magnitude of what is stored, see ``value.Peak``; its pointer was registered before."""
        assert isinstance(value.op, Peak)
        found = self.value(value.op.operand, index)
        for mask in self.masks(found.axes) if found.pad != 0 else ():  # a lane beyond the end has no part in it
            found = masked(found, mask, 0.0, torch.float32)
        found = Apply("abs", (found,), torch.float32)
        vectors = [axis for axis in self.axes if axis.vector]
        for place, axis in reversed(list(enumerate(vectors))):
            found = ir.FoldAxis("max", found, axis, place, False, False, torch.float32)
        pointer, variable = self.arguments.outputs[value], self.arguments.variable("peak")
        known = Load(pointer, Number(0), (), 0.0, torch.float32)
        more = apply("gt", Ref(variable), known, dtype=torch.bool)  # most programs need not wait for the others
        self.lines += [Set(variable, found), Store(pointer, Number(0), Ref(variable), (more,), atomic=True)]

    def _ahead(self, where: Expr, value: Value) -> Expr:
        """An offset inside a loop, with what does not change there computed before it."""
        terms = ir.summands(where)
        inside = [not varies_in_loop(part) for _, part in terms]
        if (
            all(inside)
            or sum(width(part) for (_, part), same_each in zip(terms, inside, strict=True) if same_each) < _AHEAD
        ):
            return where
        before = ir.total([term for term, same_each in zip(terms, inside, strict=True) if same_each])
        variable = self.starts.get(before)
        if variable is None:
            part = self.needs[-1] if len(self.places.get(value, ())) > 1 and self.needs else ""
            name = "_".join(filter(None, [variable_name(value), part, self.suffix, "start"]))
            variable = self.starts[before] = self.arguments.variable(name)
            self.lines.append(Set(variable, before))
        return ir.total(
            [(1, Ref(variable, before.axes)), *(t for t, same in zip(terms, inside, strict=True) if not same)]
        )

    def masks(self, axes: frozenset[Axis]) -> tuple[Expr, ...]:
        """The masks of those of ``axes`` that have one."""
        return tuple(axis.mask for axis in self.axes if axis in axes and axis.mask is not None)

    def assign(self, name: str, value: Expr, dtype: torch.dtype) -> Ref:
        """Give the expression a variable; what does not vary along the looped axis is computed outside the loop."""
        variable = self.arguments.variable(self._part(name) if _is_load(value) else name)
        self.add(Set(variable, value), value.axes)
        return Ref(variable, value.axes, dtype, value.pad)

    def named_place(self, name: str, place: Expr) -> Expr:
        """An index in a variable, the same one wherever it is asked for."""
        if place not in self.named:
            self.named[place] = self.assign(name, place, torch.int32)
        return self.named[place]

    def _part(self, name: str) -> str:
        """Another name where the same tensor was loaded at another place already."""
        if self.suffix:
            return f"{name}_{self.suffix}"
        known = name in loaded((*self.lines, *self.inner))
        return f"{name}_part" if known else f"{name}_{self.beside}" if name in self.before else name

    def add(self, statement: Statement, axes: frozenset[Axis]) -> None:
        """Add a statement inside the loop, if one of its axes goes along it, else before it."""
        inside = any(axis.role in _IN_LOOP for axis in axes)
        (self.inner if inside else self.lines).append(statement)

    def store(self, value: Value, index: Index, into: tuple[Value, Index] | None = None) -> None:
        """Store an output; its pointer was registered before, in the order of outputs.

        ``into``: the tensor that has its memory, and the place there, where that is another one.
        """
        result = self.value(value, index)
        filled, at = into or (value, index)
        ends: tuple[Expr, ...] = tuple(
            apply("lt", self.index(e), self.arguments.size(n), dtype=torch.bool)
            for e, n, computed in zip(at, filled.shape, value.shape, strict=True)
            if into is not None and isinstance(filled.op, View) and not same(n, computed)
        )
        ends = (*ends, *self.ends)
        if width(result) > _WIDTH:
            result = self.assign(variable_name(value), result, value.dtype)
        stored = self.stored_at(filled, at, result, ends)
        self.add(stored, stored.offset.axes | result.axes)

    def stored_at(self, value: Value, index: Index, result: Expr, ends: tuple[Expr, ...] = ()) -> Store:
        """The statement that stores ``result`` as the element of ``value`` at ``index``, where ``ends`` hold."""
        where = self.address(value, index, value.shape)
        ended = frozenset[Axis]().union(*(end.axes for end in ends))
        for axis in self.axes:
            # An axis of extent one has no part in the address, and one lane that counts. So has one of which only the first element is stored.
            alone = not axis.atoms and axis.vector
            if axis in result.axes - where.axes and (alone or axis in ended):
                where = plus(where, apply("mul", Number(0), AxisIndex(axis)))
        return Store(self.arguments.outputs[value], where, result, (*self.masks(where.axes), *ends))


def loaded(body: Iterable[Statement]) -> set[str]:
    """The names that variables want which statements load, those in loops, too."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, Nested):
            found |= loaded(statement.body)
        elif isinstance(statement, Set) and _is_load(statement.value):
            found.add(statement.variable.wanted)
    return found


def varies_in_loop(expr: Expr) -> bool:
    """Whether it has another value in each round of a loop around it."""
    return any(axis.role in _IN_LOOP for axis in expr.axes)


def _is_negated(expr: Expr) -> bool:
    return (isinstance(expr, Apply) and expr.function == "neg") or (isinstance(expr, Number) and expr.value < 0)


def _is_load(value: Expr) -> bool:
    return isinstance(value, Load) or (isinstance(value, Apply) and any(isinstance(o, Load) for o in value.operands))


def masked(expr: Expr, mask: Expr, other: float | int, dtype: torch.dtype) -> Expr:
    """``expr`` with ``other`` where the mask does not hold."""
    return Apply("where", (mask, expr, Number(other)), dtype, float(other))


def spread(expr: Expr, axis: Axis) -> Expr:
    """``expr`` with ``axis`` in its shape, also where it does not vary along it."""
    if axis in expr.axes:
        return expr
    extended = plus(expr, apply("mul", Number(0), AxisIndex(axis)))
    return dataclasses.replace(extended, holds=None) if isinstance(extended, Apply) else extended
