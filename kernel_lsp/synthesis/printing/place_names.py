"""Names for the places that both an offset and its masks are about: ``filter_row`` for the ``phase_row + tap_row * 2`` of a transposed convolution.

What is loaded and stored stays the same, and the sum is computed once: ``phase_row * 3 + tap_row * 6`` in an offset becomes ``filter_row * 3``.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

from ..kernel.ir import Apply, AxisIndex, Expr, Load, Number, Ref, Variable, apply, summands, total
from ..kernel.statements import Nested, Set, Statement, Store
from ..schedule.program import expressions_of

#: what a sum of two parts of an index is, by the words with which their names begin (``schedule.convolution_axes``)
_PLACES = {frozenset(["phase", "tap"]): "filter", frozenset(["phase", "pixel"]): "out"}
#: a place along the depth has another name than the size ``out_depth``
_ALONG = {"depth": "plane"}
_COMPARED = ("lt", "le", "gt", "ge")

#: A sum without the places of its parts in a tile: each variable with what it is multiplied by.
_Sum = frozenset[tuple[Variable, int]]


@dataclass(frozen=True)
class _Factor:
    """What a part of an offset is multiplied by: a number and sizes."""

    number: int
    sizes: tuple[Expr, ...]


def named(body: list[Statement]) -> tuple[list[Statement], list[Variable]]:
    """``body`` with names for such sums, and the new variables."""
    variables: list[Variable] = []
    return _block(tuple(body), {}, variables), variables


def _block(body: tuple[Statement, ...], known: dict[_Sum, Variable], variables: list[Variable]) -> list[Statement]:
    """The statements with names in place of the sums, each set before the first statement that needs it. ``known``: names of the blocks around."""
    known = dict(known)
    result: list[Statement] = []
    for statement in body:
        for place in _shared(statement):
            parts = _parts(place)
            if parts is not None and parts not in known:
                variable = known[parts] = Variable(_name(place))
                variables.append(variable)
                result.append(Set(variable, _flat(place)))
        changed = _changed(statement, known)
        if isinstance(changed, Nested):
            changed = dataclasses.replace(changed, body=tuple(_block(changed.body, known, variables)))
        result.append(changed)
    return result


def _shared(statement: Statement) -> list[Expr]:
    """The sums in masks of a statement's memory that its offset has as well."""
    found: list[Expr] = []
    for access in _accesses(statement):
        for compared in (place for mask in access.masks for place in _compared(mask)):
            if _name(compared) and _without(access.offset, compared) is not None:
                found.append(compared)
    return found


def _accesses(statement: Statement) -> list[Load | Store]:
    waiting: list[Expr] = list(expressions_of(statement))
    found: list[Load | Store] = [statement] if isinstance(statement, Store) else []
    while waiting:
        expr = waiting.pop()
        waiting += expr.parts
        found += [expr] if isinstance(expr, Load) else []
    return found


def _compared(mask: Expr) -> list[Expr]:
    """What a mask compares."""
    if isinstance(mask, Apply) and mask.function == "and":
        return [place for operand in mask.operands for place in _compared(operand)]
    return [mask.operands[0]] if isinstance(mask, Apply) and mask.function in _COMPARED else []


# -- sums -----------------------------------------------------------------------------------------------------------


def _times(term: Expr) -> tuple[Expr, _Factor] | None:
    """An index and what it is multiplied by; None for other terms."""
    if isinstance(term, AxisIndex):
        return term, _Factor(1, ())
    if not (isinstance(term, Apply) and term.function == "mul"):
        return None
    factors = _factors(term)
    indices = [factor for factor in factors if isinstance(factor, AxisIndex)]
    if len(indices) != 1:
        return None
    number, sizes = 1, []
    for factor in factors:
        if isinstance(factor, Number) and isinstance(factor.value, int):
            number *= factor.value
        elif not isinstance(factor, AxisIndex):
            sizes.append(factor)
    return indices[0], _Factor(number, tuple(sorted(sizes, key=str)))


def _factors(term: Expr) -> list[Expr]:
    if isinstance(term, Apply) and term.function == "mul":
        return [factor for operand in term.operands for factor in _factors(operand)]
    return [term]


