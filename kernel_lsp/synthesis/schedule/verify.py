"""Whether a scheduled kernel holds together: looked at after each stage, so that a mistake shows where it was made."""

from __future__ import annotations

from ..kernel.ir import (
    Add,
    Arange,
    Axis,
    AxisIndex,
    Dot,
    Expr,
    Fold,
    For,
    Leave,
    Load,
    Ref,
    Set,
    Statement,
    Store,
    Variable,
    walk,
)
from .program import Program


class Malformed(Exception):
    """A kernel that would not mean anything: a bug of the synthesizer. The message says what and where."""


def verify(program: Program) -> None:
    """Raises ``Malformed`` unless

    - every variable is set, or given by the launch, before it is read, and no axis is used outside the loop along it;
    - a lane that may lie outside an axis's extent is masked in every load and store along that axis;
    - what is stored has no axis that its address lacks, and what is folded has the axis that it is folded over;
    - a product's operands have its rows and columns and one axis more.
    """
    given = {*program.parameters(), *program.constants()}
    _Verifier(program.name, given).block(program.body, set(given))


class _Verifier:
    def __init__(self, name: str, given: set[Variable]) -> None:
        self.name, self.given = name, given

    def fail(self, what: str) -> None:
        raise Malformed(f"{self.name}: {what}")

    def block(self, statements: list[Statement] | tuple[Statement, ...], known: set[Variable]) -> None:
        """``known``: what is set so far; grows by what the block sets."""
        for statement in statements:
            if isinstance(statement, For):
                for bound in (statement.begin, statement.end):
                    self.expression(bound, known)
                if isinstance(statement.step, Variable) and statement.step not in self.given:
                    self.fail(f"a loop's step {statement.step.wanted} is no constant of the launch")
                inside = {*known, statement.variable}
                self.block(statement.body, inside)  # what only the loop sets is not known after it
            elif isinstance(statement, Store):
                self.store(statement, known)
            elif isinstance(statement, Leave):
                self.expression(statement.condition, known)
                if statement.condition.axes:
                    self.fail(f"it ends along {_names(statement.condition.axes)}")
            else:
                self.expression(statement.value, known)
                if isinstance(statement, Add) and statement.variable not in known:
                    self.fail(f"{statement.variable.wanted} is added to before it is set")
                if isinstance(statement, Set) and statement.variable in self.given:
                    self.fail(f"{statement.variable.wanted} is an argument, and set")
                known.add(statement.variable)

    def store(self, store: Store, known: set[Variable]) -> None:
        for expr in (store.offset, store.value, *store.masks):
            self.expression(expr, known)
        if store.pointer not in self.given:
            self.fail(f"a store to {store.pointer.wanted}, which is no argument")
        lost = store.value.axes - store.offset.axes
        if lost:
            self.fail(f"a store loses {_names(lost)}: every element along it goes to one place")
        self.masked(store.offset.axes, store.masks, "a store")

    def expression(self, expr: Expr, known: set[Variable]) -> None:
        for part in walk(expr):
            if isinstance(part, Ref) and part.variable not in known:
                self.fail(f"{part.variable.wanted} is read before it is set")
            elif isinstance(part, AxisIndex) and part.axis.variable not in known:
                self.fail(f"the axis {part.axis.variable.wanted} is used where it is not set")
            elif isinstance(part, Arange) and part.size not in self.given:
                self.fail(f"a range of {part.size.wanted}, which is no constant of the launch")
            elif isinstance(part, Load):
                if part.pointer not in self.given:
                    self.fail(f"a load from {part.pointer.wanted}, which is no argument")
                self.masked(part.offset.axes, part.masks, f"a load from {part.pointer.wanted}")
            elif isinstance(part, Fold) and part.axis not in part.operand.axes:
                self.fail(f"a fold over {part.axis.variable.wanted}, along which nothing varies")
            elif isinstance(part, Dot):
                self.dot(part)

    def masked(self, axes: frozenset[Axis], masks: tuple[Expr, ...], what: str) -> None:
        for axis in axes:
            if axis.mask is not None and axis.mask not in masks:
                self.fail(f"{what} is not masked along {axis.variable.wanted}")

    def dot(self, dot: Dot) -> None:
        rows, cols = dot.left.axes - dot.right.axes, dot.right.axes - dot.left.axes
        loops = {axis.variable for axis in (rows | cols) - dot.total.axes if axis.vector}
        if len(loops) != 1:
            self.fail(f"a product over {_names(rows | cols)} into {_names(dot.total.axes)}")


def _names(axes: frozenset[Axis]) -> str:
    return ", ".join(sorted(axis.variable.wanted for axis in axes)) or "nothing"
