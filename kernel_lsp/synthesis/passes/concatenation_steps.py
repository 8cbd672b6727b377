"""The steps of concatenations: kernels that store pieces, each at its place, so that no other kernel has to copy them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..graph.value import Concat, Value, operands
from ..kernel.domain import Unalignable
from ..kernel.execution_plan import Materialise
from .concatenated_parts import are_products, in_pieces, runs, share_much
from .product_steps import store_product

if TYPE_CHECKING:
    from .regions import Planner


def store_piece_by_piece(planner: Planner, value: Value) -> bool:
    """Store a concatenation whose pieces no other kernel has to copy; False where that cannot be.

    Raises:
        Unalignable: a piece fits no kernel.
    """
    if in_pieces(value, planner.plan.stored):
        return _store_in_one_kernel(planner, value)
    if store_in_products(planner, value):
        return True
    return share_much(value, planner.plan.stored, planner.tree) and _store_in_runs(planner, value)


def store_in_products(planner: Planner, value: Value) -> bool:
    """Have the kernel of each product store its piece of ``value``; False where that is no concatenation of products, or it cannot be."""
    return _are_products(planner, value) and _store_each_product(planner, value)


def _are_products(planner: Planner, value: Value) -> bool:
    if not isinstance(value.op, Concat) or value in planner.plan.stored or value in planner.peaks:
        return False
    apart = (planner.graph.outputs, planner.plan.stored, planner.forced, planner.peaks)
    return are_products(value, planner.completes, planner.chained, planner.order.users, apart)


def _store_each_product(planner: Planner, value: Value) -> bool:
    """The kernel of each product stores its piece where that belongs.

    False where a piece is not what a product's kernel stores in the end; what was learned of that stays in ``completes``.
    """
    steps, multiplied, computed = [*planner.plan.steps], [*planner.multiplied], [*planner.computed]
    stored, viewed = set(planner.plan.stored), set(planner.viewed)
    for piece in operands(value):
        planner.busy.append(piece)
        store_product(planner, piece, planner.completes[piece], whole=value)
        planner.busy.pop()
        if piece in planner.plan.stored:  # with memory of its own
            planner.plan.steps, planner.multiplied, planner.computed = steps, multiplied, computed
            planner.plan.stored, planner.viewed = stored, viewed
            return False
    return True


def _store_in_one_kernel(planner: Planner, value: Value) -> bool:
    """Store the pieces, computed from one tensor, in one kernel; False where it would reduce or scan something."""
    assert isinstance(value.op, Concat)
    pieces = list(value.op.operands)
    kernel = planner.placed(pieces)
    if kernel.folds:
        return False
    kernel.whole, kernel.peaks = value, planner.peaks.get(value, [])
    planner.append(kernel, kernel.outputs)
    return True


def _store_in_runs(planner: Planner, value: Value) -> bool:
    """Store each run of pieces of one shape in one kernel.

    Raises:
        Unalignable: a piece fits no kernel.
    """
    assert isinstance(value.op, Concat)
    for pieces in runs(value.op.operands):
        while True:
            for piece in pieces:
                planner.require(piece)
            try:
                kernel = planner.place(pieces)
            except Materialise as need:
                if need.value in planner.plan.stored:
                    raise Unalignable("a piece of a concatenation fits no kernel") from None
                planner.store(need.value, [])
                continue
            if not kernel.folds:
                break
            for piece in pieces:
                planner.store(piece, [])
        kernel.whole = value
        planner.append(kernel, kernel.outputs)
    return True
