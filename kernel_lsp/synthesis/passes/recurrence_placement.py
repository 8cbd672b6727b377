"""Placing a recurrence in a kernel: its states over kept atoms, its steps and what its products sum over reduced ones."""

from __future__ import annotations

import sympy

from ..graph.loops import (
    after,
    at_step,
    begins_with_zeros,
    contracted,
    of_member,
    place_in,
    reads_back,
    results,
    traced,
)
from ..graph.sizes import Index
from ..graph.value import Below, Contract, Held, Recur, Recurrence, Value
from ..kernel.domain import Domain, Refined, Unalignable
from ..kernel.execution_plan import Kernel, Looped
from .accesses import accessed, leaf_accessed


def results_of(loop: Recurrence, wanted: list[Value]) -> list[Value]:
    """What a kernel stores: ``wanted``, and every step of a state that the next step multiplies, which it reads there."""
    found = [v for v in wanted if isinstance(v.op, Recur) and v.op.loop is loop]
    for state in contracted(loop):
        place = traced(loop, state)
        if not any(isinstance(v.op, Recur) and reads_back(v.op, place) for v in found):
            found.append(_trace_of(loop, place))
    return sorted(found, key=lambda v: not (isinstance(v.op, Recur) and v.op.each))


def _trace_of(loop: Recurrence, state: int) -> Value:
    begun = not begins_with_zeros(loop, state)
    return results(loop, state, loop.first[state].dtype, loop.held[state].name, each=True, begun=begun)


def place_recurrence(results: list[Value], stored: set[Value]) -> Kernel:
    """A kernel that goes through the steps of a recurrence.

    Raises:
        Materialise, Unalignable: as ``index_assignment.place``.
    """
    first = results[0].op
    assert isinstance(first, Recur)
    loop, domain = first.loop, Domain()
    shape = loop.held[0].shape
    member = None if loop.members is None else domain.atom("m", sympy.Integer(loop.members), reduced=False)
    state = tuple(domain.atom("i", n, reduced=False) for n in shape)
    step = domain.atom("t", loop.steps, reduced=True)
    domain.origin = (*state, step)
    summed = {held: domain.atom("r", held.shape[d], reduced=True) for held, d in contracted(loop).items()}
    following = at_step(loop, step, member)
    for _ in range(50):
        index = tuple(domain.resolve(e) for e in state)
        looped = Looped(loop, step, member, following, summed)
        kernel = Kernel(domain, loop=looped)
        for v in results:
            op = v.op
            assert isinstance(op, Recur)
            kernel.stores.append((v, looped.at(*(place_in(op, after(loop, step), index) if op.each else index))))
        try:
            _trace(kernel, index, stored)
        except Refined:
            continue
        return kernel
    raise Unalignable("the domain did not settle")


def _trace(kernel: Kernel, state: Index, stored: set[Value]) -> None:
    """Walk every access of the body and of the states that it begins with; notes where its products are needed."""
    looped = kernel.loop
    assert looped is not None
    seen: set[tuple[Value, Index]] = set()

    def visit(v: Value, index: Index, near: Value | None) -> None:
        index = tuple(kernel.domain.resolve(e) for e in index)
        if (v, index) in seen:
            return
        seen.add((v, index))
        if leaf_accessed(kernel, v, index, stored):
            return
        if isinstance(v.op, Held | Below):
            return
        if isinstance(v.op, Contract):
            at = dict(zip(v.op.axes, index, strict=True)) | {v.op.summed: looped.summed[v.op.left]}
            looped.products.append((v, index, near))
            visit(v.op.right, tuple(at[letter] for letter in v.op.right_axes), near)
            return
        for o, i in accessed(kernel, v, index):
            visit(o, i, v if v.name else near)

    for value in (*(of_member(v, looped.member) for v in looped.loop.first), *looped.next):
        visit(value, state, None)
    rows = [_row(product, index, state) for product, index, _ in looped.products]
    if None not in rows:
        order = sorted(range(len(rows)), key=lambda i: rows[i] or 0)
        looped.products = [looped.products[i] for i in order]


def _row(product: Value, index: Index, state: Index) -> int | None:
    """By how many rows of the weight a product is moved from the state's own index; None where that is no number."""
    op = product.op
    assert isinstance(op, Contract)
    place = op.axes.index(op.right_axes[0])
    moved = sympy.expand(index[place] - state[place]) if len(index) == len(state) else None
    return int(moved) if moved is not None and moved.is_Integer else None
