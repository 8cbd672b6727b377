"""Placing values in a kernel's domain: the index of each, and whether every access stays linear.

The domain starts with one atom per dimension of the first reduction's operand (or of the stored value). What
follows takes its index from operands already placed. A reshape that cuts an atom splits it (``Refined``) and placing
starts again in the same, finer domain; what cannot be placed has to be stored first (``Materialise``).
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from ..graph.map import back
from ..graph.sizes import ONE, ZERO, Index, same, same_shape
from ..graph.value import Fold, Pointwise, Scan, Value, View, operands
from ..kernel.domain import Domain, Refined, Unalignable
from ..kernel.execution_plan import Kernel, Materialise, fold_operand_index
from .accesses import accessed, leaf_accessed


def place(roots: list[Value], tree: list[Value], stored: set[Value]) -> Kernel:
    """A kernel that stores ``roots`` and computes ``tree`` (operands first) from what is ``stored``.

    Raises:
        Materialise: a value, which it has, does not fit the domain.
        Unalignable: splitting has no end.
    """
    domain = Domain()
    for _ in range(50):
        try:
            return _place_in(roots, tree, stored, domain)
        except Refined:
            continue
    raise Unalignable("the domain did not settle")


def _place_in(roots: list[Value], tree: list[Value], stored: set[Value], domain: Domain) -> Kernel:
    kernel = Kernel(domain)
    kernel.folds = [v for v in tree if isinstance(v.op, Fold)]
    kernel.chunked = next((v for v in kernel.folds if isinstance(v.op, Scan) and v.op.start is not None), None)
    if kernel.chunked is not None and len(kernel.folds) > 1:
        _apart(kernel, kernel.chunked)
    if kernel.folds:
        place_reduction(kernel, tree, roots)
    else:
        if not domain.size:
            index = tuple(domain.atom("i", n, reduced=False) for n in roots[0].shape)
            domain.origin = index
        index = domain.origin
        for root in roots:
            if not same_shape(root.shape, roots[0].shape):
                raise Materialise(root)
            kernel.stores.append((root, index))
    _trace(kernel, stored)
    return kernel


def _apart(kernel: Kernel, scan: Value) -> None:
    """A scan in chunks shares its kernel with no other fold: what comes before it is stored, or the scan is."""
    assert isinstance(scan.op, Fold)
    raise Materialise(scan if kernel.folds[0] is scan else scan.op.operand)


def _result_index(op: Fold, operand: Index) -> Index:
    """Where a fold's result stands: a reduction's at 0 along what it reduces, a scan's with its operand."""
    return operand if isinstance(op, Scan) else tuple(ZERO if d in op.dims else e for d, e in enumerate(operand))


def place_reduction(kernel: Kernel, tree: Sequence[Value], roots: list[Value]) -> None:
    """Place the folds of ``kernel``, which are in ``tree``, and what follows them, up to the ``roots``, which it stores.

    Raises:
        Materialise: a value does not fit the first one's domain.
    """
    domain, anchor = kernel.domain, kernel.folds[0]
    op = anchor.op
    assert isinstance(op, Fold)
    if not domain.size:
        domain.origin = tuple(
            domain.atom("r" if i in op.dims else "k", n, reduced=i in op.dims) for i, n in enumerate(op.operand.shape)
        )
    kernel.operand_index = domain.origin
    reduced = [
        (e, n) for i, (e, n) in enumerate(zip(kernel.operand_index, op.operand.shape, strict=True)) if i in op.dims
    ]
    placed = kernel.placed
    for v in tree:
        if v is anchor:
            placed[v] = _result_index(op, kernel.operand_index)
        elif isinstance(v.op, Fold):
            placed[v] = _place_other(kernel, v, anchor, reduced)
        elif any(o in placed for o in operands(v)):
            placed[v] = _place_after(v, placed, reduced, domain)
    for root in roots:
        if root in placed:
            kernel.stores.append((root, placed[root]))
        elif same_shape(root.shape, op.operand.shape):
            kernel.stores.append((root, kernel.operand_index))
        else:
            raise Materialise(root)


