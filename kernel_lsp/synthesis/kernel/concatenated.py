"""A concatenation inside a kernel: each element asks which of the tensors it is from, where its index does not say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy
import torch

from ..graph import division
from ..graph.sizes import ZERO, Index, same
from ..graph.value import Concat, Value
from .access import operand_indices
from .ir import Expr, apply

if TYPE_CHECKING:
    from .build import Builder


def concatenated(builder: Builder, value: Value, op: Concat, index: Index) -> Expr:
    """``value`` at ``index``, the result of ``op``; of one of its tensors alone where no other has an element there."""
    pairs = operand_indices(value, index, builder.domain)
    end = ZERO
    pieces: list[tuple[Expr, Expr]] = []
    along, extent = builder.domain.simplify(index[op.dim]), value.shape[op.dim]
    # The index itself is compared, not its sum with a number, where what it is compared with is a number too.
    numbers = all(operand.shape[op.dim].is_number for operand in op.operands)
    constant = along.as_coeff_Add()[0] if numbers else ZERO
    place = builder.index(along - constant if constant != ZERO else index[op.dim])
    for operand, at in pairs:
        begin, end = end, sympy.expand(end + operand.shape[op.dim])
        last = operand is pairs[-1][0] and same(end, extent)
        if _is_outside(builder, along, begin, end) and (pieces or not last):
            continue
        starts, stops = division.within(along, begin, end, builder.domain.size)
        sides = (
            [apply("ge", place, builder.arguments.size(begin - constant), dtype=torch.bool)]
            if begin != ZERO and not starts
            else []
        )
        if not stops and not same(end, extent):
            sides.append(apply("lt", place, builder.arguments.size(end - constant), dtype=torch.bool))
        if not sides:  # the others have no element here
            return builder.value(operand, at)
        condition = sides[0] if len(sides) == 1 else apply("and", *sides, dtype=torch.bool)
        if condition in builder.conditions:  # elsewhere the result is not used
            return builder.value(operand, at)
        builder.conditions.append(condition)
        pieces.append((sides[-1], builder.value(operand, at)))
        builder.conditions.pop()
        if stops:
            break  # no index is in a later piece
    result: Expr = pieces[-1][1]
    for ends, piece in reversed(pieces[:-1]):  # what is before a piece's begin has been taken by an earlier one
        result = apply("where", ends, piece, result, dtype=value.dtype)
    return result


def _is_outside(builder: Builder, place: sympy.Expr, begin: sympy.Expr, end: sympy.Expr) -> bool:
    """Whether provably no index is from ``begin`` to before ``end``."""
    ends = division.bounds(place, builder.domain.size)
    if ends is None:
        return False
    return division.nonnegative(begin - 1 - ends[1]) or division.nonnegative(ends[0] - end)
