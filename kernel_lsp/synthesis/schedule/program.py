"""A scheduled kernel: what its programs do, and how they are launched."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import sympy

from ..graph.value import Value
from ..kernel.arguments import Arguments
from ..kernel.ir import AxisIndex, Expr, Ref, Variable, walk
from ..kernel.statements import (
    Add,
    Arrive,
    Await,
    Barrier,
    Comment,
    For,
    Leave,
    Nested,
    Set,
    Statement,
    Store,
    TakeTurn,
    When,
    While,
)


@dataclass(frozen=True)
class Blocks:
    """How many blocks of ``size`` cover ``extent``."""

    extent: sympy.Expr
    size: int


@dataclass(frozen=True)
class PowerOfTwo:
    """The least power of two that is at least ``extent``, known at launch, and no less than ``least``."""

    extent: sympy.Expr
    least: int = 1


@dataclass(frozen=True)
class OfAll:
    """``size`` of ``extent`` for each of several programs that wait for each other.

    All of it (a power of two of at least 16) under the interpreter, which runs one program after another. In a grid the number of
    programs.
    """

    extent: sympy.Expr
    size: int

    @property
    def alone(self) -> int | PowerOfTwo:
        """The size for a program that is alone."""
        if not self.extent.is_number:
            return PowerOfTwo(self.extent, least=16)
        return max(16, 1 << (int(self.extent) - 1).bit_length())


@dataclass(frozen=True)
class Distinct:
    """How many places of a block have to be looked at for what is the same along ``inner`` elements: one where blocks do not cross these, else all."""

    inner: sympy.Expr
    block: OfAll


#: A constant of a launch: a number, one that the host computes, or the name of a way to multiply.
Constant = int | PowerOfTwo | OfAll | Distinct | str

#: A factor of a grid's extent.
Factor: TypeAlias = "sympy.Expr | Blocks | OfAll"


@dataclass
class Program:
    """A kernel with its schedule. ``grid``: for each dimension the factors of its extent; ``blocks``: constants of the launch."""

    name: str
    arguments: Arguments
    body: list[Statement] = field(default_factory=list)
    grid: list[list[Factor]] = field(default_factory=lambda: [[sympy.Integer(1)]])
    blocks: dict[Variable, Constant] = field(default_factory=dict)
    multiples: set[Variable] = field(default_factory=set)  # of such constants
    num_warps: int = 4
    num_stages: int | None = None
    tiling: str = ""  # one sentence for the docstring
    axes: str = ""  # what the tile's axes are, in one sentence for the docstring
    wide: bool = False  # offsets have 64 bits
    limits: list[tuple[sympy.Expr, int]] = field(default_factory=list)  # the most that a size may be, see ``Launch``
    programs: int = 0  # at most so many, each of which goes through what the grid says; 0: as many as that
    together: bool = False  # its programs wait for each other: all of them have to run at once
    in_turn: bool = False  # they wait for each other, and take what they do in turn
    at_once: int = 0  # of such programs, how many surely run at once on a multiprocessor
    registers: int = 0  # that a thread has at the most; 0: as many as the compiler takes
    zeroed: list[Value] = field(default_factory=list)  # memory of zeros that it needs besides what it stores
    exchanged: list[Value] = field(default_factory=list)  # memory in which its programs tell each other something
    part_names: dict[sympy.Expr, str] = field(
        default_factory=dict
    )  # of atoms: what their part of a flat index is called

    def block(self, name: str, value: Constant) -> Variable:
        """A constant of the launch called ``name``, one and the same each time that it is asked for."""
        variable = next((known for known in self.blocks if known.wanted == name), Variable(name, fixed=True))
        assert self.blocks.get(variable, value) == value
        self.blocks[variable] = value
        return variable

    def multiple(self, times: int, block: Variable) -> Variable:
        """So many times a constant of the launch, written as a product wherever it is needed."""
        variable = block if times == 1 else fixed(f"{times} * {block.wanted}")
        self.multiples.add(variable)
        return variable

    def pointers(self) -> list[Variable]:
        """The tensors among the arguments: those that are read, then those that are written."""
        return [*self.arguments.pointers.values(), *self.arguments.outputs.values()]

    def constants(self) -> list[Variable]:
        """Its constexpr parameters, in order."""
        return [*self.arguments.static.values(), *self.arguments.divisors.values(), *self.blocks]

    def parameters(self) -> list[Variable]:
        """All that are not constexpr, in order."""
        return [*self.pointers(), *self.arguments.sizes.values(), *self.arguments.scalars.values()]


def statements(body: list[Statement] | tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, those inside loops too."""
    for statement in body:
        yield statement
        if isinstance(statement, Nested):
            yield from statements(statement.body)


def expressions_of(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that a statement itself holds, without those inside a loop."""
    if isinstance(statement, For):
        return (statement.begin, statement.end)
    if isinstance(statement, Store):
        return (statement.offset, statement.value, *statement.masks)
    if isinstance(statement, Leave | When | While):
        return (statement.condition,)
    if isinstance(statement, Arrive | TakeTurn):
        return (statement.offset,)
    if isinstance(statement, Await):
        return (statement.offset, statement.count)
    return () if isinstance(statement, Barrier | Comment) else (statement.value,)


def expressions(body: list[Statement] | tuple[Statement, ...]) -> Iterator[Expr]:
    """All expressions of a body, with what is inside them."""
    for statement in statements(body):
        for top in expressions_of(statement):
            yield from walk(top)


def needed(body: list[Statement] | tuple[Statement, ...]) -> list[Statement]:
    """The body without what it sets and never reads."""
    while True:
        read = {
            e.axis.variable if isinstance(e, AxisIndex) else e.variable
            for e in expressions(body)
            if isinstance(e, AxisIndex | Ref)
        }
        read |= {s.variable for s in statements(body) if isinstance(s, Add)}
        kept = _reading(body, read)
        if kept == list(body):
            return kept
        body = kept


def _reading(body: list[Statement] | tuple[Statement, ...], read: set[Variable]) -> list[Statement]:
    left = [s for s in body if not (isinstance(s, Set) and s.variable not in read)]
    return [replace(s, body=tuple(_reading(s.body, read))) if isinstance(s, Nested) else s for s in left]


@functools.cache
def fixed(name: str) -> Variable:
    """The variable with a name that no value may have."""
    return Variable(name, fixed=True)


def set_all(*pairs: tuple[Variable, Expr]) -> list[Statement]:
    """An assignment for each (variable, value)."""
    return [Set(variable, value) for variable, value in pairs]
