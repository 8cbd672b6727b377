"""What planning gives: steps in execution order, and what each kernel among them computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import sympy

from ..graph.lowered import Graph
from ..graph.sizes import ZERO, Index
from ..graph.value import Concat, Contract, Exact, Fold, Recurrence, Shape, Value, operands
from .domain import Domain

#: The size symbols' values for the example inputs.
Hints = dict[sympy.Symbol, int]


class Materialise(Exception):
    """``value`` has to be stored before the kernel being planned can run."""

    def __init__(self, value: Value) -> None:
        self.value = value


@dataclass(eq=False)
class Looped:
    """A recurrence in a kernel's domain: ``step`` its atom, ``next`` the states after that step (``graph.loops.at_step``).

    ``member``: the atom of its members, None where it is one recurrence. ``summed``: the atom over which the products of a state are
    summed. ``products``: those of the body with the index at which each is needed, and the named value that needs it, in the order
    of the weight's rows: gates stand in torch's order there.
    """

    loop: Recurrence
    step: sympy.Expr
    member: sympy.Expr | None
    next: tuple[Value, ...]
    summed: dict[Value, sympy.Expr]
    products: list[tuple[Value, Index, Value | None]] = field(default_factory=list)

    @property
    def gates(self) -> list[Value]:
        """What needs the products, each once: values of a state's shape, of which the next states are made."""
        wanted = dict.fromkeys(near for _, _, near in self.products if near is not None)
        return [value for value in wanted if value.shape == self.loop.held[0].shape]

    def at(self, *index: sympy.Expr) -> Index:
        """The index of a result, of which ``index`` is that of a member's."""
        return index if self.member is None else (self.member, *index)


@dataclass(eq=False)
class Chain:
    """A product, ``first``, and another one whose left operand is computed from its result, a tile of rows and keys at a time.

    A key is what the second product sums over: the atom ``key``. ``depth``: the atoms that the first product sums over.
    ``element``: what each key brings to the second product but for numbers of the whole row, ``factors``: (function, Value), the
    innermost first. ``score``: the element itself, or x where the element is exp(x - u) with ``highest``, the row's greatest x,
    as u. ``totals``: sums of the element, or of what needs no number of the row, along the keys.
    """

    first: Value
    key: sympy.Symbol
    depth: list[sympy.Symbol]
    element: Value
    score: Value
    highest: Value | None
    totals: list[Value]
    factors: list[tuple[str, Value]]

    @property
    def product(self) -> Contract:
        """The first product, its left operand the one that varies along the rows."""
        op = self.first.op
        assert isinstance(op, Contract)
        return op


