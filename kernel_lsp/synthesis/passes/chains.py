"""Two products with elementwise values and a softmax between them, in one kernel: what attention comes to.

Nothing here asks how an operator was called. A product is chained to the one before it where everything that leads from there to
its left operand is elementwise, or folds the keys that it sums over, and leads nowhere else. The kernel goes along the keys once:
numbers of the whole row, such as a softmax's denominator, are divided by at the end; the sums so far are rescaled where the
greatest score grows (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., "FlashAttention", arXiv 2205.14135).
"""

from __future__ import annotations

import math

import sympy
import torch

from ..graph.lowered import Graph
from ..graph.order import Order, order_of, topological
from ..graph.sizes import ONE, ZERO, Index, broadcast, same_shape
from ..graph.value import Contract, Fold, Input, Pointwise, Reduce, Scalar, Value, View, numel, operands, viewed
from ..kernel.access import operand_indices, reshaped_leaf
from ..kernel.domain import Domain, Refined, Unalignable
from ..kernel.execution_plan import Chain, Kernel, Materialise
from .accesses import accessed, leaf_accessed
from .fusion import trace_product
from .host_views import APART

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def chains(graph: Graph) -> dict[Value, Value]:
    """Products that may be chained to another one: the second → the first. Whether a kernel fits them, ``place_chain`` finds out."""
    order = order_of(graph.outputs)
    result: dict[Value, Value] = {}
    for second in order.values:
        op = second.op
        if (
            not isinstance(op, Contract)
            or not _is_plain_product(op)
            or len(op.summed) != 1
            or op.size(op.summed) == ONE
        ):
            continue
        for first in _products_before(op.left):
            known = first in result or first in result.values()
            if known or not _is_plain_product(first.op):
                continue
            inside = between(first, op.left, order)
            if not all(isinstance(v.op, Pointwise | View | Reduce) for v in inside):
                continue
            within = {*inside, second}
            if any(v in graph.outputs or not within.issuperset(order.users[v]) for v in (first, *inside)):
                continue
            if any(_weight(side) for side in (op.right, operands(first)[1])):
                continue
            result[second] = first
            break
    return result


def moved(graph: Graph, completes: dict[Value, Value], chained: dict[Value, Value]) -> dict[Value, Value]:
    """``completes`` without what completes a first product; a second one's result is stored as the views after it have it.

    Those are views that only exchange or reshape dimensions, such as the merging of heads.
    """
    users: dict[Value, list[Value]] = {}
    for v in topological(graph.outputs):
        for o in dict.fromkeys(operands(v)):
            users.setdefault(o, []).append(v)
    result: dict[Value, Value] = {}
    for root, product in completes.items():
        if product in chained.values():
            continue
        while product in chained and root not in graph.outputs and len(users.get(root, [])) == 1:
            (view,) = users[root]
            if not isinstance(view.op, View) or not (view.op.map.keeps_order or view.op.map.permutation):
                break
            if view in graph.outputs and not view.op.map.keeps_order:
                break  # torch takes that view, and the result has eager's strides
            root = view
        result[root] = product
    return result


def _is_plain_product(op: object) -> bool:
    """Whether it is a product of matrices as they are, not in parts, planes or float8, and no convolution."""
    if not isinstance(op, Contract) or op.outer or op.exact is not None or op.convolves or op.tf32 or op.full_sums:
        return False
    return op.left.dtype in _DTYPES and op.right.dtype in _DTYPES


def _weight(operand: Value) -> bool:
    """Whether it is a view of what the module holds: layers of a perceptron are wider than what stays on chip."""
    op = viewed(operand).op
    return isinstance(op, Input) and op.kind != "argument"


def _products_before(left: Value) -> list[Value]:
    """The products that ``left`` is computed from, with no other one between; as large as it first."""
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    stack = [left]
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if isinstance(v.op, Contract):
            found[v] = None
        elif isinstance(v.op, Pointwise | View | Reduce):
            stack += operands(v)
    size = numel(left.shape)
    return sorted(found, key=lambda v: sympy.expand(numel(v.shape) - size) != 0)


def between(first: Value, left: Value, order: Order | None = None) -> list[Value]:
    """What ``left`` is computed from and that depends on ``first``, operands first, ``left`` last. ``order``: one that has both."""
    order = order or order_of([left])
    bit, above = order.bit(first), order.above[left]
    places = range(order.place[first] + 1, order.place[left] + 1)
    candidates = (order.values[place] for place in places if above >> place & 1)
    return [v for v in candidates if order.above[v] & bit]


def computed_on_the_way(first: Value, left: Value, apart: set[Value]) -> list[Value]:
    """What a kernel computes on its way from ``first`` to ``left``: what is between, and what it meets there, but for what is ``apart``."""
    inside = set(between(first, left))
    found: dict[Value, None] = {}
    stack = [left]
    while stack:
        v = stack.pop()
        if v in found or v is first or (v not in inside and (v in apart or isinstance(v.op, APART | Fold))):
            continue
        found[v] = None
        stack += operands(v)
    return list(found)


