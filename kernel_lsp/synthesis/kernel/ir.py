"""A kernel as data: axes and expressions; statements are in ``statements.py``. ``printing/triton.py`` writes it as Triton.

An expression knows the axes that its shape has, its dtype, and what its masked lanes hold (``pad``, None where that
is not known). Variables have no names yet, only the name that each would like to have: the printer hands names out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import sympy
import torch

from ..graph.functions import FUNCTIONS, literal

Role = Literal["grid", "tile", "loop", "scalar", "unrolled"]


@dataclass(eq=False)
class Variable:
    """``wanted`` is the name it would like; ``fixed``: it is one of the names that no value may have."""

    wanted: str
    fixed: bool = False


@dataclass(eq=False)
class Axis:
    """One axis of a kernel with the domain's ``atoms`` flattened into it, outermost first.

    ``grid``: a scalar that the program's place gives; ``tile``: a vector that the program holds whole; ``loop``: a
    vector that walks along the extent; ``scalar``: a loop goes through it one by one; ``unrolled``: the same, written out.
    ``lane``: (place, rank) where ``variable`` is one-dimensional and gets its place in a tile only where it is used.
    ``mask``: which lanes lie inside, None where all do.
    """

    variable: Variable
    atoms: list[sympy.Symbol]
    role: Role
    mask: Expr | None = None
    lane: tuple[int, int] | None = None

    @property
    def vector(self) -> bool:
        """Whether it is a dimension of a tile."""
        return self.role in ("tile", "loop")

    @property
    def varies(self) -> bool:
        """Whether it takes several values within a program."""
        return self.role != "grid"


@dataclass(frozen=True)
class Expr:
    """An expression of a kernel's body."""

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions that it is made of."""
        return ()

    @property
    def axes(self) -> frozenset[Axis]:
        """The axes along which it varies: those of its shape, and an unrolled one."""
        return self._along

    @functools.cached_property
    def _along(self) -> frozenset[Axis]:
        return frozenset().union(*(part.axes for part in self.parts))

    @property
    def pad(self) -> float | None:
        """What it is in lanes outside of an axis's extent; None where that is not known."""
        return None


@dataclass(frozen=True)
class Number(Expr):
    """A constant, written out in the kernel's text."""

    value: float | int | bool

    @property
    def pad(self) -> float | None:
        """The number itself."""
        return float(self.value)


@dataclass(frozen=True)
class Ref(Expr):
    """A variable's value: an assigned one, an argument, a constant of the launch."""

    variable: Variable
    shape: frozenset[Axis] = frozenset()
    dtype: torch.dtype = torch.int32
    holds: float | None = None

    @property
    def axes(self) -> frozenset[Axis]:
        """Those of the variable's shape."""
        return self.shape

    @property
    def pad(self) -> float | None:
        """What was found out when the variable was set."""
        return self.holds


@dataclass(frozen=True)
class AxisIndex(Expr):
    """The index along an axis."""

    axis: Axis

    @property
    def axes(self) -> frozenset[Axis]:
        """The axis, unless it is a scalar of the program."""
        return frozenset({self.axis}) if self.axis.varies else frozenset()


@dataclass(frozen=True)
class Apply(Expr):
    """A function of ``graph.functions.FUNCTIONS``."""

    function: str
    operands: tuple[Expr, ...]
    dtype: torch.dtype = torch.int32
    holds: float | None = None

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The operands."""
        return self.operands

    @property
    def pad(self) -> float | None:
        """What was found out when it was made."""
        return self.holds


@dataclass(frozen=True)
class Load(Expr):
    """``pointer[offset]`` where every mask holds, ``other`` elsewhere; ``dtype``: as it lies in memory.

    ``cache``: Triton's word for the caches that it goes through; another program's store is seen in L2, not in L1.
    """

    pointer: Variable
    offset: Expr
    masks: tuple[Expr, ...]
    other: float | int
    dtype: torch.dtype
    cache: str = ""

    @property
    def parts(self) -> tuple[Expr, ...]:
        """Offset and masks."""
        return (self.offset, *self.masks)

    @property
    def pad(self) -> float | None:
        """``other``, where there are masks."""
        return float(self.other) if self.masks else None


@dataclass(frozen=True)
class FoldAxis(Expr):
    """``operand`` folded over ``axis``, its dimension ``place``: sum, max, min, amax, amin, argmax or argmin.

    ``keep``: the dimension stays, with size one. ``keeps_nan``: a NaN is the result, or where it stands is.
    """

    kind: str
    operand: Expr
    axis: Axis
    place: int
    keep: bool
    keeps_nan: bool
    dtype: torch.dtype

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The operand."""
        return (self.operand,)

    @property
    def axes(self) -> frozenset[Axis]:
        """The operand's, without the one that is folded."""
        return self.operand.axes - {self.axis}


