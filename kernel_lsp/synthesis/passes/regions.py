"""Which values share a kernel: one pass over memory for as many neighbouring operations as possible.

A plan is a list of steps in execution order: kernels, torch calls and views taken on the host. A kernel has a
domain (``domain.Domain``), the values it stores with the index of each in that domain, and the reductions it
carries out with theirs. What cannot be expressed in one domain is materialised, and planning starts again with
that value as an input.
"""

from __future__ import annotations

from collections.abc import Callable

from ..graph.loops import made_of_numbers
from ..graph.lowered import Graph
from ..graph.order import Order, order_of
from ..graph.value import (
    Concat,
    Contract,
    Partial,
    Peak,
    Recur,
    Reduce,
    Scan,
    TorchCall,
    Value,
    View,
    operands,
    viewed,
)
from ..kernel.domain import Unalignable
from ..kernel.execution_plan import Call, HostView, Kernel, Materialise, Plan, Step
from ..kernel.reads import multiplied
from .chains import between, moved
from .concatenation_steps import store_in_products, store_piece_by_piece
from .cuts import is_cut
from .fusion import epilogues
from .host_views import APART, filled, on_host
from .index_assignment import place
from .product_steps import Unchained, store_product
from .recomputing import in_several, repeated
from .recurrence_placement import place_recurrence, results_of
from .tile_parts import PIXELS, by_phases, of_a_tile, partials_of, root_of


def plan(
    graph: Graph,
    stored: set[Value] | None = None,
    chained: dict[Value, Value] | None = None,
    folding: Callable[[Kernel], bool] | None = None,
) -> Plan:
    """Steps that compute the graph's outputs.

    ``stored``: values that are stored before a kernel reads them, though it could compute them itself. ``chained``: products to be computed
    with the one before (``chains.py``), of which those are left out that fit no kernel. ``folding``: whether a product's kernel that
    reduces its rows or columns, and computes what follows, is to do so; None: none is.

    Raises:
        Unalignable: an access fits no kernel.
    """
    chained = {} if chained is None else chained
    order = order_of(graph.outputs)
    inside = {v: first for second, first in chained.items() for v in between(first, _left(second), order)}
    plain, forced = _as_cut(graph, order, epilogues(graph, order, between=inside)), set(stored or ())
    completes = dict(plain)
    if folding is not None:
        further = epilogues(graph, order, folded=True, between=inside)
        completes = _reduced_too(order, plain, further, {*chained, *chained.values()})
    forced |= {v.op.start for v in order.values if isinstance(v.op, Scan) and v.op.start is not None}
    within = {v for root, product in plain.items() for v in _from(order, product, root)}
    forced |= repeated(order, graph.hints, lambda v: v in completes or v in forced, within | inside.keys())
    for _ in range(200):
        taken = moved(graph, completes, chained) if chained else completes
        attempt = Planner(graph, order, taken, forced, chained, plain, folding)
        try:
            shared = attempt.run()
        except Unchained as found:
            del chained[found.product]
            continue
        if not shared:
            return attempt.plan
        forced |= shared
    raise Unalignable("planning did not settle")


def _reduced_too(
    order: Order, plain: dict[Value, Value], further: dict[Value, Value], apart: set[Value]
) -> dict[Value, Value]:
    """``plain``, but for products that are not ``apart`` with what reductions over rows or columns complete, as ``further`` has it."""
    reduced = {
        product: root
        for root, product in further.items()
        if product not in apart
        and order.above[root] & order.folds & ~order.above[product]
        and not any(other is not product and _between(order, product, end, root) for end, other in plain.items())
    }
    return {reduced.get(product, root): product for root, product in plain.items()}


def _left(product: Value) -> Value:
    assert isinstance(product.op, Contract)
    return product.op.left


def _as_cut(graph: Graph, order: Order, ends: dict[Value, Value]) -> dict[Value, Value]:
    """``ends``, but for products of which a view of the same order is all that is read, and of that the beginning: they end with that view."""

    def end(root: Value) -> Value:
        users = order.users.get(root, [])
        view = users[0] if len(users) == 1 and root not in graph.outputs else root
        follows = view is not root and isinstance(view.op, View) and view.op.map.keeps_order
        cuts = order.users.get(view, [])
        return view if follows and view not in graph.outputs and len(cuts) == 1 and is_cut(cuts[0]) else root

    return {end(root): product for root, product in ends.items()}


def _between(order: Order, first: Value, value: Value, last: Value) -> bool:
    """Whether ``value`` is computed from ``first``, and ``last`` from ``value``."""
    return bool(order.above[value] & order.bit(first) and order.above[last] & order.bit(value))


def _from(order: Order, first: Value, last: Value) -> set[Value]:
    """The values between ``first`` and ``last`` that are computed from ``first``."""
    found: set[Value] = set()
    waiting = [last]
    while waiting:
        new = [o for o in operands(waiting.pop()) if order.above[o] & order.bit(first) and o is not first]
        waiting += [o for o in new if o not in found]
        found.update(new)
    return found


