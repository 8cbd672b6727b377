"""Which values share a kernel: one pass over memory for as many neighbouring operations as possible.

A plan is a list of steps in execution order: kernels, torch calls and views taken on the host. A kernel has a
domain (``index.Domain``), the values it stores with the index of each in that domain, and the reductions it
carries out with theirs. What cannot be expressed in one domain is materialised, and planning starts again with
that value as an input.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from .access import GATHERED, gather_table, operand_indices, reshaped_leaf, view_index
from .graph import (
    Gather,
    Graph,
    Matmul,
    Partial,
    Pointwise,
    Reduce,
    Shape,
    TorchCall,
    Value,
    View,
    operands,
    topological,
)
from .index import ONE, ZERO, Domain, Index, Refined, Unalignable, reshape, same

Hints = dict[sympy.Symbol, int]


class Materialise(Exception):
    """``value`` has to be stored before the kernel being planned can run."""

    def __init__(self, value: Value) -> None:
        self.value = value


@dataclass(eq=False)
class Kernel:
    """One kernel: ``stores`` (value, index) in ``domain``; ``placed`` gives the index of each reduction and what follows it."""

    domain: Domain
    stores: list[tuple[Value, Index]] = field(default_factory=list)
    placed: dict[Value, Index] = field(default_factory=dict)
    reduces: list[Value] = field(default_factory=list)
    matmul: Value | None = None
    operand_index: Index = ()  # where the reductions' operand is addressed: all atoms
    operand_shape: tuple[sympy.Expr, ...] = ()
    leaves: list[Value] = field(default_factory=list)  # what it loads
    accesses: list[tuple[Value, Index, Shape]] = field(default_factory=list)  # each load: index into which shape
    partial: Value | None = None  # the buffer of partial results that a split reduction fills


@dataclass(eq=False)
class HostView:
    value: Value


@dataclass(eq=False)
class Call:
    values: list[Value]


Step = Kernel | HostView | Call


@dataclass
class Plan:
    steps: list[Step] = field(default_factory=list)
    stored: set[Value] = field(default_factory=set)


def hint(expr: sympy.Expr, hints: Hints) -> int:
    """The size for the example inputs."""
    return int(expr.subs(hints)) if expr.free_symbols else int(expr)


def plan(graph: Graph, hints: Hints) -> Plan:
    """Steps that compute the graph's outputs. ``hints``: the size symbols' values for the example inputs."""
    epilogues = _epilogues(graph)
    forced: set[Value] = set()
    for _ in range(200):
        attempt = _Planner(graph, hints, epilogues, forced)
        shared = attempt.run()
        if not shared:
            return attempt.plan
        forced |= shared
    raise Unalignable("planning did not settle")


class _Planner:
    def __init__(self, graph: Graph, hints: Hints, epilogues: dict[Value, Value], forced: set[Value]) -> None:
        self.graph, self.hints, self.forced = graph, hints, forced
        self.roots_of = epilogues  # stored value → the matmul it completes
        self.plan = Plan(stored={v for v in graph.inputs})
        self.busy: list[Value] = []
        self.computed_in: dict[Value, Kernel] = {}

    def run(self) -> set[Value]:
        """Plan everything; returns values with reductions inside that two kernels computed, to be stored next time."""
        again: set[Value] = set()
        pending = [v for v in self.graph.outputs if v not in self.plan.stored]
        for root in pending:
            self.store(root, pending, viewed=True)
        for step in self.plan.steps:
            if not isinstance(step, Kernel) or step.matmul is not None:
                continue
            for value in step.reduces:
                other = self.computed_in.setdefault(value, step)
                if other is not step and value not in self.forced:
                    again.add(value)
        return again

    # -- storing one value ------------------------------------------------------------------------------------

    def store(self, value: Value, pending: list[Value], *, viewed: bool = False) -> None:
        """Plan what computes ``value``. ``viewed``: torch reads it, so a view of something stored will do."""
        if value in self.plan.stored:
            return
        if value in self.busy:
            raise Unalignable("a value depends on itself")
        self.busy.append(value)
        try:
            if isinstance(value.op, TorchCall):
                self._store_call(value)
            elif viewed and _on_host(value, self.roots_of):
                self.store(value.op.operand, pending, viewed=True)  # type: ignore[attr-defined]
                self._append(HostView(value), [value])
            elif isinstance(value.op, Partial):
                self._store_partial(value)
            elif value in self.roots_of:
                self._store_matmul(value, self.roots_of[value])
            else:
                self._store_kernel(value, pending)
        finally:
            self.busy.pop()

    def _append(self, step: Step, values: list[Value]) -> None:
        self.plan.steps.append(step)
        self.plan.stored.update(values)

    def _store_call(self, value: Value) -> None:
        for operand in operands(value):
            self.store(operand, [], viewed=True)
        call = value.op.call or value.op  # type: ignore[attr-defined]
        siblings = [
            v for v in topological(self.graph.outputs) if isinstance(v.op, TorchCall) and (v.op.call or v.op) is call
        ]
        self._append(Call(siblings), siblings)

    def _require(self, value: Value) -> None:
        """Store what a kernel for ``value`` cannot compute itself: torch calls, products, forced values."""
        for v in self.tree([value]):
            for operand in operands(v):
                if operand in self.plan.stored:
                    continue
                if (
                    isinstance(operand.op, TorchCall | Matmul | Partial)
                    or operand in self.roots_of
                    or operand in self.forced
                ):
                    self.store(operand, [])

    def tree(self, roots: list[Value]) -> list[Value]:
        """What a kernel with these roots computes itself, operands first."""
        order: list[Value] = []
        seen: set[Value] = set()

        def visit(v: Value) -> None:
            if v in seen or v in self.plan.stored:
                return
            seen.add(v)
            if v not in roots and (
                isinstance(v.op, TorchCall | Matmul | Partial) or v in self.roots_of or v in self.forced
            ):
                return
            for operand in operands(v):
                visit(operand)
            order.append(v)

        for root in roots:
            visit(root)
        return order

    def _store_kernel(self, value: Value, pending: list[Value]) -> None:
        while True:
            self._require(value)
            if value in self.plan.stored:
                return
            try:
                kernel = self._place([value])
                break
            except Materialise as need:
                if need.value is value or need.value in self.plan.stored:
                    raise Unalignable(f"{value.node or value.name} does not fit one kernel") from None
                self.store(need.value, pending)
        for other in pending:
            if other not in self.plan.stored and other is not value and self._joins(kernel, other):
                try:
                    kernel = self._place([v for v, _ in kernel.stores] + [other])
                except Materialise:
                    continue
        self._append(kernel, [v for v, _ in kernel.stores])

    def _store_partial(self, value: Value) -> None:
        """A split reduction's buffer: the kernel of the reduction itself, each program taking one chunk."""
        op = value.op
        assert isinstance(op, Partial)
        whole = Value(Reduce(op.kind, op.operand, op.dims), value.shape[1:], value.dtype, value.name)
        while True:
            self._require(whole)
            try:
                kernel = self._place([whole])
                break
            except Materialise as need:
                self.store(need.value, [])
        if len(kernel.reduces) > 1:
            self.store(op.operand, [])
            kernel = self._place([whole])
        kernel.partial = value
        self._append(kernel, [value])

    def _joins(self, kernel: Kernel, other: Value) -> bool:
        """Whether storing ``other`` too saves reading something twice and needs nothing not stored yet."""
        if (
            isinstance(other.op, TorchCall | Matmul | Partial)
            or other in self.roots_of
            or kernel.partial is not None
            or _on_host(other, self.roots_of)
        ):
            return False
        before = list(self.plan.stored)
        tree = self.tree([other])
        for v in tree:
            if any(isinstance(o.op, TorchCall | Matmul | Partial) and o not in before for o in operands(v)):
                return False
        return bool(set(kernel.leaves) & {o for v in tree for o in operands(v) if o in self.plan.stored})

    # -- placing values in a domain -----------------------------------------------------------------------------

    def _place(self, roots: list[Value]) -> Kernel:
        domain = Domain()
        for _ in range(50):
            try:
                return self._place_in(roots, domain)
            except Refined:
                continue
        raise Unalignable("the domain did not settle")

    def _place_in(self, roots: list[Value], domain: Domain) -> Kernel:
        tree = self.tree(roots)
        kernel = Kernel(domain)
        kernel.reduces = [v for v in tree if isinstance(v.op, Reduce)]
        if kernel.reduces:
            self._place_reduction(kernel, tree, roots)
        else:
            if not domain.size:
                index = tuple(domain.atom("i", n, reduced=False) for n in roots[0].shape)
                domain.origin = index
            index = domain.origin
            for root in roots:
                if len(root.shape) != len(roots[0].shape) or any(
                    not same(a, b) for a, b in zip(root.shape, roots[0].shape, strict=True)
                ):
                    raise Materialise(root)
                kernel.stores.append((root, index))
        self._trace(kernel)
        return kernel

    def _place_reduction(self, kernel: Kernel, tree: list[Value], roots: list[Value]) -> None:
        domain, anchor = kernel.domain, kernel.reduces[0]
        op = anchor.op
        assert isinstance(op, Reduce)
        if not domain.size:
            domain.origin = tuple(
                domain.atom("r" if i in op.dims else "k", n, reduced=i in op.dims)
                for i, n in enumerate(op.operand.shape)
            )
        kernel.operand_index, kernel.operand_shape = domain.origin, op.operand.shape
        reduced = [
            (e, n) for i, (e, n) in enumerate(zip(kernel.operand_index, op.operand.shape, strict=True)) if i in op.dims
        ]
        placed = kernel.placed
        for v in tree:
            if v is anchor:
                placed[v] = tuple(ZERO if i in op.dims else e for i, e in enumerate(kernel.operand_index))
            elif isinstance(v.op, Reduce):
                placed[v] = self._place_other(kernel, v, anchor, reduced)
            elif any(o in placed for o in operands(v)):
                placed[v] = self._place_after(v, placed, reduced, domain)
        for root in roots:
            if root in placed:
                kernel.stores.append((root, placed[root]))
            elif len(root.shape) == len(op.operand.shape) and all(
                same(a, b) for a, b in zip(root.shape, op.operand.shape, strict=True)
            ):
                kernel.stores.append((root, kernel.operand_index))
            else:
                raise Materialise(root)

    def _place_other(
        self, kernel: Kernel, v: Value, anchor: Value, reduced: list[tuple[sympy.Expr, sympy.Expr]]
    ) -> Index:
        """The index of another reduction, if it runs over the same domain as the anchor."""
        op, first = v.op, anchor.op
        assert isinstance(op, Reduce) and isinstance(first, Reduce)
        depends = op.operand in kernel.placed
        fits = op.dims == first.dims and len(op.operand.shape) == len(first.operand.shape)
        fits = fits and all(same(a, b) for a, b in zip(op.operand.shape, first.operand.shape, strict=True))
        if depends:
            index = kernel.placed[op.operand]
            covered = [kernel.domain.resolve(index[d]) for d in op.dims if op.operand.shape[d] != ONE]
            wanted = [kernel.domain.resolve(e) for e, n in reduced if n != ONE]
            kept = [kernel.domain.resolve(e) for d, e in enumerate(index) if d not in op.dims]
            inside = set(kernel.domain.reduced)
            if covered == wanted and not any(e.free_symbols & inside for e in kept):
                return tuple(ZERO if d in op.dims else e for d, e in enumerate(index))
            raise Materialise(op.operand)
        if fits:
            return tuple(ZERO if d in op.dims else e for d, e in enumerate(kernel.operand_index))
        raise Materialise(v)

    def _place_after(
        self, v: Value, placed: dict[Value, Index], reduced: list[tuple[sympy.Expr, sympy.Expr]], domain: Domain
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
            return self._filled(v, result, source, reduced, domain)
        if isinstance(op, View):
            if op.kind == "permute":
                return tuple(index[d] for d in op.detail)
            if op.kind == "unsqueeze":
                return (*index[: op.detail[0]], ZERO, *index[op.detail[0] :])
            if op.kind == "squeeze":
                return tuple(e for d, e in enumerate(index) if d not in op.detail)
            if op.kind == "reshape":
                try:
                    return reshape(index, source.shape, v.shape, domain)
                except Unalignable:
                    raise Materialise(source) from None
            if op.kind == "expand":
                shift = len(v.shape) - len(source.shape)
                wide: list[sympy.Expr | None] = [None] * shift + [
                    None if source.shape[d] == ONE else e for d, e in enumerate(index)
                ]
                return self._filled(v, wide, source, reduced, domain)
        raise Materialise(source)

    def _filled(
        self,
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

    # -- checking that every access is linear ---------------------------------------------------------------------

    def _trace(self, kernel: Kernel) -> None:
        """Walk every access once. Raises Refined (an atom was split) or Materialise (an access is not linear)."""
        seen: set[tuple[Value, Index]] = set()
        leaves: dict[Value, None] = {}

        def visit(v: Value, index: Index) -> None:
            index = tuple(kernel.domain.resolve(e) for e in index)
            if (v, index) in seen:
                return
            seen.add((v, index))
            leaf = reshaped_leaf(v, self.plan.stored)
            if leaf is not None:
                for e in index:
                    kernel.domain.terms(e)
                leaves[leaf] = None
                kernel.accesses.append((leaf, index, v.shape))
                return
            if isinstance(v.op, Reduce):
                if v not in kernel.placed or tuple(kernel.domain.resolve(e) for e in kernel.placed[v]) != index:
                    raise Materialise(v)
                return
            try:
                pairs = operand_indices(v, index, kernel.domain)
                if isinstance(v.op, Gather):
                    pairs.append((v.op.table, gather_table(v, index, GATHERED)))
                for _, i in pairs:
                    for e in i:
                        kernel.domain.terms(e)
            except Unalignable:
                raise Materialise(operands(v)[0]) from None
            for o, i in pairs:
                visit(o, i)

        for v in kernel.reduces:
            op = v.op
            assert isinstance(op, Reduce)
            index = kernel.placed[v]
            if op.operand in kernel.placed:
                visit(op.operand, kernel.placed[op.operand])
            else:
                visit(op.operand, reduce_operand_index(kernel, v, index))
        for v, index in kernel.stores:
            visit(v, index)
        kernel.leaves = list(leaves)

    # -- matrix products -------------------------------------------------------------------------------------------

    def _store_matmul(self, root: Value, product: Value) -> None:
        op = product.op
        assert isinstance(op, Matmul)
        for operand in (op.left, op.right):
            self._prepare(operand)
        while True:
            tree = [v for v in self._epilogue_tree(root, product)]
            for v in tree:
                for o in operands(v):
                    if o not in self.plan.stored and o not in tree and o is not product:
                        self.store(o, [])
            domain = Domain()
            index = tuple(domain.atom("i", n, reduced=False) for n in root.shape)
            kernel = Kernel(domain, stores=[(root, index)], matmul=product)
            kernel.placed[product] = index
            try:
                self._trace_product(kernel)
                break
            except Materialise as need:
                self.store(need.value, [])
        self._append(kernel, [root])

    def _epilogue_tree(self, root: Value, product: Value) -> list[Value]:
        """Values between the product and the root, and cheap operands that are computed on the way."""
        order: list[Value] = []
        seen: set[Value] = {product}

        def visit(v: Value) -> None:
            if (
                v in seen
                or v in self.plan.stored
                or isinstance(v.op, TorchCall | Matmul | Partial | Reduce)
                or (v in self.roots_of and v is not root)
                or v in self.forced
            ):
                return
            seen.add(v)
            for o in operands(v):
                visit(o)
            order.append(v)

        if root is not product:
            visit(root)
        return order

    def _trace_product(self, kernel: Kernel) -> None:
        """Check the epilogue's accesses; the operands' own are checked where the kernel is written."""
        product = kernel.matmul
        assert product is not None
        seen: dict[Value, None] = {}

        def visit(v: Value, index: Index) -> None:
            if v is product:
                if index != kernel.placed[product]:
                    raise Unalignable("an epilogue that moves elements")
                return
            leaf = reshaped_leaf(v, self.plan.stored)
            if leaf is not None:
                for e in index:
                    kernel.domain.terms(e)
                seen[leaf] = None
                return
            try:
                pairs = operand_indices(v, index, kernel.domain)
                if isinstance(v.op, Gather):
                    pairs.append((v.op.table, gather_table(v, index, GATHERED)))
            except (Unalignable, Refined):
                raise Materialise(operands(v)[0]) from None
            for o, i in pairs:
                visit(o, i)

        for v, index in kernel.stores:
            visit(v, index)
        kernel.leaves = list(seen)

    def _prepare(self, operand: Value) -> None:
        """Store a product's operand unless it is cheap to compute while loading (views, casts, simple arithmetic)."""
        base = operand
        while isinstance(base.op, View) and base not in self.plan.stored:
            base = base.op.operand
        if base not in self.plan.stored and not cheap_prologue(base, self.plan.stored):
            self.store(base, [])
        if not self._addressable(operand, base):
            self.store(operand, [])

    def _addressable(self, operand: Value, base: Value) -> bool:
        """Whether the views from ``base`` to ``operand`` keep every index linear without splitting one."""
        domain = Domain()
        index: Index = tuple(domain.atom("i", n, reduced=False) for n in operand.shape)
        v = operand
        try:
            while v is not base:
                if reshaped_leaf(v, self.plan.stored) is not None:
                    return True
                index = view_index(v, index, domain)
                for e in index:
                    domain.terms(e)
                v = v.op.operand  # type: ignore[attr-defined]
        except (Unalignable, Refined):
            return False
        return True


def reduce_operand_index(kernel: Kernel, v: Value, index: Index) -> Index:
    """Where reduction ``v`` addresses its operand."""
    op = v.op
    assert isinstance(op, Reduce)
    if op.operand in kernel.placed:
        return kernel.placed[op.operand]
    return tuple(kernel.operand_index[d] if d in op.dims else e for d, e in enumerate(index))


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
        if not isinstance(v.op, Pointwise) or v.op.function not in _CHEAP:
            return False
        stack.extend(operands(v))
    return len(large) == 1


def _on_host(value: Value, products: dict[Value, Value]) -> bool:
    """Whether a stored value is better a view that torch takes of another one than a kernel's own store.

    ``products``: the values that complete a matrix product.
    """
    op = value.op
    if not isinstance(op, View) or op.kind not in ("permute", "reshape", "unsqueeze", "squeeze", "expand"):
        return False
    base = op.operand
    while isinstance(base.op, View):
        base = base.op.operand
    if (
        op.kind in ("squeeze", "unsqueeze")
        and not isinstance(base.op, Matmul | TorchCall | Partial)
        and base not in products
    ):
        return False  # the kernel stores the final shape itself
    if op.kind != "reshape":
        return True
    below = op.operand
    while isinstance(below.op, View):
        if below.op.kind not in ("reshape", "unsqueeze", "squeeze"):
            return False  # reshaping a permuted view copies; let the kernel write the final layout
        below = below.op.operand
    return True


def _epilogues(graph: Graph) -> dict[Value, Value]:
    """For each product, the last value up to which everything that follows it is elementwise and only leads there."""
    order = topological(graph.outputs)
    users: dict[Value, list[Value]] = {}
    for v in order:
        for o in dict.fromkeys(operands(v)):
            users.setdefault(o, []).append(v)
    result: dict[Value, Value] = {}
    for product in order:
        if not isinstance(product.op, Matmul):
            continue
        inside, cut = {product}, product
        for v in order[order.index(product) + 1 :]:
            if any(o in graph.outputs for o in inside if o is not cut) or cut in graph.outputs:
                break
            if not any(o in inside for o in operands(v)):
                continue
            fits = isinstance(v.op, Pointwise) and len(v.shape) == len(product.shape)
            fits = fits and all(same(a, b) for a, b in zip(v.shape, product.shape, strict=True))
            if not fits or any(
                isinstance(w.op, Matmul | Partial | Reduce | TorchCall)
                for o in operands(v)
                if o not in inside
                for w in topological([o])
            ):
                break
            inside.add(v)
            if all(u in inside for o in inside - {v} for u in users.get(o, [])):
                cut = v
        result[cut] = product
    return result


def rows_and_length(kernel: Kernel, hints: Hints) -> tuple[int, int]:
    """How many results a reduction kernel has and how many elements each reduces, for the example inputs."""
    rows = length = 1
    for atom in kernel.domain.kept:
        rows *= hint(kernel.domain.size[atom], hints)
    for atom in kernel.domain.reduced:
        length *= hint(kernel.domain.size[atom], hints)
    return rows, length
