"""What the programs that share a row tell each other of its blocks.

A program stores what it folds of its elements, each number once. What else a monoid carries of a block follows from these and from how many elements the
block has: who reads them computes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ..graph.monoids import MONOIDS, Monoid, Steps, Term, mentions
from ..graph.names import variable_name
from ..kernel.build import Builder, masked
from ..kernel.execution_plan import Kernel
from ..kernel.ir import Axis, AxisIndex, Expr, Load, Number, Ref, Variable, apply, plus
from .fold_state import Carrying, accumulated
from .reduction import element_of
from .row_passes import Running
from .tilings import Tiling


def of_tile(monoid: Monoid) -> Steps:
    """What is carried of the elements of a tile; nothing where no formula is known."""
    if monoid.tile or len(monoid.carried) != 1 or len(monoid.finish) != 1:
        return monoid.tile
    term = monoid.finish[0][1]
    return ((monoid.carried[0].key, (term[0], "element")),) if isinstance(term, tuple) and len(term) == 2 else ()


def folded(monoid: Monoid) -> Steps:
    """Of the steps of a tile those that fold its elements."""
    return tuple((name, term) for name, term in of_tile(monoid) if _folds(term))


def following(monoid: Monoid) -> Steps:
    """Those that follow from what was folded and from how many elements there are."""
    each = {"element"}  # what each element has another one of
    found: list[tuple[str, Term]] = []
    for name, term in of_tile(monoid):
        if _folds(term):
            continue
        if mentions(term, each):
            each.add(name)
        else:
            found.append((name, term))
    return tuple(found)


def _folds(term: Term) -> bool:
    return isinstance(term, tuple) and str(term[0]).startswith("fold.")


@dataclass
class Parts:
    """The numbers that are stored of each block, in order: ``values`` of one block, ``numbers`` where those of each reduction are among them."""

    values: list[Expr] = field(default_factory=list)
    numbers: list[dict[str, int]] = field(default_factory=list)
    known: dict[tuple[Expr, Term], int] = field(default_factory=dict)  # what is folded of the elements as they are

    def add(self, kernel: Kernel, builder: Builder, running: Running, tiling: Tiling, length: Expr) -> None:
        """Fold the elements of a block of ``length`` elements."""
        element = element_of(kernel, builder, running, tiling)
        if not isinstance(element, Ref):
            element = builder.assign(variable_name(running.element), element, running.element.dtype)
        state = Carrying(running, tiling, accumulated(running.fold), {"element": element, "length": length})
        told = dict(folded(running.monoid))
        named = told.keys() | {carried.key for carried in running.monoid.of_lanes}
        numbers: dict[str, int] = {}
        for name, term in of_tile(running.monoid):
            shared = term[1:] == ("element",) if isinstance(term, tuple) else False
            number = self.known.get((element, term)) if shared else None
            if number is not None:  # another reduction folds the same elements so
                state.known[name] = self.values[number]
            else:
                value = state.term(term)
                if not isinstance(value, Ref):
                    value = builder.assign(_name(running, name) if name in named else name, value, state.dtype)
                state.known[name] = value
            if name in told:
                numbers[name] = len(self.values) if number is None else number
                if number is None:
                    self.known[element, term] = len(self.values)
                    self.values.append(state.known[name])
        self.numbers.append(numbers)


@dataclass
class Stored:
    """Where what each block comes to is in memory: ``pointer``, ``count`` blocks, those of a row from ``first`` on along ``places``."""

    pointer: Variable
    count: Expr
    first: Expr
    places: Axis
    length: Expr  # elements of the block at each place
    read: dict[int, Expr] = field(default_factory=dict)

    def carried(self, builder: Builder, running: Running, numbers: dict[str, int]) -> Carrying:
        """What ``running`` carries of the blocks of a row, like lanes. ``numbers``: where what was folded of them is."""
        tiling = Tiling([self.places], self.places, 0, 1, (), None, Number(0), Number(0), [], [])
        state = Carrying(running, tiling, accumulated(running.fold), {"length": self.length})
        starts = {one.key: one.start for one in running.monoid.carried}
        for name, term in folded(running.monoid):
            assert isinstance(term, tuple)
            if numbers[name] not in self.read:
                none = MONOIDS[term[0].removeprefix("fold.")].neutral
                self.read[numbers[name]] = self._load(builder, f"{_name(running, name)}s", numbers[name], none)
            state.known[name] = self.read[numbers[name]]
        mask = self.places.mask
        assert mask is not None
        for name, term in following(running.monoid):
            value = state.term(term)
            if name in starts and term not in numbers:  # beyond the last block there are no elements
                value = masked(value, mask, float(starts[name]), torch.float32)
            if not isinstance(value, Ref):
                value = builder.assign(f"{_name(running, name)}s", value, state.dtype)
            state.known[name] = value
        return state

    def _load(self, builder: Builder, name: str, number: int, none: float) -> Expr:
        assert self.places.mask is not None
        place = plus(nth(number, self.first, self.count), AxisIndex(self.places))
        return builder.assign(
            name, Load(self.pointer, place, (self.places.mask,), none, torch.float32, ".cg"), torch.float32
        )


def _name(running: Running, name: str) -> str:
    """What a number of a block is called."""
    called = variable_name(running.fold) if len(running.monoid.carried) == 1 else name
    return f"{called}_part"


def nth(number: int, place: Expr, count: Expr) -> Expr:
    """Where the part of number ``number`` is that is at ``place`` among the ``count`` of its kind."""
    if number == 0:
        return place
    return plus(count if number == 1 else apply("mul", Number(number), count), place)
