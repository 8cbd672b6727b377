"""Which elements of its operands an element of a value needs: one step back through the graph."""

from __future__ import annotations

import sympy

from ..graph import division
from ..graph.sizes import ZERO, Index, broadcast
from ..graph.value import Concat, Fold, Gather, Iota, Pointwise, Shape, Value, View
from .domain import Domain, Unalignable

#: Stands for an index that is loaded from memory, where only the shape of an access matters.
GATHERED = sympy.Symbol("gathered", integer=True)


def operand_indices(value: Value, index: Index, domain: Domain) -> list[tuple[Value, Index]]:
    """(operand, its index) pairs of a value that is computed inside a kernel. A Gather gives only its index operand.

    Raises:
        Unalignable: no kernel computes such a value.
    """
    op = value.op
    if isinstance(op, Pointwise):
        return [(v, broadcast(index, value.shape, v.shape)) for v in op.operands if isinstance(v, Value)]
    if isinstance(op, View):
        return [(op.operand, domain.at(op.map, index))]
    if isinstance(op, Concat):
        pairs, start = [], ZERO
        for v in op.operands:
            pairs.append((v, (*index[: op.dim], sympy.expand(index[op.dim] - start), *index[op.dim + 1 :])))
            start = sympy.expand(start + v.shape[op.dim])
        return pairs
    if isinstance(op, Gather):
        return [(op.index, gather_index(value, index))]
    if isinstance(op, Iota | Fold):
        return []
    raise Unalignable(f"{type(op).__name__} inside a kernel")


def reshaped_leaf(value: Value, stored: set[Value]) -> Value | None:
    """The stored value that ``value`` is another shape of: row-major order is the same, so it is read directly."""
    while value not in stored and isinstance(value.op, View) and value.op.map.keeps_order:
        value = value.op.operand
    return value if value in stored else None


def inside(index: Index, shape: Shape, domain: Domain) -> bool:
    """Whether each index is provably inside of its dimension, for all that the kernel goes through."""
    return all(
        all(division.within(domain.simplify(i), ZERO, n, domain.size)) for i, n in zip(index, shape, strict=True)
    )


def gather_index(value: Value, index: Index) -> Index:
    """Where a Gather reads its index tensor."""
    op = value.op
    assert isinstance(op, Gather)
    if op.kind == "take":
        return index
    return index[op.dim : op.dim + len(op.index.shape)]


def gather_table(value: Value, index: Index, chosen: sympy.Expr) -> Index:
    """Where a Gather reads its table, ``chosen`` standing for the value of the index tensor."""
    op = value.op
    assert isinstance(op, Gather)
    if op.kind == "take":
        return (*index[: op.dim], chosen, *index[op.dim + 1 :])
    return (*index[: op.dim], chosen, *index[op.dim + len(op.index.shape) :])
