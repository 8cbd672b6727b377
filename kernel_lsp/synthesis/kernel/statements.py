"""What a kernel's body does: the statements, over the expressions of ``ir.py``."""

from __future__ import annotations

from dataclasses import dataclass, field

from .ir import Expr, Number, Variable


@dataclass(frozen=True)
class Set:
    """Assign; inside a loop a variable that was set before it is carried on."""

    variable: Variable
    value: Expr


@dataclass(frozen=True)
class Add:
    """Add to a variable that was set before."""

    variable: Variable
    value: Expr


@dataclass(frozen=True)
class Store:
    """``atomic``: what is there becomes the greater of it and ``value``, whatever other programs do."""

    pointer: Variable
    offset: Expr
    value: Expr
    masks: tuple[Expr, ...]
    atomic: bool = False


@dataclass(frozen=True)
class Leave:
    """The program ends here where ``condition`` holds."""

    condition: Expr


@dataclass(frozen=True)
class Split:
    """The equal parts of a tile along its first dimension, one below the other: a variable for each, none for what is left over.

    ``shape``: of a part, constants of the launch. There are two or four parts.
    """

    variables: tuple[Variable | None, ...]
    value: Expr
    shape: tuple[Variable, Variable]


@dataclass(frozen=True)
class Barrier:
    """What the program has stored can be loaded by all of its threads."""


@dataclass(frozen=True)
class Comment:
    """What a reader is told of the statements that follow: one sentence without its full stop, or two."""

    text: str


@dataclass(frozen=True)
class Arrive:
    """Count one program more at ``pointer[offset]``; a program that sees the count sees what this one has stored."""

    pointer: Variable
    offset: Expr


@dataclass(frozen=True)
class Await:
    """Go on when as many as ``count`` programs have arrived at ``pointer[offset]``; all of them have to run at once."""

    pointer: Variable
    offset: Expr
    count: Expr


@dataclass(frozen=True)
class For:
    """``variable`` from ``begin`` to before ``end`` by ``step``; without a step by one, and written out.

    ``in_order``: a recurrence, whose states are the variables that it sets and that were set before.
    """

    variable: Variable
    begin: Expr
    end: Expr
    step: Variable | Number | None
    body: tuple[Statement, ...]
    in_order: bool = False


@dataclass(frozen=True)
class TakeTurn:
    """``variable`` becomes how many turns programs took before, counted at ``pointer[offset]``, which then counts this one, too."""

    variable: Variable
    pointer: Variable
    offset: Expr


@dataclass(frozen=True)
class When:
    """``body`` where ``condition`` holds, which is the same for all of a program."""

    condition: Expr
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class While:
    """``body`` again and again as long as ``condition`` holds, which is the same for all of a program."""

    condition: Expr
    body: tuple[Statement, ...]


#: statements that have others inside
Nested = For | When | While

Statement = Set | Add | Store | Leave | Split | Barrier | Comment | Arrive | Await | TakeTurn | For | When | While


@dataclass
class Body:
    """What a kernel does: ``variables`` in the order in which they get their names."""

    statements: list[Statement] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
