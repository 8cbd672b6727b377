"""Names for the parts of an index that a kernel needs several times: the image, the row and the column of a flat index.

The arithmetic stays the same. ``cols // (width * height)``, ``cols // width % height`` and ``cols % width`` become ``image``, ``pixel_row``
and ``pixel_col`` in a convolution (``Program.part_names``), else ``cols_outer``, ``cols_middle`` and ``cols_inner``, each computed once, where they
are long or stand there often.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import sympy

from ..kernel.ir import Apply, AxisIndex, Expr, Number, Ref, Variable, width
from ..kernel.statements import Nested, Set, Statement
from ..schedule.program import Program

_QUOTIENT, _REST = "floordiv_int", "mod_int"
#: what every size counts as where parts are put in order
_SIZE = 1009
#: the parts of an index get names where one of them is longer than its name by so many characters, or stands there as often
_LONGER, _OFTEN = 8, 4

_Node = TypeVar("_Node", bound=Any)


@dataclass(frozen=True)
class _Scope:
    """``once``: variables that one statement sets; ``given``: the kernel's arguments and constants, which none does."""

    once: frozenset[Variable]
    given: frozenset[Variable]


def named(program: Program, body: list[Statement]) -> tuple[list[Statement], list[Variable]]:
    """``body``, the program's, with names for such parts, and the new variables."""
    times: dict[Variable, int] = {}
    for statement in _statements(body):
        for variable in _set_by(statement):
            times[variable] = times.get(variable, 0) + 1
    given = {*program.arguments.variables, *program.blocks} - times.keys()
    scope = _Scope(frozenset(v for v, count in times.items() if count == 1), frozenset(given))
    counts: dict[Variable, dict[Expr, int]] = {}
    atoms: dict[Variable, list[sympy.Symbol]] = {}
    for statement in _statements(body):
        for part in _parts_of(statement, scope):
            axis = _index(part).axis
            of_one, atoms[axis.variable] = counts.setdefault(axis.variable, {}), axis.atoms
            of_one[_flat(part)] = of_one.get(_flat(part), 0) + 1
    chosen: dict[Expr, Variable] = {}
    for index, of_one in counts.items():
        parts = sorted(of_one, key=_divisor, reverse=True)
        if known := _known([program.part_names.get(atom, "") for atom in atoms[index]], parts):
            if any(count > 1 for count in of_one.values()):  # names that say what a part is help from the second use on
                chosen |= {part: Variable(name) for part, name in known.items()}
            continue
        names = {part: f"{index.wanted}_{_place(part)}" for part in parts if of_one[part] > 1}
        if any(width(p) >= len(name) + _LONGER or of_one[p] >= _OFTEN for p, name in names.items()):
            chosen |= {part: Variable(name) for part, name in names.items()}
    if not chosen:
        return body, []
    return _block(body, chosen, dict(chosen), scope, set()), list(chosen.values())


# -- what there is --------------------------------------------------------------------------------------------------


def _statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those of loops after the loop itself."""
    for statement in body:
        yield statement
        if isinstance(statement, Nested):
            yield from _statements(statement.body)


def _set_by(statement: Statement) -> list[Variable]:
    variables = [getattr(statement, "variable", None), *getattr(statement, "variables", ())]
    return [variable for variable in variables if variable is not None]


def _parts_of(node: Statement | Expr, scope: _Scope) -> Iterator[Expr]:
    """The parts of indices in a statement without a loop's body, or in an expression; none within another."""
    for value in _fields(node):
        if _is_division(value) and _is_part(value, scope):
            yield value
        elif isinstance(value, Expr):
            yield from _parts_of(value, scope)


def _fields(node: Any) -> Iterator[Any]:
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, tuple):
            yield from value
        else:
            yield value


_KNOWN_FIELDS: dict[type, tuple[str, ...]] = {}  # asked for each of the many expressions of a deep network


def _field_names(kind: type) -> tuple[str, ...]:
    if kind not in _KNOWN_FIELDS:
        _KNOWN_FIELDS[kind] = tuple(field.name for field in dataclasses.fields(kind))
    return _KNOWN_FIELDS[kind]


def _is_division(expr: Any) -> bool:
    return isinstance(expr, Apply) and expr.function in (_QUOTIENT, _REST)


def _is_part(expr: Expr, scope: _Scope) -> bool:
    """Whether it is an index, divided by sizes."""
    if isinstance(expr, Apply):
        return _is_division(expr) and _is_part(expr.operands[0], scope) and _is_size(expr.operands[1], scope)
    return isinstance(expr, AxisIndex) and expr.axis.variable in scope.once


def _is_size(expr: Expr, scope: _Scope) -> bool:
    if isinstance(expr, Ref):
        return expr.variable in scope.given
    return isinstance(expr, Number) or (isinstance(expr, Apply) and all(_is_size(o, scope) for o in expr.operands))


def _index(part: Expr) -> AxisIndex:
    while isinstance(part, Apply):
        part = part.operands[0]
    assert isinstance(part, AxisIndex)
    return part


