"""A concatenation inside a kernel: each element asks which of the tensors it is from, where its index does not say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy
import torch

from ..graph import division
from ..graph.sizes import ZERO, Index, same
from ..graph.value import Concat, Iota, Pointwise, Value, View
from .access import inside, operand_indices, reshaped_leaf
from .ir import Expr, apply

if TYPE_CHECKING:
    from .build import Builder

    #: A value and the index of its element.
    Element = tuple[Value, Index]


def concatenated(builder: Builder, value: Value, op: Concat, index: Index) -> Expr:
    """``value`` at ``index``, the result of ``op``; of one of its tensors alone where no other has an element there."""
    pairs = operand_indices(value, index, builder.domain)
    along, extent = builder.domain.simplify(index[op.dim]), value.shape[op.dim]
    # The index itself is compared, not its sum with a number, where what it is compared with is a number too.
    numbers = all(operand.shape[op.dim].is_number for operand in op.operands)
    constant = along.as_coeff_Add()[0] if numbers else ZERO
    place = builder.index(along - constant if constant != ZERO else index[op.dim])
    end = ZERO
    asked: list[tuple[list[Expr], Element]] = []
    for operand, at in pairs:
        begin, end = end, sympy.expand(end + operand.shape[op.dim])
        last = operand is pairs[-1][0] and same(end, extent)
        if _is_outside(builder, along, begin, end) and (asked or not last):
            continue
        starts, stops = division.within(along, begin, end, builder.domain.size)
        sides: list[Expr] = (
            [apply("ge", place, builder.arguments.size(begin - constant), dtype=torch.bool)]
            if begin != ZERO and not starts
            else []
        )
        if not stops and not same(end, extent):
            sides.append(apply("lt", place, builder.arguments.size(end - constant), dtype=torch.bool))
        if not sides or _condition(sides) in builder.conditions:  # the others have no element here, or it is not used
            return builder.value(operand, at)
        asked.append((sides, (operand, at)))
        if stops:
            break  # no index is in a later piece
    shared = builder.shared
    builder.shared = {**_shared(builder, along, [element for _, element in asked]), **shared}
    pieces: list[tuple[Expr, Expr]] = []
    for sides, (operand, at) in asked:
        builder.conditions.append(_condition(sides))
        pieces.append((sides[-1], builder.value(operand, at)))
        builder.conditions.pop()
    builder.shared = shared
    result: Expr = pieces[-1][1]
    for ends, piece in reversed(pieces[:-1]):  # what is before a piece's begin has been taken by an earlier one
        result = apply("where", ends, piece, result, dtype=value.dtype)
    return result


def _condition(sides: list[Expr]) -> Expr:
    return sides[0] if len(sides) == 1 else apply("and", *sides, dtype=torch.bool)


def _is_outside(builder: Builder, place: sympy.Expr, begin: sympy.Expr, end: sympy.Expr) -> bool:
    """Whether provably no index is from ``begin`` to before ``end``."""
    ends = division.bounds(place, builder.domain.size)
    if ends is None:
        return False
    return division.nonnegative(begin - 1 - ends[1]) or division.nonnegative(ends[0] - end)


def _shared(builder: Builder, along: sympy.Expr, pieces: list[Element]) -> dict[Element, int]:
    """What several pieces need of one index, with how many of the present conditions it is computed under.

    It is computed once, in front of the conditions of the pieces. Only that comes in question whose loads are inside of their
    tensors for any index, and which reads no more for it: what all pieces need, or what is the same along ``along``, where the
    elements next to each other differ.
    """
    if len(pieces) < 2:
        return {}
    needed: dict[Element, int] = {}
    for piece in pieces:
        known: dict[Element, bool] = {}
        _collect(builder, piece, known)
        for key, anywhere in known.items():
            needed[key] = needed.get(key, 0) + anywhere
    domain = builder.domain
    innermost = not along.free_symbols.isdisjoint([*domain.kept[-1:], *domain.reduced])
    depth = len(builder.conditions)
    return {
        key: depth
        for key, times in needed.items()
        if times == len(pieces)
        or (times > 1 and innermost and all(along.free_symbols.isdisjoint(i.free_symbols) for i in key[1]))
    }


def _collect(builder: Builder, element: Element, known: dict[Element, bool]) -> bool:
    """Note in ``known`` of ``element``, and of all that it needs, whether it can be computed at any index."""
    value, index = element
    key = builder.key(value, index)
    if key in known or value in builder.reduced:
        return known.get(key, True)
    op, leaf = value.op, reshaped_leaf(value, builder.stored)
    if leaf is not None and (leaf is value or leaf not in builder.strided):
        anywhere = inside(key[1], value.shape, builder.domain)
    elif isinstance(op, Pointwise | Iota) or (isinstance(op, View) and not op.map.guard):
        operands = operand_indices(value, key[1], builder.domain)
        anywhere = all([_collect(builder, operand, known) for operand in operands])  # a list: each is noted
    elif isinstance(op, Concat) and (only := _only(builder, value, op, key[1])) is not None:
        anywhere = _collect(builder, only, known)
    else:
        anywhere = False
    known[key] = anywhere
    return anywhere


def _only(builder: Builder, value: Value, op: Concat, index: Index) -> Element | None:
    """The one piece of a concatenation that the index can be in; None where it may be in several."""
    along, end = builder.domain.simplify(index[op.dim]), ZERO
    found: list[Element] = []
    for operand, at in operand_indices(value, index, builder.domain):
        begin, end = end, sympy.expand(end + operand.shape[op.dim])
        if not _is_outside(builder, along, begin, end):
            found.append((operand, at))
    return found[0] if len(found) == 1 else None
