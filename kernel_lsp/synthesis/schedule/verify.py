"""Whether a scheduled kernel holds together: looked at after each stage, so that a mistake shows where it was made."""

from __future__ import annotations

from collections.abc import Iterable

from ..kernel.ir import Arange, Axis, AxisIndex, Dot, Expr, FoldAxis, Load, Ref, Variable, walk
from ..kernel.statements import (
    Add,
    Arrive,
    Await,
    Barrier,
    Comment,
    For,
    Leave,
    Set,
    Split,
    Statement,
    Store,
    TakeTurn,
    When,
    While,
)
from .program import Program, expressions, expressions_of, statements


class Malformed(Exception):
    """A kernel that would not mean anything: a bug of the synthesizer. The message says what and where."""


def verify(program: Program) -> None:
    """Check a kernel before it is printed.

    Raises:
        Malformed: unless

            - every variable is set, or given by the launch, before it is read, and no axis is used outside the loop along it;
            - a lane that may lie outside an axis's extent is masked in every load and store along that axis;
            - what is stored has no axis that its address lacks, and what is folded has the axis that it is folded over;
            - a product's operands have its rows and columns and one axis more;
            - a loop carries what has one shape, and a barrier stands between what a step of a recurrence stores and the next one reads;
            - programs that wait for each other are launched together, or take what they do in turn.
    """
    waits = any(isinstance(s, Await) for s in statements(program.body))
    if waits and not program.together and not program.in_turn:
        raise Malformed(f"{program.name}: its programs wait for each other, and need not run at once")
    given = {*program.parameters(), *program.constants(), *program.multiples}
    _Verifier(program.name, given).block(program.body, set(given))


class _Verifier:
    def __init__(self, name: str, given: set[Variable]) -> None:
        self.name, self.given = name, given
        self.shapes: dict[Variable, set[Axis]] = {}  # of variables that were set

    def fail(self, what: str) -> None:
        raise Malformed(f"{self.name}: {what}")

    def block(self, statements: list[Statement] | tuple[Statement, ...], known: set[Variable]) -> None:
        """``known``: what is set so far; grows by what the block sets."""
        for statement in statements:
            if isinstance(statement, Comment):
                continue
            if isinstance(statement, For):
                for bound in (statement.begin, statement.end):
                    self.expression(bound, known)
                if isinstance(statement.step, Variable) and statement.step not in self.given:
                    self.fail(f"a loop's step {statement.step.wanted} is no constant of the launch")
                inside = {*known, statement.variable}
                self.carried(statement, known)
                if statement.in_order:
                    self.exchanged(statement)
                self.block(statement.body, inside)  # what only the loop sets is not known after it
            elif isinstance(statement, Store):
                self.store(statement, known)
            elif isinstance(statement, Barrier | Arrive | Await | TakeTurn):
                for expr in expressions_of(statement):
                    self.expression(expr, known)
                if not isinstance(statement, Barrier) and statement.pointer not in self.given:
                    self.fail(f"programs are counted at {statement.pointer.wanted}, which is no argument")
                if isinstance(statement, TakeTurn):
                    known.add(statement.variable)
            elif isinstance(statement, Split):
                self.expression(statement.value, known)
                if len(statement.variables) not in (2, 4):
                    self.fail(f"a tile in {len(statement.variables)} parts")
                known.update(v for v in statement.variables if v is not None)
            elif isinstance(statement, Leave | When | While):
                self.expression(statement.condition, known)
                if any(axis.vector for axis in statement.condition.axes):
                    self.fail(f"it decides along {_names(statement.condition.axes)}")
                if not isinstance(statement, Leave):
                    self.block(statement.body, set(known))  # what is set inside is not known after it
            else:
                self.expression(statement.value, known)
                if isinstance(statement, Add) and statement.variable not in known:
                    self.fail(f"{statement.variable.wanted} is added to before it is set")
                if isinstance(statement, Set) and statement.variable in self.given:
                    self.fail(f"{statement.variable.wanted} is an argument, and set")
                known.add(statement.variable)
                self.shapes[statement.variable] = {a for a in statement.value.axes if a.role != "scalar"}

    def carried(self, loop: For, known: set[Variable]) -> None:
        """What is set before a loop and in it has one shape: Triton carries it along."""
        for statement in loop.body:
            if isinstance(statement, Set) and statement.variable in known:
                axes = {axis for axis in statement.value.axes if axis.role != "scalar"}
                before = self.shapes.get(statement.variable, axes)
                # Of what begins as a constant the axes are not known.
                if before != axes if loop.in_order else before - axes and axes - before:
                    self.fail(f"{statement.variable.wanted} is carried along a loop with another shape")

    def exchanged(self, loop: For) -> None:
        """What one step hands to the next in memory: read only after all have stored."""
        places = list(enumerate(loop.body))
        stored = {s.pointer: i for i, top in places for s in statements((top,)) if isinstance(s, Store)}
        loaded = {e.pointer: i for i, top in reversed(places) for e in expressions((top,)) if isinstance(e, Load)}
        barriers = [i for i, s in places if isinstance(s, Barrier | Await)]
        for pointer in stored.keys() & loaded.keys():
            if not any(i > stored[pointer] or i < loaded[pointer] for i in barriers):
                self.fail(f"a step reads what another stores at {pointer.wanted} without a barrier between them")

    def store(self, store: Store, known: set[Variable]) -> None:
        for expr in (store.offset, store.value, *store.masks):
            self.expression(expr, known)
        if store.pointer not in self.given:
            self.fail(f"a store to {store.pointer.wanted}, which is no argument")
        lost = {axis for axis in store.value.axes - store.offset.axes if axis.atoms or axis.role != "scalar"}
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
            elif isinstance(part, FoldAxis) and part.axis not in part.operand.axes:
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


def _names(axes: Iterable[Axis]) -> str:
    return ", ".join(sorted(axis.variable.wanted for axis in axes)) or "nothing"