def _flat(part: Expr) -> Expr:
    """The part before the index gets its place in a tile: the same for every place."""
    if isinstance(part, Apply):
        return dataclasses.replace(part, operands=(_flat(part.operands[0]), part.operands[1]))
    assert isinstance(part, AxisIndex)
    return Ref(part.axis.variable)


# -- names ----------------------------------------------------------------------------------------------------------


def _known(names: list[str], parts: list[Expr]) -> dict[Expr, str]:
    """The name of each of ``parts``, which stand farther out first, by those of the index's atoms; none where they are not these.

    A part that is several atoms has the word that their names begin with, where it is one: the pixel, the tap or the phase.
    """
    divisors = list(dict.fromkeys(map(_divisor, parts)))
    if len(divisors) != len(names) or not all(names):
        return {}
    found: dict[Expr, str] = {}
    for part in parts:
        place = divisors.index(_divisor(part))
        outside = divisors[place] * _modulus(part)  # the divisor of the atom beyond those that the part has
        beyond = [i for i, divisor in enumerate(divisors[:place]) if divisor == outside]
        if not beyond and outside != math.inf:
            return {}
        held = names[beyond[0] + 1 if beyond else 0 : place + 1]
        common = {name.partition("_")[0] for name in held}
        if len(held) == 1:
            found[part] = held[0]
        elif len(common) == 1:
            found[part] = common.pop()
        else:
            return {}
    return found if len(set(found.values())) == len(found) else {}


def _modulus(part: Expr) -> float:
    return _number(part.operands[1]) if isinstance(part, Apply) and part.function == _REST else math.inf


def _place(part: Expr) -> str:
    """Which part of the index it is."""
    if _divisor(part) == 1:
        return "inner"
    return "middle" if isinstance(part, Apply) and part.function == _REST else "outer"


def _divisor(part: Expr) -> int:
    """What the index is divided by, with a number for each size: how far out the part stands."""
    if not isinstance(part, Apply):
        return 1
    return _divisor(part.operands[0]) * (_number(part.operands[1]) if part.function == _QUOTIENT else 1)


def _number(size: Expr) -> int:
    if isinstance(size, Number):
        return max(1, int(size.value))
    inner = [_number(part) for part in size.parts] or [_SIZE]
    return math.prod(inner) if isinstance(size, Apply) and size.function.startswith("mul") else sum(inner)


# -- the body -------------------------------------------------------------------------------------------------------


def _block(
    statements: Iterable[Statement],
    chosen: dict[Expr, Variable],
    waiting: dict[Expr, Variable],
    scope: _Scope,
    known: set[Variable],
) -> list[Statement]:
    """The statements with the variables in place of the parts, which are set before the first statement that needs one.

    ``waiting``: those that are not set yet, ``known``: the variables that are set before the block.
    """
    result: list[Statement] = []
    for statement in statements:
        within = _statements([statement])
        needed = {part for one in within for part in _named_in(one, chosen, scope)} & waiting.keys()
        indices = {_leaf(part) for part in needed} & known
        for part in [part for part in waiting if _leaf(part) in indices]:  # all parts of an index at once
            result.append(Set(waiting.pop(part), part))
        changed = _with_names(statement, chosen, scope)
        known = known | {*_set_by(statement)}
        if isinstance(changed, Nested) and isinstance(statement, Nested):
            body = _block(statement.body, chosen, waiting, scope, known)
            changed = dataclasses.replace(changed, body=tuple(body))
        result.append(changed)
    return result


def _leaf(part: Expr) -> Variable:
    while isinstance(part, Apply):
        part = part.operands[0]
    assert isinstance(part, Ref)
    return part.variable


def _named_in(node: Statement | Expr, chosen: dict[Expr, Variable], scope: _Scope) -> Iterator[Expr]:
    """What ``_with_names`` puts variables in place of: also a part within another one, which has no name itself."""
    for value in _fields(node):
        if _is_division(value) and _is_part(value, scope) and _flat(value) in chosen:
            yield _flat(value)
        elif isinstance(value, Expr):
            yield from _named_in(value, chosen, scope)


def _with_names(node: _Node, chosen: dict[Expr, Variable], scope: _Scope) -> _Node:
    """A statement without a loop's body, or an expression, with variables in place of the parts."""

    def renamed(value: Any) -> Any:
        if isinstance(value, tuple):
            inner = tuple(map(renamed, value))
            return value if all(a is b for a, b in zip(inner, value, strict=True)) else inner
        if not isinstance(value, Expr):
            return value
        if _is_division(value) and _is_part(value, scope) and _flat(value) in chosen:
            return AxisIndex(dataclasses.replace(_index(value).axis, variable=chosen[_flat(value)]))
        return _with_names(value, chosen, scope)

    return _changed(node, renamed)


def _changed(node: _Node, change: Callable[[Any], Any]) -> _Node:
    """A dataclass with ``change`` applied to each field."""
    before = {name: getattr(node, name) for name in _field_names(type(node))}
    changed = {name: change(value) for name, value in before.items()}
    if all(changed[name] is value for name, value in before.items()):
        return node
    result: _Node = dataclasses.replace(node, **changed)
    return result
