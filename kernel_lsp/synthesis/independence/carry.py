"""What is followed through the graph: where a tensor carries the slices, and one call of an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy


class Dependent(Exception):
    """What lies at different places along the dimension is mixed, or not known to be separate."""


@dataclass(frozen=True)
class Carry:
    """The slices lie along ``dim``, whose size is ``outer * n * inner``: place i of n at (o * n + i) * inner + r."""

    dim: int
    outer: int = 1
    inner: int = 1

    def at(self, dim: int) -> Carry:
        """The same slices along another dimension."""
        return Carry(dim, self.outer, self.inner)


@dataclass(frozen=True)
class Tracked:
    """A tensor of the graph.

    ``shape``: numbers, and expressions in the followed symbol; without ``carry`` it is the same for every slice.
    """

    shape: tuple[sympy.Expr, ...]
    carry: Carry | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@dataclass
class Call:
    """One call: its arguments by the names of the operator's schema, tensors as ``Tracked``, sizes as expressions.

    ``shapes``: of its results.
    """

    name: str
    args: dict[str, Any]
    shapes: list[tuple[sympy.Expr, ...]]
    symbol: sympy.Symbol

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def get(self, name: str, otherwise: Any = None) -> Any:
        """An argument, ``otherwise`` where the operator has none of that name."""
        return self.args.get(name, otherwise)

    @property
    def first(self) -> Tracked:
        """The first tensor among the arguments.

        Raises:
            Dependent: there is none.
        """
        for value in self.args.values():
            if isinstance(value, Tracked):
                return value
        raise Dependent(f"{self.name} has no tensor")

    def tensors(self) -> list[Tracked]:
        """The tensors among the arguments, those in lists included."""
        return tracked(list(self.args.values()))

    def only(self, *names: str) -> Carry:
        """The carry of the argument ``names[0]``, which only arguments of these names may have.

        Raises:
            Dependent: another one has it, or this one does not.
        """
        for name, value in self.args.items():
            if name not in names and any(t.carry for t in tracked(value)):
                raise Dependent(f"{self.name}: it reaches {name}")
        value = self.args[names[0]]
        if not isinstance(value, Tracked) or value.carry is None:
            raise Dependent(f"{self.name}: it does not reach {names[0]}")
        return value.carry

    def dims(self, given: Any, rank: int) -> set[int]:
        """Dimensions, one or a list of them, counted from the left."""
        return {int(d) % max(rank, 1) for d in (given if isinstance(given, list | tuple) else [given])}


def tracked(tree: Any) -> list[Tracked]:
    """The tensors in an argument."""
    if isinstance(tree, Tracked):
        return [tree]
    if isinstance(tree, list | tuple):
        return [found for item in tree for found in tracked(item)]
    return []


def require(holds: Any, why: str) -> None:
    """Go on if ``holds``.

    Raises:
        Dependent: it does not; with ``why``.
    """
    if not holds:
        raise Dependent(why)


def broadcast(operands: list[Tracked], rank: int, name: str) -> Carry:
    """Where the result of an elementwise operation of ``rank`` carries it.

    Raises:
        Dependent: operands carry it along different dimensions, or one has a size of its own there.
    """
    found = {t.carry.at(t.carry.dim + rank - t.rank) for t in operands if t.carry}
    require(len(found) == 1, f"{name}: its operands carry it along different dimensions")
    (carry,) = found
    for other in operands:
        if other.carry is None:
            dim = carry.dim - (rank - other.rank)
            require(dim < 0 or other.shape[dim] == 1, f"{name}: an operand has a size of its own there")
    return carry
