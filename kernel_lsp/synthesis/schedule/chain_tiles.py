"""The tiles of a chained kernel: what its statements share, the operands of its two products, and the first product."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy
import torch

from ..graph.functions import TO_HALF
from ..graph.sizes import ONE, ZERO, Index
from ..graph.value import Contract, Value
from ..kernel.build import Builder, masked, spread
from ..kernel.execution_plan import Chain, Kernel
from ..kernel.ir import Apply, Arange, Axis, AxisIndex, Dot, Expr, Full, Number, Ref, Role, Variable, apply, plus
from ..kernel.statements import For, Set, Statement
from .chain_atoms import ChainAtoms
from .extents import multiplied, total
from .halved_tiles import Halves, split, three_products
from .operand_tiles import is_half, is_plain
from .program import Program, fixed, set_all
from .schedules import Chained


@dataclass
class Parts:
    """What the statements of a chained kernel share."""

    kernel: Kernel
    chain: Chain
    atoms: ChainAtoms
    program: Program
    tile: Chained
    stored: set[Value]
    strided: dict[Value, list[sympy.Symbol]]
    outside: list[Axis]  # what is a scalar: the batch
    rows: Axis
    cols: Axis
    ends: dict[str, Expr]
    blocks: dict[str, Variable]
    precisions: dict[Value, Variable | None]
    whole: dict[str, bool]  # whether a program has all of the columns, and of what the first product sums over
    split: Halves | None = None  # of the first product's left operand, where float32 is multiplied by halves
    totals: dict[Value, Ref] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    starts: dict[Expr, Variable] = field(default_factory=dict)  # parts of offsets that were computed before the loops
    depths: dict[tuple[int, int], Axis] = field(default_factory=dict)

    def name(self, wanted: str) -> Variable:
        """The variable of the kernel that would be called so."""
        if wanted not in self.variables:
            self.variables[wanted] = self.program.arguments.variable(wanted)
        return self.variables[wanted]

    def row(self, wanted: str) -> Ref:
        """A number of each row."""
        return Ref(self.name(wanted), frozenset({self.rows}), torch.float32)

    @property
    def acc(self) -> Ref:
        """The rows of the result so far."""
        return Ref(fixed("acc"), frozenset({self.rows, self.cols}), torch.float32)

    def builder(self, axes: list[Axis]) -> Builder:
        """A builder along ``axes`` and those outside of the loop over keys."""
        built = Builder(
            self.kernel.domain, [*self.outside, *axes], self.program.arguments, self.stored, self.kernel.placed
        )
        built.strided, built.starts = self.strided, self.starts
        return built


@dataclass
class Operand:
    """An operand of the two products: 0 and 1 of the first, 2 the right one of the second."""

    parts: Parts
    number: int

    @property
    def op(self) -> Contract:
        """The product that it is an operand of."""
        return self.parts.kernel.product if self.number == 2 else self.parts.chain.product

    @property
    def value(self) -> Value:
        """The operand itself."""
        return self.op.right if self.number else self.op.left

    def index(self) -> Index:
        """Where an element of it stands."""
        kernel, chain = self.parts.kernel, self.parts.chain
        product = chain.first if self.number < 2 else kernel.contract
        assert product is not None
        at = dict(zip(self.op.axes, kernel.placed[product], strict=True))
        at |= dict(zip(self.op.summed, [chain.key] if self.number == 2 else chain.depth, strict=True))
        letters = self.op.right_axes if self.number else self.op.left_axes
        return tuple(ZERO if n == ONE else at[x] for x, n in zip(letters, self.value.shape, strict=True))

    def axis(self, lane: tuple[int, int]) -> Axis:
        """The axis along the first product's sum."""
        parts = self.parts
        if lane not in parts.depths:
            role: Role = "tile" if parts.whole["E"] else "loop"
            axis = parts.depths[lane] = Axis(parts.name("depth"), parts.chain.depth, role, lane=lane)
            size = total(parts.kernel.domain, parts.chain.depth)
            if not (size.is_number and int(size) % parts.tile.k == 0):
                axis.mask = apply("lt", AxisIndex(axis), parts.ends["E"], dtype=torch.bool)
        return parts.depths[lane]

    def loaded(self, side: Axis, lane: tuple[int, int]) -> tuple[Expr, list[Statement], list[Statement]]:
        """Its tile along ``side`` and what is summed, which lies at ``lane``; statements before the loop, and inside it."""
        along = self.axis(lane) if self.number < 2 else side
        across = side if self.number < 2 else self.parts.cols
        axes = [across, along] if lane == (1, 2) else [along, across]
        builder, index = self.parts.builder(axes), self.index()
        builder.raw_half = is_plain(self.value, self.parts.stored)
        builder.reduced_axis = along if len(along.atoms) > 1 else None
        builder.count(self.value, index)
        term = builder.value(self.value, index)
        beyond = term.pad if along in term.axes else None
        for axis in axes:
            term = spread(term, axis)
        if along.mask is not None and beyond != 0:
            term = masked(term, along.mask, 0.0, self.value.dtype)
        half = TO_HALF.get(multiplied(self.op))
        if half is not None and not (builder.raw_half or is_half(self.value)):
            term = Apply(half, (term,), multiplied(self.op))
        if not isinstance(term, Ref):
            term = builder.assign(("left", "right", "values")[self.number], term, multiplied(self.op))
        return term, builder.lines, builder.inner


def first_product(parts: Parts, keys: Axis, query: Expr | None) -> list[Statement]:
    """The tile of the first product: with its left operand at hand, or in steps along what it sums over."""
    precision, name = parts.precisions[parts.chain.first], parts.name("products")
    axes = frozenset({parts.rows, keys})
    zeros = Full((parts.blocks["M"], parts.blocks["N"]), 0.0, torch.float32, axes)
    if query is not None:
        term, lines, inner = Operand(parts, 1).loaded(keys, (0, 2))
        parts.program.body += lines
        if parts.split is None:
            return [*inner, Set(name, Dot(query, term, zeros, precision))]
        key = split(parts.program.arguments, term, "key", inner)
        small = Ref(parts.name("small_products"), axes, torch.float32)
        last = three_products(parts.split, key, zeros, small, inner)
        return [*inner, Set(name, last)]
    left, right = Operand(parts, 0), Operand(parts, 1)
    query, before, inner = left.loaded(parts.rows, (1, 2))
    term, lines, beside = right.loaded(keys, (0, 2))
    parts.program.body += [*before, *lines]
    step = set_all((parts.name("depth"), plus(Ref(parts.name("part")), Arange(parts.blocks["E"], left.axis((1, 2))))))
    step += [*inner, *beside, Set(name, Dot(query, term, Ref(name, axes, torch.float32), precision))]
    return [Set(name, zeros), For(parts.name("part"), Number(0), parts.ends["E"], parts.blocks["E"], tuple(step))]
