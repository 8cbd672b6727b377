"""The steps of matrix products: what is stored before a product's kernel, what it completes, what else is done where that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..graph.value import Contract, Fold, Sample, Value, View, operands
from ..kernel.domain import Unalignable
from ..kernel.execution_plan import Materialise
from ..kernel.reads import beneath
from .chains import between, computed_on_the_way, place_chain
from .fusion import addressable, cheap_prologue, needed_again, place_product, planes, rounding, seldom_prologue
from .host_views import APART
from .tile_parts import by_phases, partials_of

if TYPE_CHECKING:
    from .regions import Planner


class Unchained(Exception):
    """No kernel fits ``product`` and the one before it."""

    def __init__(self, product: Value) -> None:
        self.product = product


def store_product(
    planner: Planner, root: Value, product: Value, cut: Value | None = None, whole: Value | None = None
) -> None:
    """A product with what it completes; only the beginning of that where ``cut`` is given.

    ``whole``: the concatenation that ``root`` is a piece of, which it is stored in.

    Raises:
        Unalignable: the product fits no kernel, also without an epilogue.
    """
    op = product.op
    assert isinstance(op, Contract)
    if product in planner.chained:
        return _store_chain(planner, root, product, planner.chained[product])
    if any(v is not root and _follows(planner, v, product) and _follows(planner, root, v) for v in planner.forced):
        return _instead(planner, root, product, cut)
    partials, needed = partials_of(planner.order, root), _needed(planner, root)
    shared = needed_again(planner.order, product)
    for one in [op, op.exact.product] if op.exact else [op]:
        for operand, axes in ((one.left, one.left_axes), (one.right, one.right_axes)):
            scalar = frozenset(d for d, letter in enumerate(axes) if letter in one.scalar)
            _prepare(planner, operand, scalar, shared, seldom=one is not op)
    while True:
        tree = _epilogue_tree(planner, root, product)
        for v in tree:
            for o in operands(v):
                if o not in planner.plan.stored and o not in tree and o is not product:
                    planner.store(o, [])
        try:
            kernel = place_product(root, product, planner.plan.stored, tree, partials, needed)
            if not partials and kernel.folds and not (planner.folding is not None and planner.folding(kernel)):
                raise Unalignable("reductions of what no tile has whole")
            break
        except Materialise as need:
            if _follows(planner, need.value, product):
                _instead(planner, root, product, cut)
                return
            planner.store(need.value, [])
        except Unalignable:  # its epilogue does not fit the product's tiles
            if partials:  # they are chunks of what is stored
                partials = []
                continue
            if root is product:
                raise
            _instead(planner, root, product, cut)
            return
    kernel.cut, kernel.whole = cut, whole
    if op.exact is not None:
        kernel.peaks = [peak for peak in op.exact.peaks if isinstance(peak.op, Sample)]
    planner.append(kernel, kernel.outputs)
    if op.exact is not None:
        again = place_product(root, product, planner.plan.stored - {root}, tree, partials, needed)
        again.exact, again.cut, again.whole = True, cut, whole
        planner.append(again, [])


def _needed(planner: Planner, root: Value) -> bool:
    """Whether anything reads ``root`` itself."""
    parts = partials_of(planner.order, root)
    users = planner.order.users.get(root, [])
    return root in planner.graph.outputs or any(not by_phases(v) and v not in parts for v in users)


def _instead(planner: Planner, root: Value, product: Value, cut: Value | None) -> None:
    """Store ``root``, or its beginning, in another way than in ``product``'s kernel, which then ends before its reductions, or with it."""
    ends = planner.plain[product]
    del planner.completes[root]
    planner.completes[product if ends is root else ends] = product
    wanted = root if cut is None else cut
    planner.busy.remove(wanted)
    planner.store(wanted, [])
    planner.busy.append(wanted)


def _follows(planner: Planner, value: Value, other: Value) -> bool:
    """Whether ``value`` is computed from ``other``."""
    return other in planner.order.place and bool(planner.order.above.get(value, 0) & planner.order.bit(other))


def _store_chain(planner: Planner, root: Value, product: Value, first: Value) -> None:
    """A product with the one before it and what it completes.

    Raises:
        Unchained: no kernel fits both.
    """
    op, before = product.op, first.op
    assert isinstance(op, Contract) and isinstance(before, Contract)
    sides = ((before, before.left, before.left_axes), (before, before.right, before.right_axes))
    for one, operand, axes in (*sides, (op, op.right, op.right_axes)):
        scalar = frozenset(d for d, letter in enumerate(axes) if letter in one.scalar)
        _prepare(planner, operand, scalar, [], split=True)
    inside = {first, *between(first, op.left)}
    while True:
        apart = {*planner.plan.stored, *planner.completes, *planner.forced}
        tree = {*_epilogue_tree(planner, root, product), *computed_on_the_way(first, op.left, apart), product, first}
        for v in tree - {product, first}:
            for o in operands(v):
                if o not in planner.plan.stored and o not in tree:
                    planner.store(o, [])
        try:
            kernel = place_chain(root, product, first, planner.plan.stored)
            break
        except Materialise as need:
            if need.value in inside or need.value is product:
                raise Unchained(product) from None
            planner.store(need.value, [])
        except Unalignable:
            raise Unchained(product) from None
    planner.append(kernel, kernel.outputs)


def _epilogue_tree(planner: Planner, root: Value, product: Value) -> list[Value]:
    """Values between the product and the root, and cheap operands that are computed on the way."""
    order: list[Value] = []
    seen: set[Value] = {product}

    def visit(v: Value) -> None:
        if (
            v in seen
            or v in planner.plan.stored
            or isinstance(v.op, APART)
            or (isinstance(v.op, Fold) and not _follows(planner, v, product))
            or (v in planner.completes and v is not root)
            or v in planner.forced
        ):
            return
        seen.add(v)
        for o in operands(v):
            visit(o)
        order.append(v)

    if root is not product:
        visit(root)
    return order


def _prepare(
    planner: Planner,
    operand: Value,
    scalar: frozenset[int],
    shared: list[Value],
    seldom: bool = False,
    split: bool = False,
) -> None:
    """Store a product's operand unless it is cheap to compute while loading (views, casts, simple arithmetic).

    ``scalar``: its dimensions whose index is a scalar, which may be split where ``split``. ``shared``: what may be stored with
    it. ``seldom``: its product hardly ever runs.
    """
    base, ahead = operand, planner.plan.stored | planner.forced  # what is forced is stored below, and loaded
    while base not in ahead and base not in planner.completes:
        rounded = (rounding(base) or planes(base)) and base not in planner.peaks  # as it is read
        if isinstance(base.op, View) or rounded:
            base = operands(base)[-1]
        else:
            break
    computed = seldom_prologue if seldom else cheap_prologue
    if base not in ahead and not computed(base, ahead):
        planner.store(base, shared)
    for v in beneath([operand], planner.plan.stored | planner.forced):
        planner.store(v, shared)
    if addressable(operand, base, planner.plan.stored, scalar, split):
        return
    # Of the views between them the one that is stored is the nearest to the base, before windows repeat its elements.
    views = [operand]
    while isinstance(views[-1].op, View) and views[-1].op.operand is not base:
        views.append(views[-1].op.operand)
    planner.store(
        next(v for v in reversed(views) if v is operand or addressable(operand, v, {*planner.plan.stored, v}, scalar)),
        [],
    )
