"""Loops of exactly one step: their bodies stand alone.

What is computed stays the same: a sum that begins with zeros and has one product is that product.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from ..kernel.ir import Apply, AxisIndex, Dot, Expr, Full, Number, Ref, Variable, walk
from ..kernel.statements import For, Nested, Set, Statement
from ..schedule.program import Program, expressions_of, statements


def written_out(program: Program) -> list[Statement]:
    """The body of ``program`` without such loops."""
    return _block(program.body, _numbers(program))


def has_single_step(program: Program) -> bool:
    """Whether there are such loops."""
    return written_out(program) != program.body


def has_loop(program: Program) -> bool:
    """Whether a loop is left whose steps a GPU may overlap."""
    return any(isinstance(s, For) and s.step is not None for s in statements(written_out(program)))


def _numbers(program: Program) -> dict[Variable, int]:
    """What is known of the kernel's constants before the launch."""
    static = {variable: int(size) for size, variable in program.arguments.static.items()}
    return static | {variable: value for variable, value in program.blocks.items() if isinstance(value, int)}


def _block(body: Iterable[Statement], numbers: dict[Variable, int]) -> list[Statement]:
    result: list[Statement] = []
    for statement in body:
        if not isinstance(statement, For):
            result.append(statement)
            continue
        inner = _block(statement.body, numbers)
        if _is_single(statement, numbers):
            for one in inner:
                _append(result, _at_zero(one, statement.variable))
        else:
            result.append(dataclasses.replace(statement, body=tuple(inner)))
    return result


def _is_single(loop: For, numbers: dict[Variable, int]) -> bool:
    """Whether the loop goes from 0 by a step that reaches its end."""
    if loop.in_order or not isinstance(loop.step, Variable) or loop.begin != Number(0):
        return False
    end, step = _number(loop.end, numbers), numbers.get(loop.step)
    return end is not None and step is not None and 0 < end <= step


def _number(expr: Expr, numbers: dict[Variable, int]) -> int | None:
    if isinstance(expr, Number):
        return int(expr.value)
    return numbers.get(expr.variable) if isinstance(expr, Ref) else None


def _append(result: list[Statement], statement: Statement) -> None:
    """Add a statement; where it adds a product to zeros that were set before for nothing else, these are left out."""
    if isinstance(statement, Set) and isinstance(statement.value, Dot):
        product, variable = statement.value, statement.variable
        if isinstance(product.total, Ref) and product.total.variable is variable:
            place = next((i for i in reversed(range(len(result))) if _mentions(result[i], variable)), None)
            begun = result[place] if place is not None else None
            if (
                place is not None
                and isinstance(begun, Set)
                and isinstance(begun.value, Full)
                and begun.value.value == 0
            ):
                del result[place]
                statement = Set(variable, dataclasses.replace(product, total=begun.value))
    result.append(statement)


def _mentions(statement: Statement, variable: Variable) -> bool:
    """Whether it sets or reads the variable; of a loop it is not asked."""
    if isinstance(statement, Nested) or getattr(statement, "variable", None) is variable:
        return True
    found = [expr for top in expressions_of(statement) for expr in walk(top)]
    return any(isinstance(expr, Ref) and expr.variable is variable for expr in found)


def _at_zero(node: Any, variable: Variable) -> Any:
    """A statement or an expression with 0 in place of ``variable``."""
    if isinstance(node, tuple):
        return tuple(_at_zero(part, variable) for part in node)
    if isinstance(node, Ref) and node.variable is variable:
        return Number(0)
    if isinstance(node, AxisIndex):
        return Number(0) if node.axis.variable is variable else node
    if not isinstance(node, Expr | Statement):
        return node
    fields = {field.name: _at_zero(getattr(node, field.name), variable) for field in dataclasses.fields(node)}
    changed = dataclasses.replace(node, **fields)
    if isinstance(node, Apply) and isinstance(changed, Apply) and changed.function == "add":
        first, second = changed.operands
        return second if first == Number(0) != node.operands[0] else changed
    return changed