def place_chain(root: Value, second: Value, first: Value, stored: set[Value]) -> Kernel:
    """A kernel that computes ``first`` and ``second`` and stores ``root``, which completes it.

    Raises:
        Unalignable: none fits.
        Materialise: as ``index_assignment.place``.
    """
    op, before = _contract(second), _contract(first)
    domain = Domain()
    domain.origin = tuple(domain.atom("i", n, reduced=False) for n in root.shape)
    key = domain.atom("n", op.size(op.summed), reduced=True)
    depth = [domain.atom("e", before.size(letter), reduced=True) for letter in before.summed]
    for _ in range(50):
        kernel = Kernel(domain, stores=[(root, domain.origin)], contract=second)
        try:
            trace_product(kernel, stored)
            _trace(kernel, first, key, depth, stored)
        except Refined:
            continue
        if any(domain.resolve(e) != e for e in (key, *depth)) or not all(isinstance(e, sympy.Symbol) for e in depth):
            raise Unalignable("an access that cuts the keys")
        kernel.stores = [(root, tuple(domain.resolve(e) for e in domain.origin))]
        kernel.chain = _chain(kernel, first, key, list(depth))
        return kernel
    raise Unalignable("the domain did not settle")


def _trace(kernel: Kernel, first: Value, key: sympy.Expr, depth: list[sympy.Expr], stored: set[Value]) -> None:
    """Give each value between the products its place, and check what else is read there.

    Raises:
        Refined, Materialise, Unalignable: as ``place_chain``, which begins anew after an atom was split.
    """
    op, domain = kernel.product, kernel.domain
    at = dict(zip(op.axes, kernel.placed[_second(kernel)], strict=True)) | {op.summed: key}
    inside = {first, *between(first, op.left)}
    seen: set[tuple[Value, Index]] = set()

    def visit(v: Value, index: Index) -> None:
        index = tuple(domain.resolve(e) for e in index)
        if (v, index) in seen:
            return
        seen.add((v, index))
        if v in inside and kernel.placed.setdefault(v, index) != index:
            raise Unalignable("a value between two products at two places")
        if v is first or (v not in inside and leaf_accessed(kernel, v, index, stored)):
            return
        if isinstance(v.op, Reduce):
            if v not in inside:
                raise Materialise(v)
            along = tuple(key if d in v.op.dims else e for d, e in enumerate(index))
            if len(v.op.dims) != 1 or any(key in e.free_symbols for e in index):
                raise Unalignable("a fold of something else than the keys")
            visit(v.op.operand, along)
            return
        for o, i in accessed(kernel, v, index):
            visit(o, i)

    visit(op.left, tuple(ZERO if n == ONE else at[x] for x, n in zip(op.left_axes, op.left.shape, strict=True)))
    if first not in kernel.placed:
        raise Unalignable("a product that is not needed")
    before = _contract(first)
    for one, operand, letters in (
        (first, before.left, before.left_axes),
        (first, before.right, before.right_axes),
        (_second(kernel), op.right, op.right_axes),
    ):
        own = dict(zip(_contract(one).axes, kernel.placed[one], strict=True))
        own |= dict(zip(_contract(one).summed, depth if one is first else [key], strict=True))
        _check(
            operand,
            tuple(ZERO if n == ONE else own[x] for x, n in zip(letters, operand.shape, strict=True)),
            domain,
            stored,
        )


def _check(v: Value, index: Index, domain: Domain, stored: set[Value]) -> None:
    """Whether an operand can be addressed.

    Raises:
        Refined: that splits an atom.
    """
    for e in index:
        domain.terms(e)
    if reshaped_leaf(v, stored) is None:
        for o, i in operand_indices(v, index, domain):
            _check(o, i, domain, stored)


def _contract(product: Value) -> Contract:
    assert isinstance(product.op, Contract)
    return product.op


def _second(kernel: Kernel) -> Value:
    assert kernel.contract is not None
    return kernel.contract


def _chain(kernel: Kernel, first: Value, key: sympy.Symbol, depth: list[sympy.Symbol]) -> Chain:
    """What the kernel carries along the keys, and what it makes of that at the end.

    Raises:
        Unalignable: there is no softmax between the products, or the keys or columns are not where they have to be.
    """
    op = kernel.product
    for e in kernel.placed[_second(kernel)]:
        kernel.domain.linear(e)
    inside = between(first, op.left)
    folds = [v for v in inside if isinstance(v.op, Reduce)]
    _check_sides(kernel, first, key)
    element, factors = _peeled(kernel, op.left, key)
    waits = _depending(folds, inside)
    if element not in waits:
        totals = [v for v in folds if isinstance(v.op, Reduce) and v.op.kind == "sum" and v.op.operand not in waits]
        if len(totals) < len(folds):
            raise Unalignable("a fold that is not carried along")
        return Chain(first, key, depth, element, element, None, totals, factors)
    score, highest = _exponential(element, folds)
    totals = [v for v in folds if v is not highest]
    whole = all(isinstance(v.op, Reduce) and v.op.kind == "sum" and v.op.operand is element for v in totals)
    if score in waits or not whole or not any(f == "div" and _divides(d, totals) for f, d in factors):
        raise Unalignable("no softmax between two products")
    return Chain(first, key, depth, element, score, highest, totals, factors)


