"""Schedules: every choice of a kernel that does not change what it computes, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

_Atom = TypeVar("_Atom")

#: Summed elements after which a tensor core's float32 sum has lost so much that it should begin again: wgmma truncates.
RESTART = 512


@dataclass(frozen=True)
class Flat:
    """Blocks of consecutive elements.

    ``across``: so many leading dimensions are gone through first: programs next to each other take one block of each, and what these share
    is in L2 then (``extents.shared_by``).
    """

    block: int = 1024
    warps: int = 4
    across: int = 0

    def __str__(self) -> str:
        order = ", the same block of all rows in turn" if self.across else ""
        return f"blocks of {self.block}, {_warps(self.warps)}{order}"


@dataclass(frozen=True)
class Turned:
    """2-D tiles, for an operand that is transposed."""

    rows: int = 32
    cols: int = 64
    warps: int = 4

    def __str__(self) -> str:
        return f"{self.rows} x {self.cols} tiles, {_warps(self.warps)}"


@dataclass(frozen=True)
class ByLines:
    """2-D blocks of an elementwise kernel: ``rows`` lines x ``cols`` elements of each.

    Of a kernel's dimensions a line has the last ``inner``. Lines are numbered along those before, but for the first ``outer``: of these a program has one
    index, which is the same for all that it does.
    """

    rows: int
    cols: int
    warps: int
    outer: int
    inner: int

    def __str__(self) -> str:
        return f"{self.rows} lines x {self.cols} elements, {_warps(self.warps)}"

    def parts(self, kept: list[_Atom]) -> tuple[list[_Atom], list[_Atom], list[_Atom]]:
        """The dimensions of which a program has one index, those along which lines are numbered, and those of a line."""
        return kept[: self.outer], kept[self.outer : -self.inner], kept[-self.inner :]


@dataclass(frozen=True)
class Rows:
    """``rows`` reductions per program, each kept in registers whole."""

    rows: int
    warps: int

    def __str__(self) -> str:
        return f"{self.rows} row{'s' * (self.rows > 1)} a program, {_warps(self.warps)}"


@dataclass(frozen=True)
class Passes:
    """One reduction per program, walked along in blocks: a pass for each reduction that waits for another.

    ``apart``: also for one that need not wait (``graph/early_reductions.py``): a pass more over what L2 holds may take less than the work.
    """

    block: int
    warps: int
    apart: bool = False

    def __str__(self) -> str:
        return (
            f"passes in blocks of {self.block}, {_warps(self.warps)}{', a pass for each number' if self.apart else ''}"
        )


#: Elements of a tile that a warp may come to where sizes vary, 256 a thread: RMSNorm then spills 400 bytes, with 128 nothing (sm_90, triton 3.7.1).
_MOST_OF_WARP = 8192


@dataclass(frozen=True)
class Cooperative:
    """Rows of which several programs take a block each, in registers, and exchange what it comes to, so that a row is read once.

    ``programs``: that are launched at most, of which ``at_once`` surely run on each multiprocessor, since a thread gets no more than so many
    ``registers``. ``most``: blocks that a row may have. ``beyond``: what is launched where a row has more.
    """

    block: int
    programs: int
    most: int
    warps: int
    at_once: int
    registers: int
    beyond: Passes | None = None

    def __str__(self) -> str:
        return f"rows shared by programs in blocks of {self.block}, {_warps(self.warps)}"


@dataclass(frozen=True)
class Columns:
    """Neighbouring reductions side by side, walked down some rows at a time.

    ``whole``: all rows are in registers at once. ``rows`` is then the power of two for those of the example; where their number varies, the
    host computes that of each call. ``beyond``: what is launched then where there are more rows than ``most_rows``. ``above``: that number, of a
    schedule that is launched beyond it; 0: it is launched whatever the number is.
    """

    rows: int
    cols: int
    warps: int = 4
    whole: bool = False
    beyond: Columns | None = None
    above: int = 0

    @property
    def most_rows(self) -> int:
        """The most rows that are kept in registers where their number varies."""
        return _MOST_OF_WARP * self.warps // self.cols

    def __str__(self) -> str:
        if self.whole:
            return f"{self.cols} columns whole, {_warps(self.warps)}"
        return f"{self.cols} columns, {self.rows} rows at a time, {_warps(self.warps)}"


@dataclass(frozen=True)
class Unrolled:
    """Blocks of consecutive results, each of few elements, which are taken one after the other.

    ``inner``: how many of the last dimensions a block's results differ in, all of one channel; what is the same for all of them, as the weight
    of a depthwise convolution, is loaded once. 0: all dimensions.
    ``rows``: how many results each lane of a block has, one below the other along the last dimension but one; what their windows share is
    loaded once.
    """

    block: int = 512
    warps: int = 4
    inner: int = 0
    rows: int = 1

    def __str__(self) -> str:
        rows = f" x {self.rows} rows" if self.rows > 1 else ""
        of = " of a line" if rows and self.inner == 1 else " of a channel" if self.inner else ""
        return f"blocks of {self.block}{rows}{of}, {_warps(self.warps)}"


@dataclass(frozen=True)
class Product:
    """``m`` x ``n`` tiles in steps of ``k``, tiles numbered column by column within ``group`` row blocks.

    ``precision``: how float32 is multiplied. ``restart``: summed elements after which the tensor cores' sum is added to one in
    registers and begins again at zero (0: never; with ``together`` it is one step, but for planes of which one is raised). ``exchanged``: the operands are; the tile is one of the result's transpose, so that the
    longer side of a thin result is the one of which tensor cores take 64 rows at a time. ``flat``: steps go along the places of a window and
    its channels as along one sum, so that only the last step is not full; else each place, or line of places, begins a step. ``joined``: a
    program computes two phases of a transposed convolution whose results alternate in memory, and stores them together. ``together``: a step
    reads both planes of each operand and takes all products of them; else a loop takes one product of planes after the other.
    ``halves``: each step splits float32 into float16 halves; ``precision`` is for tiles whose numbers float16 does not hold.
    ``programs``: at most so many, each of which takes one tile after another; 0: one for each tile.
    """

    m: int
    n: int
    k: int
    warps: int
    stages: int
    precision: str = "tf32x3"
    group: int = 8
    restart: int = 0
    exchanged: bool = False
    flat: bool = False
    joined: bool = False
    together: bool = False
    halves: bool = False
    programs: int = 0

    def __str__(self) -> str:
        exchanged = " exchanged" if self.exchanged else ""
        how = f"{self.m} x {self.n} x {self.k}{exchanged} tiles, {_warps(self.warps)}, {_stages(self.stages)}"
        how += ", one sum over all places" * self.flat + ", phases in pairs" * self.joined
        how += ", planes together" * self.together + ", float16 halves" * self.halves
        how += f", {self.programs} programs at most" * bool(self.programs)
        return f"{how}, {self.precision}" if self.precision != "tf32x3" else how

    @property
    def arithmetic(self) -> str:
        """How float32 is multiplied, in words."""
        return "float16 halves" if self.halves else self.precision


@dataclass(frozen=True)
class Chained:
    """Two products in one kernel.

    ``m`` rows a program, ``n`` keys at a time, ``d`` columns of the second product, and ``k`` elements of what the first one sums
    over at a time. ``d`` and ``k`` as large as the tensors are mean that the first product is computed once, and its left operand
    read once. ``halves``: float32 is split into float16 halves, and ``precision`` is for tiles whose numbers float16 does not hold.
    ``registers``: that a thread has at the most; 0: as many as the compiler takes.
    """

    m: int
    n: int
    d: int
    k: int
    warps: int
    stages: int
    precision: str = "tf32x3"
    halves: bool = False
    registers: int = 0

    def __str__(self) -> str:
        how = f"{self.m} rows, {self.n} keys at a time, {_warps(self.warps)}, {_stages(self.stages)}"
        how += ", float16 halves" * self.halves
        return f"{how}, {self.precision}" if self.precision != "tf32x3" else how

    @property
    def arithmetic(self) -> str:
        """How float32 is multiplied, in words."""
        return "float16 halves" if self.halves else self.precision


@dataclass(frozen=True)
class Steps:
    """One program takes ``rows`` of what steps apart from the rest, with all that its states multiply, through all steps.

    ``depth``: of a state and its weights at a time, read at each step; 0: the states stay in registers, the weights on chip.
    """

    rows: int
    depth: int
    warps: int
    stages: int = 2
    precision: str = "tf32x3"

    def __str__(self) -> str:
        how = f"weights read {self.depth} at a time" if self.depth else "weights kept on chip"
        return f"{self.rows} rows a program through all steps, {how}, {_warps(self.warps)}"


@dataclass(frozen=True)
class Resident:
    """``units`` of a state a program, whose weights stay on chip through all steps, for ``rows`` of what steps apart.

    After each step the programs wait for each other, and read the whole state from memory. ``blocks``: the most blocks of rows that
    run at once.
    """

    units: int
    rows: int
    blocks: int
    warps: int

    def __str__(self) -> str:
        return f"{self.units} units and {self.rows} rows a program, weights kept on chip, {_warps(self.warps)}"


Schedule = (
    Flat | Turned | ByLines | Rows | Passes | Cooperative | Columns | Unrolled | Product | Chained | Steps | Resident
)


def _warps(count: int) -> str:
    return f"{count} warp{'s' * (count > 1)}"


def _stages(count: int) -> str:
    return f"{count} stage{'s' * (count > 1)}"
