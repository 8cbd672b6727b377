"""Names for where the phases of a transposed convolution begin: ``first_row`` for the ``(phase_row - (phase_row + 1) % 2 + 1) // 2`` of one with padding."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..kernel.ir import Apply, AxisIndex, Expr, Ref, Variable, summands, walk, width
from ..kernel.statements import Nested, Set, Statement
from ..schedule.program import expressions_of, statements

#: what is shorter is written out each time
_LEAST = 20
_PHASE = "phase"
#: along the depth it is called as other places are
_ALONG = {"": "place", "depth": "plane"}


def named(body: list[Statement]) -> tuple[list[Statement], list[Variable]]:
    """``body`` with names for what it needs several times of these, and the new variables."""
    counts: dict[Expr, int] = {}
    for statement in statements(body):
        for start in map(_flat, _starts(statement)):
            counts[start] = counts.get(start, 0) + 1
    several = {start for start, count in counts.items() if count > 1}
    variables: list[Variable] = []
    return (_block(tuple(body), several, {}, variables), variables) if several else (body, [])


def _starts(statement: Statement) -> list[Expr]:
    found: list[Expr] = []
    waiting = list(expressions_of(statement))
    while waiting:
        expr = waiting.pop()
        if _is_start(expr):
            found.append(expr)
        else:
            waiting += expr.parts
    return found


def _is_start(expr: Expr) -> bool:
    """Whether it is a quotient of a sum that begins with the phase, and in which that alone varies: counts of taps begin with a number."""
    if not (isinstance(expr, Apply) and expr.function == "floordiv_int" and width(expr) >= _LEAST):
        return False
    if not isinstance(summands(expr.operands[0])[0][1], AxisIndex):
        return False
    indices = [inner for inner in walk(expr) if isinstance(inner, AxisIndex)]
    variables = {index.axis.variable for index in indices}
    scalar = not any(index.axis.vector for index in indices)
    return scalar and len(variables) == 1 and _along(expr) is not None


def _along(start: Expr) -> str | None:
    """Along what the phase goes; None where it is none."""
    index = next(inner for inner in walk(start) if isinstance(inner, AxisIndex))
    word, _, along = index.axis.variable.wanted.partition("_")
    return along if word == _PHASE else None


def _flat(start: Expr) -> Expr:
    """The same for every statement that has it: with the variable itself in place of an axis."""
    if isinstance(start, AxisIndex):
        return Ref(start.axis.variable)
    if isinstance(start, Apply):
        return dataclasses.replace(start, operands=tuple(map(_flat, start.operands)))
    return start


def _block(
    body: tuple[Statement, ...], several: set[Expr], known: dict[Expr, Variable], variables: list[Variable]
) -> list[Statement]:
    """The statements with the names, each set before the first statement that needs it. ``known``: names of the blocks around."""
    known = dict(known)
    result: list[Statement] = []
    for statement in body:
        for start in _starts(statement):
            if (flat := _flat(start)) not in several or flat in known:
                continue
            along = _along(start) or ""
            known[flat] = Variable(f"first_{_ALONG.get(along, along)}")
            variables.append(known[flat])
            result.append(Set(known[flat], start))
        changed = _changed(statement, known)
        if isinstance(changed, Nested):
            changed = dataclasses.replace(changed, body=tuple(_block(changed.body, several, known, variables)))
        result.append(changed)
    return result


def _changed(node: Any, known: dict[Expr, Variable]) -> Any:
    """A statement without a loop's body, or an expression, with the names."""
    if isinstance(node, tuple):
        return tuple(_changed(part, known) for part in node)
    if not isinstance(node, Expr | Statement) or isinstance(node, Nested) or not known:
        return node
    if isinstance(node, Apply) and _is_start(node) and _flat(node) in known:
        index = next(inner for inner in walk(node) if isinstance(inner, AxisIndex))
        return AxisIndex(dataclasses.replace(index.axis, variable=known[_flat(node)]))
    fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    changed = {name: _changed(value, known) for name, value in fields.items()}
    same = all(changed[name] is value for name, value in fields.items())
    return node if same else dataclasses.replace(node, **changed)