@dataclass(eq=False)
class Kernel:
    """One kernel: ``stores`` (value, index) in ``domain``; ``placed`` gives the index of each reduction and what follows it."""

    domain: Domain
    stores: list[tuple[Value, Index]] = field(default_factory=list)
    placed: dict[Value, Index] = field(default_factory=dict)
    folds: list[Value] = field(default_factory=list)  # reductions and scans, operands first
    contract: Value | None = None
    chain: Chain | None = None  # the product in front of ``contract`` that it computes, too
    loop: Looped | None = None
    operand_index: Index = ()  # where the reductions' operand is addressed: all atoms
    leaves: list[Value] = field(default_factory=list)  # what it loads
    accesses: list[tuple[Value, Index, Shape]] = field(default_factory=list)  # each load: index into which shape
    chunked: Value | None = None  # a scan that runs in chunks
    partials: list[Value] = field(default_factory=list)  # the buffers that split reductions fill, for the last stores
    whole: Value | None = None  # the Concat of which it stores pieces: all of them, or the one that its product gives
    cut: Value | None = None  # the beginning of what it computes, which is all that it stores
    peaks: list[Value] = field(
        default_factory=list
    )  # the Peaks of what it stores, and the Samples of what it multiplies
    exact: bool = False  # it computes what its product stands for, into memory that another kernel filled

    @property
    def product(self) -> Contract:
        """What it multiplies."""
        assert self.contract is not None and isinstance(self.contract.op, Contract)
        return self.stands_for.product if self.exact else self.contract.op

    @property
    def stands_for(self) -> Exact:
        """What its product of rounded operands stands for."""
        assert self.contract is not None and isinstance(self.contract.op, Contract)
        assert self.contract.op.exact is not None
        return self.contract.op.exact

    @property
    def outputs(self) -> list[Value]:
        """What it fills: each has memory of its own, which other kernels fill, too, where it stores one piece of it."""
        filled = self.whole or self.cut
        whole = [v for v, _ in self.stores[: len(self.stores) - len(self.partials)]]
        return [*([filled] if filled is not None and whole else whole), *self.partials, *self.peaks]

    @property
    def results(self) -> list[Value]:
        """What it stores: as ``outputs``, but pieces in place of what they are put together to."""
        return self.outputs if self.whole is None else [*(v for v, _ in self.stores), *self.peaks]

    @property
    def one_piece(self) -> bool:
        """Whether other kernels store the rest of what it fills. A plan counts that as stored from the first of them on."""
        return self.whole is not None and len(self.stores) < len(operands(self.whole))

    def destination(self, value: Value, index: Index) -> tuple[Value, Index]:
        """What has the memory for a stored value, and where in that the element at ``index`` goes, if there is a place."""
        if any(value is part for part, _ in self.stores[len(self.stores) - len(self.partials) :]):
            return value, index
        if self.cut is not None:
            return self.cut, index
        if self.whole is None:
            return value, index
        assert isinstance(self.whole.op, Concat)
        op, start = self.whole.op, ZERO
        for piece in op.operands:
            if piece is value:
                break
            start += piece.shape[op.dim]
        return self.whole, (*index[: op.dim], index[op.dim] + start, *index[op.dim + 1 :])

    @property
    def in_chunks(self) -> bool:
        """Whether one program takes one chunk of what is folded."""
        return bool(self.partials) or self.chunked is not None


@dataclass(eq=False)
class HostView:
    """A view that torch takes between kernels, without a copy."""

    value: Value


@dataclass(eq=False)
class Call:
    """An operator that stays with torch; ``values``: its results."""

    values: list[Value]


Step = Kernel | HostView | Call


@dataclass
class Plan:
    """What the host function does, in order; ``stored``: what is in memory after it, the graph's inputs included."""

    steps: list[Step] = field(default_factory=list)
    stored: set[Value] = field(default_factory=set)


@dataclass
class Lowered:
    """The graph after the passes.

    ``defined``: what the symbols of named sizes stand for; ``chunks``: the numbers of chunks of split reductions, with what
    each cuts and the elements of a chunk; ``rounded``: what products are made of halves, in words; ``chained``: products that are to share a kernel with
    the one before, and ``apart``: those that could. ``folding``: whether a product's kernel that reduces its rows or columns is to do so;
    None: none is.
    """

    graph: Graph
    defined: dict[sympy.Symbol, sympy.Expr]
    chunks: dict[sympy.Symbol, tuple[sympy.Expr, int]]
    rounded: list[str] = field(default_factory=list)
    chained: dict[Value, Value] = field(default_factory=dict)
    apart: list[Value] = field(default_factory=list)
    folding: Callable[[Kernel], bool] | None = None

    @property
    def hints(self) -> Hints:
        """The example's values of the symbols."""
        return self.graph.hints


@dataclass
class Planned(Lowered):
    """The same with the plan of its kernels, torch calls and views."""

    plan: Plan = field(default_factory=Plan)

    @property
    def kernels(self) -> list[Kernel]:
        """Those of the plan's steps that are kernels, in order."""
        return [step for step in self.plan.steps if isinstance(step, Kernel)]


def fold_operand_index(kernel: Kernel, v: Value, index: Index) -> Index:
    """Where fold ``v`` addresses its operand."""
    op = v.op
    assert isinstance(op, Fold)
    if op.operand in kernel.placed:
        return kernel.placed[op.operand]
    return tuple(kernel.operand_index[d] if d in op.dims else e for d, e in enumerate(index))


def hint(expr: sympy.Expr, hints: Hints) -> int:
    """The size for the example inputs."""
    return int(expr.subs(hints)) if expr.free_symbols else int(expr)
