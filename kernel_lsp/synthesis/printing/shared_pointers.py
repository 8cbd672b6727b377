"""A name for where several loads of one tensor begin: those of the gates in a step differ in a constant alone.

The arithmetic stays the same, and its order: what is added to the pointer first is added once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..kernel.ir import AxisIndex, Expr, Load, Ref, Variable, summands, total, walk, width
from ..kernel.statements import For, Set, Statement
from ..schedule.program import expressions, statements

#: what is shorter is written out each time
_LEAST = 24


@dataclass(frozen=True)
class Shared:
    """``variable`` is ``pointer + offset`` from the statement ``first`` on, to the end of its block."""

    variable: Variable
    pointer: Variable
    offset: Expr
    first: Statement

    def rest(self, offset: Expr) -> Expr | None:
        """What is left to add for another offset; None where it is not of these."""
        mine, theirs = summands(self.offset), summands(offset)
        if theirs[: len(mine)] != mine:
            return None
        return total(theirs[len(mine) :]) if len(theirs) > len(mine) else None


def found(body: Iterable[Statement]) -> list[Shared]:
    """Such pointers of each loop without a loop inside; of a tensor one."""
    result: dict[Variable, Shared] = {}
    for loop in _loops(body):
        for pointer, loads in _loads(loop).items():
            shared = _of_one(loop, pointer, loads)
            if shared is not None:
                result.setdefault(pointer, shared)
    return list(result.values())


def _loops(body: Iterable[Statement]) -> Iterator[For]:
    for statement in statements(tuple(body)):
        if isinstance(statement, For) and not any(isinstance(inner, For) for inner in statement.body):
            yield statement


def _loads(loop: For) -> dict[Variable, list[tuple[Statement, Load]]]:
    result: dict[Variable, list[tuple[Statement, Load]]] = {}
    for statement in loop.body:
        for expr in expressions((statement,)):
            if isinstance(expr, Load):
                result.setdefault(expr.pointer, []).append((statement, expr))
    return result


def _of_one(loop: For, pointer: Variable, loads: list[tuple[Statement, Load]]) -> Shared | None:
    terms = [summands(load.offset) for _, load in loads]
    count = 0
    while all(len(one) > count and one[count] == terms[0][count] for one in terms):
        count += 1
    common = terms[0][:count]
    if len({load.offset for _, load in loads}) < 2 or not common or any(sign < 0 for one in terms for sign, _ in one):
        return None
    offset = total(common)
    used = {
        e.variable if isinstance(e, Ref) else e.axis.variable for e in walk(offset) if isinstance(e, Ref | AxisIndex)
    }
    if width(offset) < _LEAST or used & {s.variable for s in loop.body if isinstance(s, Set)}:
        return None
    name = f"{pointer.wanted.removesuffix('_ptr')}_tile_ptr"
    return Shared(Variable(name), pointer, offset, loads[0][0])