def _place_other(kernel: Kernel, v: Value, anchor: Value, reduced: list[tuple[sympy.Expr, sympy.Expr]]) -> Index:
    """The index of another reduction, if it runs over the same domain as the anchor."""
    op, first = v.op, anchor.op
    assert isinstance(op, Fold) and isinstance(first, Fold)
    depends = op.operand in kernel.placed
    fits = op.dims == first.dims and same_shape(op.operand.shape, first.operand.shape)
    if depends:
        index = kernel.placed[op.operand]
        covered = [kernel.domain.resolve(index[d]) for d in op.dims if op.operand.shape[d] != ONE]
        wanted = [kernel.domain.resolve(e) for e, n in reduced if n != ONE]
        kept = [kernel.domain.resolve(e) for d, e in enumerate(index) if d not in op.dims]
        inside = set(kernel.domain.reduced)
        if covered == wanted and not any(e.free_symbols & inside for e in kept):
            return _result_index(op, index)
        raise Materialise(op.operand)
    if fits:
        return _result_index(op, kernel.operand_index)
    raise Materialise(v)


def _place_after(
    v: Value, placed: dict[Value, Index], reduced: list[tuple[sympy.Expr, sympy.Expr]], domain: Domain
) -> Index:
    """The index of a value that follows a reduction, from those of its placed operands."""
    op = v.op
    source = next(o for o in operands(v) if o in placed)
    index = placed[source]
    if isinstance(op, Pointwise):
        result: list[sympy.Expr | None] = [None] * len(v.shape)
        for o in operands(v):
            if o not in placed:
                continue
            shift = len(v.shape) - len(o.shape)
            for d, n in enumerate(o.shape):
                if n == ONE:
                    continue
                old = result[d + shift]
                if old is not None and domain.resolve(old) != domain.resolve(placed[o][d]):
                    raise Materialise(o)
                result[d + shift] = placed[o][d]
        known: set[sympy.Basic] = set()
        for e in filter(None, result):
            atoms = domain.resolve(e).free_symbols & domain.size.keys()
            if atoms & known:  # each row of a column with each of a row: along two dimensions, not along a diagonal
                raise Materialise(source)
            known |= atoms
        return _filled(v, result, source, reduced, domain)
    if isinstance(op, View):
        if op.map.inverse is None:
            raise Materialise(source)
        there = back(op.map, index)
        try:
            moved = [None if e is None else domain.simplify(e) for e in there]
            for e in moved:
                domain.linear(ZERO if e is None else e)
        except Unalignable:
            raise Materialise(source) from None
        return _filled(v, moved, source, reduced, domain)
    raise Materialise(source)


def _filled(
    v: Value,
    result: list[sympy.Expr | None],
    source: Value,
    reduced: list[tuple[sympy.Expr, sympy.Expr]],
    domain: Domain,
) -> Index:
    """Dimensions that no placed operand fixes run over the reduced atoms, in order and of equal size."""
    used = set().union(*(domain.resolve(e).free_symbols for e in result if e is not None))
    free = [(e, n) for e, n in reduced if n != ONE and not (domain.resolve(e).free_symbols & used)]
    filled: list[sympy.Expr] = []
    for d, e in enumerate(result):
        if e is not None or v.shape[d] == ONE:
            filled.append(ZERO if e is None else e)
            continue
        while free and not same(free[0][1], v.shape[d]):
            free.pop(0)
        if not free:
            raise Materialise(source)
        filled.append(free.pop(0)[0])
    return tuple(filled)


def _trace(kernel: Kernel, stored: set[Value]) -> None:
    """Walk every access once.

    Raises:
        Refined: an atom was split.
        Materialise: an access is not linear.
    """
    seen: set[tuple[Value, Index]] = set()

    def visit(v: Value, index: Index) -> None:
        index = tuple(kernel.domain.resolve(e) for e in index)
        if (v, index) in seen:
            return
        seen.add((v, index))
        if leaf_accessed(kernel, v, index, stored):
            return
        if isinstance(v.op, Fold):
            if v not in kernel.placed or tuple(kernel.domain.resolve(e) for e in kernel.placed[v]) != index:
                raise Materialise(v)
            return
        for o, i in accessed(kernel, v, index):
            visit(o, i)

    for v in kernel.folds:
        op = v.op
        assert isinstance(op, Fold)
        index = kernel.placed[v]
        if op.operand in kernel.placed:
            visit(op.operand, kernel.placed[op.operand])
        else:
            visit(op.operand, fold_operand_index(kernel, v, index))
    for v, index in kernel.stores:
        visit(v, index)