def _parts(place: Expr) -> _Sum | None:
    """The parts of a sum of two indices, with the numbers that they are multiplied by; None for others."""
    found: set[tuple[Variable, int]] = set()
    terms = summands(place)
    for sign, term in terms:
        times = _times(term)
        if sign < 0 or times is None or times[1].sizes:
            return None
        index, factor = times
        assert isinstance(index, AxisIndex)
        found.add((index.axis.variable, factor.number))
    return frozenset(found) if len(found) == len(terms) == 2 else None


def _name(place: Expr) -> str:
    """What the place is called; "" where that is not known."""
    parts = _parts(place)
    names = [variable.wanted.partition("_") for variable, _ in parts or ()]
    kind = _PLACES.get(frozenset(word for word, _, _ in names), "")
    along = next((rest for _, _, rest in names if rest), "place")
    return f"{kind}_{_ALONG.get(along, along)}" if kind else ""


def _flat(expr: Expr) -> Expr:
    """The sum before its parts get their places in a tile."""
    if isinstance(expr, AxisIndex):
        return Ref(expr.axis.variable)
    assert isinstance(expr, Apply | Number)
    if isinstance(expr, Number):
        return expr
    return dataclasses.replace(expr, operands=tuple(map(_flat, expr.operands)))


def _index_of(place: Expr, variable: Variable) -> AxisIndex:
    """The variable as an index with the place in a tile that the sum has."""
    indices = [times[0] for _, term in summands(place) if (times := _times(term)) is not None]
    axes = [index.axis for index in indices if isinstance(index, AxisIndex)]
    of_tile = next((axis for axis in axes if axis.vector), axes[0])
    return AxisIndex(dataclasses.replace(of_tile, variable=variable))


def _without(offset: Expr, place: Expr) -> tuple[list[tuple[int, Expr]], int, _Factor] | None:
    """The terms of an offset without those of the sum, where the last of those stood, and what the sum is multiplied by; None if it is not in there."""
    parts = dict(_parts(place) or ())
    rest: list[tuple[int, Expr]] = []
    factors: set[_Factor] = set()
    at, left = 0, dict(parts)
    for sign, term in summands(offset):
        times = _times(term)
        variable = times[0].axis.variable if times is not None and isinstance(times[0], AxisIndex) else None
        if times is None or sign < 0 or variable not in left or times[1].number % parts[variable]:
            rest.append((sign, term))
            continue
        del left[variable]
        factors.add(_Factor(times[1].number // parts[variable], times[1].sizes))
        at = len(rest)
    return (rest, at, factors.pop()) if parts and not left and len(factors) == 1 else None


# -- statements -----------------------------------------------------------------------------------------------------


def _changed(node: Any, known: dict[_Sum, Variable]) -> Any:
    """A statement without a loop's body, or an expression, with the names."""
    if isinstance(node, tuple):
        return tuple(_changed(part, known) for part in node)
    if not isinstance(node, Expr | Statement) or isinstance(node, Nested) or not known:
        return node
    if isinstance(node, Apply) and node.function in _COMPARED:
        variable = known.get(_parts(node.operands[0]) or frozenset())
        if variable is not None:
            return dataclasses.replace(node, operands=(_index_of(node.operands[0], variable), *node.operands[1:]))
    if isinstance(node, Load | Store):
        node = _with_offset(node, known)
    fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    changed = {name: _changed(value, known) for name, value in fields.items()}
    return (
        node if all(changed[name] is value for name, value in fields.items()) else dataclasses.replace(node, **changed)
    )


def _with_offset(access: Any, known: dict[_Sum, Variable]) -> Any:
    """A load or store with the names in its offset."""
    offset = access.offset
    for place in (place for mask in access.masks for place in _compared(mask)):
        variable = known.get(_parts(place) or frozenset())
        found = _without(offset, place) if variable is not None else None
        if variable is None or found is None:
            continue
        rest, at, factor = found
        index: Expr = _index_of(place, variable)
        sizes = [*([Number(factor.number)] if factor.number != 1 else []), *factor.sizes]
        if sizes:
            index = apply("mul", index, functools.reduce(lambda a, b: apply("mul", a, b), sizes))
        rest.insert(at, (1, index))
        offset = total(rest)
    return dataclasses.replace(access, offset=offset)