def _depending(folds: list[Value], inside: list[Value]) -> set[Value]:
    """The folds, and what is computed from them."""
    found = set(folds)
    for v in inside:
        if any(o in found for o in operands(v)):
            found.add(v)
    return found


def _check_sides(kernel: Kernel, first: Value, key: sympy.Symbol) -> None:
    """The keys are one side of the first product alone, whole; the second's columns have no part in it."""
    before, domain = _contract(first), kernel.domain
    placed = kernel.placed[first]
    own = [x for x, e in zip(before.axes, placed, strict=True) if key in e.free_symbols]
    if len(own) != 1 or placed[before.axes.index(own[0])] != key or before.varies(own[0]) != (False, True):
        raise Unalignable("keys that are no side of the first product")
    op = kernel.product
    columns = [
        s
        for x, e in zip(op.axes, kernel.placed[_second(kernel)], strict=True)
        if op.varies(x) == (False, True)
        for s in domain.resolve(e).free_symbols
    ]
    if any(s in e.free_symbols for s in columns for e in placed):
        raise Unalignable("columns that the first product knows")


def _peeled(kernel: Kernel, left: Value, key: sympy.Symbol) -> tuple[Value, list[tuple[str, Value]]]:
    """``left`` without the numbers of its row that it is multiplied with or divided by, and those, the innermost first."""
    factors: list[tuple[str, Value]] = []
    v, index = left, kernel.placed[left]
    while True:
        op = v.op
        if isinstance(op, View) and not op.map.guard:
            ((v, index),) = operand_indices(v, index, kernel.domain)
            continue
        if not isinstance(op, Pointwise):
            break
        if op.function == "identity" and isinstance(op.operands[0], Value):
            v = op.operands[0]
            continue
        split = _of_row(kernel, v, op, index, key)
        if split is None:
            break
        v, factor = split
        factors.insert(0, (op.function, factor))
    return v, factors


def _of_row(kernel: Kernel, v: Value, op: Pointwise, index: Index, key: sympy.Symbol) -> tuple[Value, Value] | None:
    """(the rest, the number of the row) of a product or a quotient with one."""
    if op.function not in ("mul", "div"):
        return None
    orders = [op.operands, op.operands[::-1]] if op.function == "mul" else [op.operands]
    for rest, factor in orders:
        if not isinstance(rest, Value) or not isinstance(factor, Value) or not same_shape(rest.shape, v.shape):
            continue
        at = tuple(kernel.domain.resolve(e) for e in broadcast(index, v.shape, factor.shape))
        if any(key in e.free_symbols for e in at):
            continue
        kernel.placed[factor] = at
        return rest, factor
    return None


def _exponential(element: Value, folds: list[Value]) -> tuple[Value, Value]:
    """(x, the greatest x of the row) of exp(x - that).

    Raises:
        Unalignable: there is something else than a softmax.
    """
    op = element.op
    inner = op.operands[0] if isinstance(op, Pointwise) and op.function == "exp" else None
    if isinstance(inner, Value) and isinstance(inner.op, Pointwise) and inner.op.function == "sub":
        x, shift = inner.op.operands
        for fold in folds:
            assert isinstance(fold.op, Reduce)
            greatest = fold.op.kind in ("max", "amax") and fold.op.operand is x
            if greatest and isinstance(x, Value) and isinstance(shift, Value) and _is_greatest(shift, fold):
                return x, fold
    raise Unalignable("something else than a softmax between two products")


def _is_greatest(shift: Value, highest: Value) -> bool:
    """Whether ``shift`` is ``highest``, or that where it is finite and 0 elsewhere."""
    if shift is highest:
        return True
    if not isinstance(shift.op, Pointwise) or shift.op.function != "where":
        return False
    condition, zero, other = shift.op.operands
    if other is not highest or isinstance(zero, Value | Scalar) or zero != 0.0:
        return False
    op = condition.op if isinstance(condition, Value) else None
    if not isinstance(op, Pointwise) or op.function != "eq":
        return False
    what, number = op.operands
    if what is highest:
        return number == -math.inf
    return (
        isinstance(what.op, Pointwise)
        and what.op.function == "abs"
        and what.op.operands[0] is highest
        and number == math.inf
    )


def _divides(divisor: Value, totals: list[Value]) -> bool:
    """Whether ``divisor`` is the sum of the exponentials, or that but for a row of which nothing is seen."""
    if divisor in totals:
        return True
    op = divisor.op
    if isinstance(op, View):
        return _divides(op.operand, totals)
    return (
        isinstance(op, Pointwise)
        and op.function in ("where", "add", "maximum")
        and any(isinstance(o, Value) and _divides(o, totals) for o in op.operands)
    )