@dataclass(frozen=True)
class Grouped(Expr):
    """``operand``, a tile of two dimensions, with each ``length`` neighbours along its dimension ``place`` as a dimension of their own behind that.

    ``shape``: of the tile without that dimension, constants of the launch; ``over``: the axes of the result.
    """

    operand: Expr
    place: int
    length: int
    shape: tuple[Variable, Variable]
    over: frozenset[Axis]

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The operand."""
        return (self.operand,)

    @property
    def axes(self) -> frozenset[Axis]:
        """Those of the result."""
        return self.over


@dataclass(frozen=True)
class PrefixScan(Expr):
    """What the elements of ``operand`` up to each along ``axis``, its dimension ``place``, come to; ``kind``: of ``MONOIDS``."""

    kind: str
    operand: Expr
    axis: Axis
    place: int
    dtype: torch.dtype

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True)
class Full(Expr):
    """A tile of one number. ``shape``: constants of the launch, None for size one."""

    shape: tuple[Variable | None, ...]
    value: float | int
    dtype: torch.dtype
    over: frozenset[Axis]

    @property
    def axes(self) -> frozenset[Axis]:
        """Those of its shape."""
        return self.over


@dataclass(frozen=True)
class Dot(Expr):
    """``total`` plus the matrix product of two tiles, or that product alone where ``total`` is zeros.

    ``precision``, for float32, and ``short``, for float8, are constants of the launch. ``short``: how many summed elements tensor
    cores may add up in the fewer bits that they have for float8; None: as many as they like.
    """

    left: Expr
    right: Expr
    total: Ref | Full
    precision: Variable | None = None
    short: Variable | None = None

    @property
    def parts(self) -> tuple[Expr, ...]:
        """Both tiles and the total."""
        return (self.left, self.right, self.total)

    @property
    def axes(self) -> frozenset[Axis]:
        """The total's: what is summed over is gone."""
        return self.total.axes


@dataclass(frozen=True)
class Joined(Expr):
    """Two tiles of one shape, transposed, and their elements along the last dimension in turn: ``even``'s, then ``odd``'s.

    ``shape``: of the result, constants of the launch; ``over``: its axes.
    """

    even: Expr
    odd: Expr
    shape: tuple[Variable, Variable]
    over: frozenset[Axis]

    @property
    def parts(self) -> tuple[Expr, ...]:
        """Both tiles."""
        return (self.even, self.odd)

    @property
    def axes(self) -> frozenset[Axis]:
        """Those of the result."""
        return self.over


@dataclass(frozen=True)
class Items(Expr):
    """A tuple of tiles."""

    tiles: tuple[Expr, ...]

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The tiles."""
        return self.tiles


@dataclass(frozen=True)
class Item(Expr):
    """The tile at ``place``, the index along an axis that is written out, of a tuple that has one for each."""

    items: Ref
    place: AxisIndex

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The tuple and the place."""
        return (self.items, self.place)

    @property
    def dtype(self) -> torch.dtype:
        """Of each tile."""
        return self.items.dtype


@dataclass(frozen=True)
class ProgramId(Expr):
    """``tl.program_id(place)``, with ``place`` from 0 to 2."""

    place: int


@dataclass(frozen=True)
class Arange(Expr):
    """0, 1, … ``size`` - 1 along ``axis``; ``lane``: (place, rank) in the tile."""

    size: Variable
    axis: Axis
    lane: tuple[int, int] | None = None

    @property
    def axes(self) -> frozenset[Axis]:
        """The axis alone."""
        return frozenset({self.axis})


def apply(function: str, *operands: Expr, dtype: torch.dtype = torch.int32) -> Apply:
    """``function``, a key of the graph's ``FUNCTIONS`` or a helper, of ``operands``; by default of 32-bit integers."""
    return Apply(function, operands, dtype)


def conjuncts(mask: Expr) -> list[Expr]:
    """What has to hold, each alone."""
    if isinstance(mask, Apply) and mask.function == "and":
        return [part for operand in mask.operands for part in conjuncts(operand)]
    return [mask]


def plus(a: Expr, b: Expr) -> Expr:
    """a + b of integers, with no negative number or negation added."""
    if isinstance(b, Number) and b.value < 0:
        return apply("sub", a, Number(-b.value))
    if isinstance(b, Apply) and b.function == "neg":
        return apply("sub", a, b.operands[0])
    if isinstance(b, Apply) and b.function in ("add", "sub"):
        left, right = b.operands
        return apply(b.function, plus(a, left), right)
    return apply("add", a, b)


def summands(expr: Expr) -> list[tuple[int, Expr]]:
    """(sign, term) of a sum of integers."""
    if isinstance(expr, Apply) and expr.function in ("add", "sub"):
        left, right = expr.operands
        sign = 1 if expr.function == "add" else -1
        return [*summands(left), *((sign * s, term) for s, term in summands(right))]
    return [(-1, expr.operands[0])] if isinstance(expr, Apply) and expr.function == "neg" else [(1, expr)]


def total(terms: list[tuple[int, Expr]]) -> Expr:
    """The sum of (sign, term) pairs, one that is added first."""
    terms = sorted(terms, key=lambda term: term[0] < 0)
    sign, found = terms[0]
    found = found if sign > 0 else apply("neg", found)
    for sign, term in terms[1:]:
        found = apply("add" if sign > 0 else "sub", found, term)
    return found


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all within it."""
    yield expr
    for part in expr.parts:
        yield from walk(part)


def width(expr: Expr) -> int:
    """How many characters the expression takes where every variable has the name it wants."""
    if isinstance(expr, Ref):
        return len(expr.variable.wanted)
    if isinstance(expr, Number):
        return len(literal(expr.value))
    if isinstance(expr, AxisIndex):
        return len(expr.axis.variable.wanted)
    if isinstance(expr, Apply):
        text = FUNCTIONS[expr.function].text
        return (
            len(text)
            - 3 * text.count("{")
            + sum(width(o) * text.count(f"{{{i}}}") for i, o in enumerate(expr.operands))
        )
    if isinstance(expr, FoldAxis):
        return len("tl.sum(, axis=0)") + width(expr.operand) + len(", keep_dims=True") * expr.keep
    return sum(map(width, expr.parts))