class Planner:
    """One attempt at a plan: what is stored so far, and the steps to it.

    Products have their part in ``product_steps.py``, concatenations in ``concatenation_steps.py``.
    """

    def __init__(
        self,
        graph: Graph,
        order: Order,
        completes: dict[Value, Value],
        forced: set[Value],
        chained: dict[Value, Value],
        plain: dict[Value, Value],
        folding: Callable[[Kernel], bool] | None,
    ) -> None:
        self.graph, self.order, self.forced, self.chained = graph, order, forced, chained
        self.completes = completes  # stored value → the matmul it completes
        self.plain = {product: root for root, product in plain.items()}  # what completes a matmul without reductions
        self.folding = folding
        self.plan = Plan(stored=set(graph.inputs))
        self.viewed: set[Value] = set()  # the views that torch takes
        self.busy: list[Value] = []
        self.computed: list[tuple[Kernel, list[Value]]] = []  # what each kernel without a product computes itself
        self.multiplied: list[tuple[Kernel, list[Value]]] = []  # what each product's kernel reads for its operands
        self.peaks: dict[Value, list[Value]] = {}
        for v in order.values:
            if isinstance(v.op, Peak):
                self.peaks.setdefault(v.op.rounded, []).append(v)

    def run(self) -> set[Value]:
        """Plan everything; returns values to be stored next time before a kernel reads them.

        They have reductions inside that two kernels computed, or a product's kernel computes them and a later step stores them, or
        they cost more than a store and the loads in several kernels.
        """
        again: set[Value] = set()
        computed_in: dict[Value, Kernel] = {}
        pending = [v for v in self.graph.outputs if v not in self.plan.stored]
        for root in pending:
            self.store(root, pending, viewed=True)
        for step in self.plan.steps:
            if not isinstance(step, Kernel) or step.contract is not None:
                continue
            for value in step.folds:
                other = computed_in.setdefault(value, step)
                if other is not step and value not in self.forced:
                    again.add(value)
        for kernel, before in self.multiplied:
            again.update(v for v in multiplied(kernel, self.plan.stored) if v not in before and v not in self.forced)
        if not again:
            again = in_several(self.order, self.graph.hints, self.computed, self.plan.stored | self.forced)
        return again

    # -- storing one value ------------------------------------------------------------------------------------

    def store(self, value: Value, pending: list[Value], *, viewed: bool = False) -> None:
        """Plan what computes ``value``. ``viewed``: torch reads it, so a view of something stored will do.

        Raises:
            Unalignable: no kernel can be planned for it, or it depends on itself.
        """
        if value in self.plan.stored or (viewed and value in self.viewed):
            return
        if value in self.busy:
            raise Unalignable("a value depends on itself")
        self.busy.append(value)
        try:
            if isinstance(value.op, TorchCall):
                self._store_call(value)
            elif viewed and value not in self.completes and on_host(value, self.completes):
                (operand,) = operands(value)
                self.store(operand, pending, viewed=True)
                self.append(
                    HostView(value), []
                )  # kernels read what it views: its own elements may lie in another order
                self.viewed.add(value)
            elif isinstance(value.op, Partial):
                root = root_of(value)
                if value in partials_of(self.order, root) and root in self.completes and root not in self.plan.stored:
                    self.store(root, [])
                if value not in self.plan.stored:
                    self._store_partial(value)
            elif isinstance(value.op, Recur):
                self._store_recurrence(value)
            elif value in self.completes:
                store_product(self, value, self.completes[value])
            elif is_cut(value) and self._only_read_by(value) and (whole := operands(value)[0]) in self.completes:
                store_product(self, whole, self.completes[whole], value)
            elif isinstance(value.op, Concat) and store_piece_by_piece(self, value):
                pass
            else:
                self._store_kernel(value, pending)
        finally:
            self.busy.pop()

    def _only_read_by(self, view: Value) -> bool:
        """Whether nothing but ``view`` needs what it views, and that is not stored."""
        (whole,) = operands(view)
        unread = whole not in self.graph.outputs and whole not in self.plan.stored
        return unread and sum(not by_phases(v) for v in self.order.users[whole]) == 1

    def append(self, step: Step, values: list[Value]) -> None:
        """Plan ``step``, which stores ``values``."""
        if isinstance(step, Kernel) and step.contract is not None:
            self.multiplied.append((step, multiplied(step, self.plan.stored)))
        elif isinstance(step, Kernel):
            self.computed.append((step, self.tree([v for v, _ in step.stores])))
        self.plan.steps.append(step)
        self.plan.stored.update(values)

    def _store_call(self, value: Value) -> None:
        for operand in operands(value):
            self.store(operand, [], viewed=not filled(operand))
        assert isinstance(value.op, TorchCall)
        call = value.op.call or value.op
        siblings = [v for v in self.order.values if isinstance(v.op, TorchCall) and (v.op.call or v.op) is call]
        self.append(Call(siblings), siblings)

    def require(self, value: Value) -> None:
        """Store what a kernel for ``value`` cannot compute itself: torch calls, products, forced values."""
        for v in self.tree([value]):
            if v in self.plan.stored:  # for what came before it
                continue
            if v is not value and store_in_products(self, v):
                continue
            for operand in operands(v):
                if operand in self.plan.stored:
                    continue
                if isinstance(operand.op, APART) or operand in self.completes or operand in self.forced:
                    self.store(operand, [])

    def tree(self, roots: list[Value]) -> list[Value]:
        """What a kernel with these roots computes itself, operands first."""
        order: list[Value] = []
        seen: set[Value] = set()

        def visit(v: Value) -> None:
            if v in seen or v in self.plan.stored:
                return
            seen.add(v)
            if v not in roots and (isinstance(v.op, APART) or v in self.completes or v in self.forced):
                return
            for operand in operands(v):
                visit(operand)
            order.append(v)

        for root in roots:
            visit(root)
        return order

    def _store_kernel(self, value: Value, pending: list[Value]) -> None:
        while True:
            self.require(value)
            if value in self.plan.stored:
                return
            try:
                kernel = self.place([value])
            except Materialise as need:
                if need.value is value or need.value in self.plan.stored:
                    raise Unalignable(f"{value.node or value.name} does not fit one kernel") from None
                self.store(need.value, pending)
                continue
            if not (kernel.folds and self._noted(kernel)):
                break
            # An elementwise kernel rounds it, and notes its range.
            self.store(_before_rounding(self.peaks[value][0]), pending)
        for other in pending:
            if other not in self.plan.stored and other is not value and self._joins(kernel, other):
                try:
                    joined = self.place([v for v, _ in kernel.stores] + [other])
                except Materialise:
                    continue
                if not (joined.folds and self._noted(joined)):
                    kernel = joined
        kernel.peaks = self._noted(kernel)
        self.append(kernel, kernel.outputs)

    def _noted(self, kernel: Kernel) -> list[Value]:
        """The peaks of what it stores."""
        return [p for v, _ in kernel.stores for p in self.peaks.get(v, [])]

    def _store_partial(self, value: Value) -> None:
        """The buffers of split reductions of the same elements: the kernel of the reductions, each program taking one chunk."""
        op = value.op
        assert isinstance(op, Partial)
        if op.length == PIXELS:
            together = partials_of(self.order, root_of(value))
            wholes, _ = of_a_tile(together)
        else:
            together = [v for v in self.order.values if isinstance(v.op, Partial) and _same_chunks(v.op, op)]
            wholes = [_whole(v) for v in together]
        kernel = self.placed(wholes)
        if len(kernel.folds) > len(wholes):
            self.store(op.operand, [])
            kernel = self.place(wholes)
        kernel.partials = together
        self.append(kernel, together)

    def _store_recurrence(self, value: Value) -> None:
        """All results of a recurrence that are needed, in one kernel."""
        assert isinstance(value.op, Recur)
        loop = value.op.loop
        for operand in (*loop.first, *loop.given):
            if not made_of_numbers(operand):
                base = operand
                while isinstance(base.op, View) and base not in self.plan.stored:
                    base = base.op.operand
                self.store(base, [])
        results = results_of(loop, self.order.values)
        while True:
            try:
                kernel = place_recurrence(results, self.plan.stored)
                break
            except Materialise as need:
                self.store(need.value, [])
        self.append(kernel, results)

    def place(self, roots: list[Value]) -> Kernel:
        """A kernel that stores ``roots`` and computes itself what is not stored yet.

        Raises:
            Materialise: something has to be stored before.
        """
        return place(roots, self.tree(roots), self.plan.stored)

    def placed(self, roots: list[Value]) -> Kernel:
        """The same after what has to be stored before is stored.

        Raises:
            Unalignable: that fits no kernel.
        """
        while True:
            for root in roots:
                self.require(root)
            try:
                return self.place(roots)
            except Materialise as need:
                self.store(need.value, [])

    def _joins(self, kernel: Kernel, other: Value) -> bool:
        """Whether storing ``other`` too saves reading something twice and needs nothing not stored yet."""
        if isinstance(other.op, APART) or other in self.completes or kernel.partials or on_host(other, self.completes):
            return False
        before = list(self.plan.stored)
        tree = self.tree([other])
        for v in tree:
            if any(isinstance(o.op, APART) and o not in before for o in operands(v)):
                return False
        return bool(set(kernel.leaves) & {o for v in tree for o in operands(v) if o in self.plan.stored})


def _same_chunks(a: Partial, b: Partial) -> bool:
    return a.operand is b.operand and a.dims == b.dims and a.length == b.length


def _before_rounding(peak: Value) -> Value:
    """What is rounded, to one tensor or to planes, beneath the views."""
    assert isinstance(peak.op, Peak)
    return viewed(peak.op.operand)


def _whole(value: Value) -> Value:
    """The reduction of which ``value`` has what each chunk gives."""
    op = value.op
    assert isinstance(op, Partial)
    return Value(Reduce(op.kind, op.operand, op.dims, op.part), value.shape[1:], value.dtype, value.name)
