"""Concatenations that are filled piece by piece: by one kernel, or by those of the products that the pieces are."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from ..graph.sizes import same_shape
from ..graph.value import Concat, Fold, Pointwise, Value, View, operands

#: More pieces than these are stored, each at its place; fewer than ``_FEW`` are not, however much they share.
_MOST_ASKED, _FEW = 8, 4
#: How many times as much the pieces compute one by one as together where that is much.
_OFTEN = 2


def in_pieces(value: Value, stored: set[Value]) -> bool:
    """Whether ``value`` is a concatenation of pieces of one shape that are all elementwise in one tensor of that size.

    Such a kernel reads the tensor once. Where each element of the result is computed for itself, it is read for each piece.
    """
    if not isinstance(value.op, Concat) or value in stored:
        return False
    pieces = value.op.operands
    first = pieces[0]
    if len(set(pieces)) < len(pieces) or not all(same_shape(piece.shape, first.shape) for piece in pieces):
        return False
    sources = [_source(piece) for piece in pieces]
    return sources[0] is not None and all(source is sources[0] for source in sources)


def are_products(
    value: Value,
    completes: Mapping[Value, Value],
    chained: Mapping[Value, Value],
    users: Mapping[Value, list[Value]],
    apart: Iterable[Container[Value]],
) -> bool:
    """Whether ``value`` is a concatenation of what products give, and nothing else needs a piece.

    ``completes``: what is stored of a product, with the product; ``chained``: products that share a kernel with another;
    ``users``: what needs each value; ``apart``: what is not to be stored in another's memory.
    """
    pieces = operands(value)
    return len(set(pieces)) == len(pieces) and all(
        piece in completes
        and completes[piece] not in chained
        and users[piece] == [value]
        and not any(piece in one for one in apart)
        for piece in pieces
    )


def share_much(value: Value, stored: set[Value], tree: Callable[[list[Value]], list[Value]]) -> bool:
    """Whether the pieces of a concatenation are computed from each other, as steps are, or too many to ask of each element which it is in.

    Then each step is computed once for all pieces after it. ``tree``: what a kernel with such roots computes itself.
    """
    op = value.op
    if not isinstance(op, Concat) or value in stored or len(set(op.operands)) < len(op.operands):
        return False
    if len(op.operands) > _MOST_ASKED:
        return True
    if len(op.operands) < _FEW:
        return False
    several = [_computed(tree([piece])) for piece in op.operands]
    return not any(isinstance(v.op, Fold) for v in tree(list(op.operands))) and sum(map(len, several)) > _OFTEN * len(
        set().union(*several)
    )


def _computed(values: list[Value]) -> set[Value]:
    return {v for v in values if isinstance(v.op, Pointwise) and operands(v)}


def runs(pieces: Sequence[Value]) -> list[list[Value]]:
    """The pieces in their order, those of one shape that follow each other together."""
    found: list[list[Value]] = []
    for piece in pieces:
        if found and same_shape(found[-1][-1].shape, piece.shape):
            found[-1].append(piece)
        else:
            found.append([piece])
    return found


def _source(piece: Value) -> Value | None:
    """The tensor that a piece is elementwise in; None for a tensor itself, a view of one, or where there are several."""
    seen = False
    found: set[Value] = set()
    stack = [piece]
    while stack:
        v = stack.pop()
        if isinstance(v.op, Pointwise) and operands(v):
            seen = True
            stack += operands(v)
        elif isinstance(v.op, View) and v.op.map.keeps_order:
            stack.append(v.op.operand)
        elif v.shape:
            found.add(v)
    return found.pop() if seen and len(found) == 1 else None
