"""What a fold carries along, as statements: before the loop, inside it, and after it (``monoids.py`` says what)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from ..graph.monoids import Term, mentions
from ..graph.names import variable_name
from ..graph.sizes import broadcast
from ..graph.value import Fold, Value
from ..kernel.build import Builder
from ..kernel.execution_plan import Kernel
from ..kernel.ir import Apply, Arange, AxisIndex, Expr, FoldAxis, Full, Number, Ref, apply
from ..kernel.statements import Add, Set, Statement
from .row_passes import Running
from .tilings import Tiling

_BOOL = frozenset(["eq", "ne", "lt", "gt", "and", "or"])


@dataclass
class Carrying:
    """A fold on its way. ``starts`` stand before the loop, ``updates`` inside it; ``finish`` gives the results after it."""

    running: Running
    tiling: Tiling
    dtype: torch.dtype
    known: dict[str, Expr]
    starts: list[Statement] = field(default_factory=list)
    updates: list[Statement] = field(default_factory=list)

    def term(self, term: Term) -> Expr:
        """A term of a monoid's formula as an expression: a known name, a number, or (function, operands)."""
        if isinstance(term, str):
            return self.known[term]
        if not isinstance(term, tuple):
            return Number(term)
        function, *rest = term
        if function.startswith("fold."):
            return self._folded(function.removeprefix("fold."), rest[0], keep=self.tiling.rank == 2)
        operands = [self._within(part) for part in rest]
        if function == "inside":
            mask = self.tiling.reduced.mask
            return operands[0] if mask is None else apply("where", mask, *operands, dtype=self.dtype)
        dtype = torch.bool if function in _BOOL else torch.int32 if function == "to_int32" else self.dtype
        return apply(function, *operands, dtype=dtype)

    def _within(self, term: Term) -> Expr:
        """A term that stands beside tiles: what is folded keeps its dimension."""
        if isinstance(term, tuple) and term[0].startswith("fold."):
            return self._folded(term[0].removeprefix("fold."), term[1], keep=True)
        return self.term(term)

    def _folded(self, kind: str, term: Term, *, keep: bool) -> Expr:
        operand, reduced = self.term(term), self.tiling.reduced
        if reduced.role == "unrolled":  # there is one lane a result
            return operand
        keeps_nan = kind in ("amax", "amin") and self.dtype.is_floating_point
        return FoldAxis(kind, operand, reduced, self.tiling.place, keep, keeps_nan, self.dtype)

    def results(self, kernel: Kernel, builder: Builder, *, late: bool) -> list[tuple[Value, Expr]]:
        """The results that do not need the row's number, or (``late``) those that do."""
        found: list[tuple[Value, Expr]] = []
        running, monoid = self.running, self.running.monoid
        if self.tiling.reduced.role == "unrolled" and monoid.alone in self.known:
            return [] if late else [(running.fold, self.known[monoid.alone])]
        waiting = {"about"}
        for name, term in monoid.finish:
            if mentions(term, waiting):
                waiting.add(name)
            if (name in waiting) != late or (name in monoid.results and name not in running.results):
                continue
            if late and "about" not in self.known:
                assert running.about is not None
                index = broadcast(kernel.placed[running.fold], running.fold.shape, running.about.shape)
                self.known["about"] = builder.value(running.about, index)
            value = self.term(term)
            if name in running.results:
                found.append((running.results[name], value))
            else:
                variable = builder.arguments.variable(name)
                builder.lines.append(Set(variable, value))
                self.known[name] = Ref(variable, value.axes, self.dtype)
        return found


def carrying(builder: Builder, running: Running, element: Expr, tiling: Tiling) -> Carrying:
    """The statements of a fold. ``element``: what is folded, with the neutral element in lanes beyond the end."""
    monoid, fold = running.monoid, running.fold
    dtype = accumulated(fold)
    names = {key: variable_name(value) for key, value in running.results.items()}
    result = Carrying(running, tiling, dtype, {"place": AxisIndex(tiling.reduced)})
    for carried in monoid.carried:
        variable = builder.arguments.variable(
            carried.name.format(variable_name(fold), **{"highest": "highest", **names})
        )
        if carried.start == "first":
            start: Expr = _first_places(tiling)
        elif carried.holds == "count":
            start = Full((), float(carried.start), dtype, frozenset())
        else:
            number = in_dtype(float(carried.start), running.element.dtype)
            start = Full(tiling.shape, number, dtype, tiling.vectors)
        kind = torch.int32 if carried.holds == "place" else dtype
        shape = frozenset() if carried.holds == "count" else tiling.vectors
        result.starts.append(Set(variable, start))
        result.known[carried.key] = Ref(variable, shape, kind)
    often = sum(_occurrences(term, "element") for _, term in monoid.enter) > 1
    if often and not isinstance(element, Ref):
        variable = builder.arguments.variable(variable_name(running.element))
        result.updates.append(Set(variable, element))
        element = Ref(variable, element.axes, dtype, element.pad)
    result.known["element"] = element
    carried_keys = {carried.key for carried in monoid.carried}
    for name, term in monoid.enter:
        if name not in carried_keys:
            value = result.term(term)
            variable = builder.arguments.variable(name)
            result.updates.append(Set(variable, value))
            result.known[name] = Ref(variable, value.axes, value.dtype if isinstance(value, Apply) else dtype)
            continue
        held = result.known[name]
        assert isinstance(held, Ref)
        if isinstance(term, tuple) and term[:2] == ("add", name):
            result.updates.append(Add(held.variable, result.term(term[2])))
        else:
            result.updates.append(Set(held.variable, result.term(term)))
    return result


def finish(folds: list[Carrying], kernel: Kernel, builder: Builder) -> None:
    """Have ``builder`` know what the folds come to, those last that need the row's number."""
    for late in (False, True):
        for fold in folds:
            for v, end in fold.results(kernel, builder, late=late):
                builder.reduced[v] = end if isinstance(end, Ref) else builder.assign(variable_name(v), end, v.dtype)


def accumulated(v: Value) -> torch.dtype:
    """The dtype in which a reduction is carried along."""
    assert isinstance(v.op, Fold)
    own = v.op.operand.dtype
    if v.op.kind == "sum" and v.dtype == torch.int64:
        return torch.int64
    return own if own in (torch.float64, torch.int64, torch.int32) else torch.float32


def in_dtype(number: float, dtype: torch.dtype) -> float | int:
    """A number of a monoid among elements of ``dtype``: integers have no infinity, but a least and a greatest."""
    if dtype.is_floating_point:
        return number
    if dtype == torch.bool:
        return int(number > 0)
    if math.isfinite(number):
        return int(number)
    limits = torch.iinfo(dtype)
    return limits.min if number < 0 else limits.max


def _first_places(tiling: Tiling) -> Expr:
    """The first place of each lane, which is the best where nothing is better than the least number there is."""
    none = Full(tiling.shape, 0, torch.int32, tiling.vectors)
    if tiling.step is None:
        return none
    lane = (tiling.place, tiling.rank) if tiling.rank > 1 else None
    first = Arange(tiling.step, tiling.reduced, lane)
    return apply("add", none, first) if tiling.rank > 1 else first


def _occurrences(term: Term, name: str) -> int:
    if isinstance(term, tuple):
        return sum(_occurrences(part, name) for part in term[1:])
    return int(term == name)
