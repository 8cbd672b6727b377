"""What a matrix product's kernel takes along: the epilogue after it, cheap prologues of its operands."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
import torch

from ..graph.build import FLOAT8
from ..graph.lowered import Graph
from ..graph.map import Map, dim, dims
from ..graph.order import Order
from ..graph.sizes import Index, power_of_two_within, same, same_shape
from ..graph.value import (
    Concat,
    Contract,
    Fold,
    Partial,
    Pointwise,
    Recur,
    Reduce,
    Scan,
    Shape,
    TorchCall,
    Value,
    View,
    numel,
    operands,
    viewed,
)
from ..kernel.access import operand_indices, reshaped_leaf
from ..kernel.domain import Domain, Refined, Unalignable
from ..kernel.execution_plan import Kernel, fold_operand_index
from .accesses import accessed, leaf_accessed
from .index_assignment import place_reduction
from .tile_parts import map_of_phases, of_a_tile

#: The most rows, or columns, of a product that one tile has whole, so that its kernel can fold over them.
MOST_FOLDED = 256

#: How they may be folded.
_FOLDED = ("sum", "max", "min", "amax", "amin", "argmax", "argmin")

#: The most elements of a window that a product's kernel pools, and how it may.
MOST_POOLED = 64
_POOLED = ("sum", "max", "min", "amax", "amin")


def epilogues(
    graph: Graph, order: Order, *, folded: bool = False, between: dict[Value, Value] | None = None
) -> dict[Value, Value]:
    """For each product, the last value up to which everything that follows it is elementwise and leads there.

    Between elementwise values the shape may change, as long as the order of elements stays. What it is combined with is stored before, or
    elementwise: it may need other products, scans and calls of torch, but not this product, nor reductions that this product does not need, too (the scale that
    its operands were divided by), which the kernel that reads their rows computes. Where two products are combined, the first of them in the order
    takes what both lead to. ``folded``: reductions over as many elements as the product has rows, or columns, are taken for elementwise, where these
    may fit in one tile, and the dimensions may be exchanged before them; so is one pooling with windows that do not overlap. ``between``: values that only this product may take.
    """
    users, outputs = order.users, set(graph.outputs)
    result: dict[Value, Value] = {}
    taken = dict(between or {})  # value → the product that takes it
    for product in order.values:
        if not isinstance(product.op, Contract):
            continue
        inside, cut, end, shape = {product}, product, product, product.shape
        small: Shape | None = None  # what reductions give
        windows: Value | None = None  # what is pooled
        turned = False  # dimensions were exchanged
        own = order.bit(product)
        for v in order.below(product):
            if any(o in outputs for o in inside if o is not cut) or cut in outputs:
                break
            if not any(o in inside for o in operands(v)):
                continue
            if taken.get(v, product) is not product:
                break
            if isinstance(v.op, View) and v.op.operand is end and users.get(end) == [v]:
                if folded and windows is None and small is None and _pools(v, users.get(v, [])):
                    windows = v
                elif not (v.op.map.keeps_order or (folded and v.op.map.permutation)):
                    break
                inside.add(v)
                turned = turned or not v.op.map.keeps_order
                end, shape, small = v, v.shape, None  # of what is cut
                continue
            if windows is not None and isinstance(v.op, Reduce) and v.op.operand is windows:
                shape = small = v.shape
            elif (
                folded
                and windows is None
                and (_folds_a_side(v, product, shape) or (not turned and _folds_lines(v, product, shape)))
                and (small is None or same_shape(v.shape, small))
            ):
                small = v.shape
            elif not isinstance(v.op, Pointwise) or not any(same_shape(v.shape, s) for s in (shape, small) if s):
                break
            others = [o for o in operands(v) if o not in inside]
            if any(order.above[o] & own or _reduces(order, o, product) for o in others):
                break
            inside.add(v)
            if all(u in inside for o in inside - {v} for u in users.get(o, [])):
                cut = end = v
        result[cut] = product
        taken |= dict.fromkeys((v for v in inside if order.above[cut] & order.bit(v)), product)
    return result


def _reduces(order: Order, value: Value, product: Value) -> bool:
    """Whether a kernel that computes ``value`` reduces what is not needed for ``product``: other products, scans and calls are stored before."""
    stack, seen = [value], set[Value]()
    while stack:
        v = stack.pop()
        if v in seen or order.above[product] & order.bit(v) or isinstance(v.op, Contract | Scan | Recur | TorchCall):
            continue
        if isinstance(v.op, Reduce | Partial):
            return True
        seen.add(v)
        stack += operands(v)
    return False


def _pools(view: Value, users: list[Value]) -> bool:
    """Whether ``view`` shows windows that do not overlap, each of a power of two of elements, and its ``users`` reduce each window."""
    op = view.op
    first = users[0].op if users else None
    if not isinstance(op, View) or op.map.guard or not isinstance(first, Reduce):
        return False
    rank, dims_of_window = len(view.shape), first.dims
    if dims_of_window != tuple(range(rank - len(dims_of_window), rank)) or not all(
        _reduces_windows(u, first) for u in users
    ):
        return False
    length = numel(tuple(view.shape[d] for d in dims_of_window))
    if not length.is_Integer or not 1 < length <= MOST_POOLED or power_of_two_within(int(length)) != length:
        return False
    inside = {dim(d): view.shape[d] for d in dims_of_window}
    return all(_apart(index, inside) for index in op.map.index)


def _reduces_windows(v: Value, first: Reduce) -> bool:
    op = v.op
    return isinstance(op, Reduce) and op.kind in _POOLED and not op.part and op.dims == first.dims


def _apart(index: sympy.Expr, inside: dict[sympy.Symbol, sympy.Expr]) -> bool:
    """Whether windows are apart along a dimension at ``index``. ``inside``: the symbols of places in a window, with their sizes."""
    within = index.free_symbols & inside.keys()
    if not within:
        return isinstance(index, sympy.Symbol) or index.is_number
    if len(within) > 1:
        return False
    (place,) = within
    step = sympy.expand(index - place)
    if step.is_number:
        return True
    of, symbol = step.as_coeff_Mul()
    return isinstance(symbol, sympy.Symbol) and of.is_Integer and of >= inside[place]


def _folds_a_side(v: Value, product: Value, shape: Shape) -> bool:
    """Whether ``v`` reduces as many elements of what has ``shape`` as ``product`` has rows, or columns, in all, and these fit in one tile."""
    op, of = v.op, product.op
    assert isinstance(of, Contract)
    if not isinstance(op, Reduce) or op.kind not in _FOLDED or op.part or not same_shape(op.operand.shape, shape):
        return False
    count = numel(tuple(op.operand.shape[d] for d in op.dims))
    return any(same(count, side) for side in sides(of))


def _folds_lines(v: Value, product: Value, shape: Shape) -> bool:
    """Whether ``v`` reduces what has ``shape`` along its last dimensions, a power of two of elements of a convolution that one tile may have."""
    op, of = v.op, product.op
    assert isinstance(of, Contract)
    if not isinstance(op, Reduce) or op.kind not in _POOLED or op.part or not same_shape(op.operand.shape, shape):
        return False
    if not of.written.convolves:
        return False
    rank = len(shape)
    length = numel(tuple(shape[d] for d in op.dims))
    last = op.dims == tuple(range(rank - len(op.dims), rank))
    return bool(last and length.is_Integer and 1 < length <= MOST_FOLDED and power_of_two_within(int(length)) == length)


def sides(op: Contract) -> list[sympy.Expr]:
    """How many rows and columns a product has, of these the numbers that a tile may have whole."""
    found = []
    for varies in ((True, False), (False, True)):
        count = numel(tuple(op.size(letter) for letter in op.axes if op.varies(letter) == varies))
        if count.is_number and 1 < count <= MOST_FOLDED:
            found.append(count)
    return found


def needed_again(order: Order, product: Value) -> list[Value]:
    """The reductions before a product that what follows it needs again: the scales that its operands were divided by."""
    before = order.above[product] & ~order.bit(product)
    found: dict[Value, None] = {}
    if not before & order.folds:
        return []
    for v in order.below(product):
        small = [o for o in operands(v) if before & order.bit(o) and numel(o.shape) != numel(v.shape)]
        while small:
            o = small.pop()
            if isinstance(o.op, Fold):
                found[o] = None
            elif isinstance(o.op, Pointwise | View):
                small += operands(o)
    return list(found)


_CHEAP = frozenset({"add", "sub", "mul", "neg", "where", "lt", "gt", "le", "ge", "maximum", "to_float32", "abs"})


def cheap_prologue(value: Value, stored: set[Value]) -> bool:
    """Whether ``value`` is elementwise and cheap in terms of exactly one large stored tensor."""
    large: set[Value] = set()
    stack = [value]
    while stack:
        v = stack.pop()
        if v in stored:
            if len(v.shape) == len(value.shape):
                large.add(v)
            continue
        if not isinstance(v.op, Pointwise) or not (v.op.function in _CHEAP or from_float8(v)):
            return False
        stack.extend(operands(v))
    return len(large) == 1


def seldom_prologue(value: Value, stored: set[Value]) -> bool:
    """Whether a kernel that hardly ever runs computes ``value`` from what is stored: elementwise, of pieces put together, of what views address linearly, and of vectors."""
    seen: set[Value] = set()
    waiting = [value]
    while waiting:
        v = waiting.pop()
        if v in stored or v in seen:
            continue
        seen.add(v)
        if isinstance(v.op, View) and _is_linear(v.op.map):
            waiting.append(v.op.operand)
        elif isinstance(v.op, View):
            base = viewed(v)
            if base not in stored or len(base.shape) > 1:
                return False
        elif isinstance(v.op, Pointwise | Concat):
            waiting += operands(v)
        else:
            return False
    return True


def _is_linear(map: Map) -> bool:
    """Whether a view addresses its operand linearly: no index is divided or clamped, and nothing is asked."""
    return not map.guard and all(e.is_polynomial(*dims(len(map.shape))) for e in map.index)


def rounding(value: Value) -> bool:
    """Whether it is a float32 tensor rounded to float16."""
    op = value.op
    if not isinstance(op, Pointwise) or op.function != "to_float16":
        return False
    return isinstance(op.operands[0], Value) and op.operands[0].dtype == torch.float32


def planes(value: Value) -> bool:
    """Whether it is the float16 planes of a float32 tensor, of which the last piece rounds that."""
    return isinstance(value.op, Concat) and all(rounding(piece) for piece in value.op.operands)


def from_float8(value: Value) -> bool:
    """Whether it is a float8 tensor as half precision numbers."""
    op = value.op
    if not isinstance(op, Pointwise) or op.function not in ("to_float16", "to_bfloat16"):
        return False
    return isinstance(op.operands[0], Value) and op.operands[0].dtype in FLOAT8


def addressable(operand: Value, base: Value, stored: set[Value], scalar: frozenset[int], split: bool = False) -> bool:
    """Whether the views from ``base`` to ``operand`` keep every index linear without splitting one.

    ``scalar``: the dimensions whose index is a scalar in the kernel; any expression over those alone will do. ``split``: they may also be split.
    """
    domain = Domain()
    whole: Index = tuple(domain.atom("i", n, reduced=False) for n in operand.shape)
    scalars = {whole[d] for d in scalar}
    for _ in range(8):
        v, index = operand, whole
        try:
            while v is not base:
                if reshaped_leaf(v, stored) is not None:
                    return True
                (v, index) = operand_indices(v, index, domain)[-1]  # of planes it does not matter which
                for e in index:
                    _, rest = domain.terms(e)
                    if rest.free_symbols & domain.size.keys() - scalars:
                        return False
            return True
        except Unalignable:
            return False
        except Refined:
            if not split or not domain.parts.keys() <= scalars:
                return False
            scalars |= {atom for parts in domain.parts.values() for atom in parts.free_symbols}
    return False


def place_product(
    root: Value,
    product: Value,
    stored: set[Value],
    between: Sequence[Value] = (),
    partials: Sequence[Value] = (),
    needed: bool = True,
) -> Kernel:
    """A kernel that computes ``product`` and stores ``root``, which completes it.

    ``between``: what it computes for that after the product, operands first. ``partials``: what each tile's elements of ``root`` come to, which it stores, too;
    and ``root`` itself only where that is ``needed``.

    Raises:
        Materialise, Unalignable: as ``index_assignment.place``.
    """
    domain = Domain()
    roots, seen = [root] if needed else [], map_of_phases(partials)
    if partials:
        wholes, after = of_a_tile(partials)
        roots, between = [*(roots if seen is None else []), *wholes], [*between, *after]
    folds = [v for v in between if isinstance(v.op, Fold)]
    if not folds:
        domain.origin = tuple(domain.atom("i", n, reduced=False) for n in root.shape)
    for _ in range(50):
        kernel = Kernel(domain, contract=product, folds=folds, partials=list(partials))
        try:
            if folds:
                place_reduction(kernel, between, roots)
                if needed and seen is not None:
                    kernel.stores.insert(0, (root, domain.at(seen, kernel.operand_index)))
            else:
                kernel.stores = [(root, domain.origin)]
            trace_product(kernel, stored)
        except Refined:
            continue
        kernel.stores = [(v, tuple(domain.resolve(e) for e in index)) for v, index in kernel.stores]
        return kernel
    raise Unalignable("the domain did not settle")


def trace_product(kernel: Kernel, stored: set[Value]) -> None:
    """Place the product where the epilogue reads it, and check the epilogue's accesses.

    The operands' own are checked where the kernel is written.

    Raises:
        Refined: an atom was split.
    """
    product = kernel.contract
    assert product is not None
    seen: set[tuple[Value, Index]] = set()

    def resolved(index: Index) -> Index:
        return tuple(kernel.domain.resolve(e) for e in index)

    def visit(v: Value, index: Index) -> None:
        if (v, index) in seen:
            return
        seen.add((v, index))
        if v is product:
            if kernel.placed.setdefault(product, index) != index:
                raise Unalignable("an epilogue that moves elements")
            for e in index:
                kernel.domain.terms(e)
        elif isinstance(v.op, Fold) and v in kernel.placed:
            if resolved(kernel.placed[v]) != index:
                raise Unalignable("a reduction whose result is moved")
            visit(v.op.operand, resolved(fold_operand_index(kernel, v, kernel.placed[v])))
        elif not leaf_accessed(kernel, v, index, stored):
            for o, i in accessed(kernel, v, index):
                visit(o, i)

    for v, index in kernel.stores:
        visit(v, resolved(index))
