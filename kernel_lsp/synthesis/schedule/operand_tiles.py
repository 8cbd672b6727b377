"""The tiles of a product's operands in one step: what is loaded, computed on the way and masked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy
import torch

from ..graph.build import FLOAT8
from ..graph.functions import TO_HALF
from ..graph.names import variable_name
from ..graph.sizes import ONE, ZERO, Index
from ..graph.value import Concat, Contract, Pointwise, Value, View, viewed
from ..kernel.arguments import Arguments
from ..kernel.build import Builder, loaded, masked, spread
from ..kernel.domain import Domain
from ..kernel.ir import Apply, Axis, Expr, Variable
from ..kernel.statements import Statement
from .extents import multiplied
from .program import Program
from .schedules import Product
from .summation import Summation

#: What terms of one step have computed of an operand, as ``Builder.memo`` has it.
Known = dict[tuple[tuple[Value, Index], tuple[Expr, ...]], Expr]


@dataclass
class Parts:
    """What the statements of a contraction share; ``axes``: those that the program's place gives."""

    domain: Domain
    program: Program
    tile: Product
    op: Contract
    axes: list[Axis]
    rows: Axis
    cols: Axis
    depth: list[sympy.Symbol]
    outer: list[sympy.Symbol]
    ends: dict[str, Expr]
    blocks: dict[str, Variable]
    stored: set[Value]
    strided: set[Value]


def operand_tiles(
    parts: Parts,
    op: Contract,
    at: dict[str, sympy.Expr],
    walk: Summation,
    alongs: tuple[Axis, Axis],
    loop: list[Statement],
    suffixes: tuple[str, str] = ("", ""),
    known: tuple[Known, Known] | None = None,
) -> tuple[Expr, Expr]:
    """The operands of a step's product, as a tensor core takes them. What they need is added to the ``loop``, and before it.

    ``at``: the index of each letter; ``alongs``: the axes along K of both tiles. ``suffixes``: of the names of the tiles.
    ``known``: what was computed for this step before, to which this is added.
    """
    domain, program, stored = parts.domain, parts.program, parts.stored
    arguments, dtype = program.arguments, multiplied(op)
    terms: list[Expr] = []
    ends_early: list[Expr | None] = []
    beyond: list[float | None] = []  # what a side holds beyond K
    raw: list[bool] = []
    memos = known or ({}, {})
    for operand, letters, side, along, suffix, memo in (
        (op.left, op.left_axes, parts.rows, alongs[0], suffixes[0], memos[0]),
        (op.right, op.right_axes, parts.cols, alongs[1], suffixes[1], memos[1]),
    ):
        index = tuple(ZERO if n == ONE else at[x] for x, n in zip(letters, operand.shape, strict=True))
        builder = Builder(domain, [*parts.axes, *walk.outside, *_in_order(side, along)], arguments, stored, {})
        builder.strided = {v: strides(v, arguments) for v in parts.strided}
        builder.raw_half = is_plain(operand, stored)
        builder.reduced_axis = along if len(parts.depth) > 1 else None
        builder.whole = side if dtype in FLOAT8 else None
        builder.before, builder.beside, builder.suffix = loaded(loop), "right", suffix
        builder.memo = memo
        builder.count(operand, index)
        term = builder.value(operand, index)
        beyond.append(term.pad if along in term.axes else None)
        # It may not vary along the tile: a constant, an expanded operand, a single row.
        lacking = [axis for axis in (side, along) if axis not in term.axes]
        for axis in lacking:
            term = spread(term, axis)
        program.body += [line for line in builder.lines if line not in program.body]
        loop += builder.inner
        terms.append(term)
        ends_early.append(along.mask)
        half = builder.raw_half or is_half(operand)
        raw.append(half and not (lacking and dtype == torch.bfloat16))  # Triton adds bfloat16 and integers in float32
    terms = [
        term if mask is None or harmless else masked(term, mask, 0.0, operand.dtype)
        for term, mask, harmless, operand in zip(
            terms, ends_early, _harmless(*beyond), (op.left, op.right), strict=True
        )
    ]
    if (cast := TO_HALF.get(dtype)) is not None:
        terms = [term if half else Apply(cast, (term,), dtype) for term, half in zip(terms, raw, strict=True)]
    return terms[0], terms[1]


def _in_order(side: Axis, along: Axis) -> list[Axis]:
    """The tile's axes as its dimensions lie."""
    return [side, along] if along.lane == (1, 2) else [along, side]


def _harmless(left: float | None, right: float | None) -> tuple[bool, bool]:
    """Which sides may keep what they hold beyond K: one has to be 0 there, the other finite, since 0 times infinity is NaN."""
    finite = [pad is not None and math.isfinite(pad) for pad in (left, right)]
    return finite[0], finite[1] and 0 in (left, right)


def is_plain(operand: Value, stored: set[Value]) -> bool:
    """Whether an operand is a stored value as it is, or as views of it address it."""
    while operand not in stored and isinstance(operand.op, View):
        operand = operand.op.operand
    return operand in stored


def is_half(operand: Value) -> bool:
    """Whether what it computes is in half precision, and not in float32."""
    operand = viewed(operand)
    pieces = operand.op.operands if isinstance(operand.op, Concat) else (operand,)
    return all(isinstance(v.op, Pointwise) and v.op.function in TO_HALF.values() for v in pieces)


def strides(value: Value, arguments: Arguments) -> list[sympy.Symbol]:
    """Stride symbols of a tensor argument; each becomes a kernel argument when first used."""
    name = variable_name(value)
    symbols = [sympy.Symbol(f"{name}_stride_{d}", integer=True, positive=True) for d in range(len(value.shape))]
    for d, symbol in enumerate(symbols):
        arguments.symbols.setdefault(symbol, symbol.name)
        arguments.strides[symbol] = (value, d)
    return symbols
