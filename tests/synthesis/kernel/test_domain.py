"""A reshape moves indices exactly as torch does, whatever atoms it has to split."""

from __future__ import annotations

import itertools
import math

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.synthesis.graph import maps
from kernel_lsp.synthesis.graph.sizes import Index, offset, quotient
from kernel_lsp.synthesis.kernel.domain import Domain, Refined, Unalignable

BATCH = sympy.Symbol("batch", integer=True, positive=True)
Sizes = tuple[sympy.Expr, ...]


@st.composite
def grouped(draw: st.DrawFn, factors: list[sympy.Expr]) -> Sizes:
    """``factors`` multiplied together in runs, with dimensions of size one in between."""
    sizes: list[sympy.Expr] = []
    for factor in factors:
        if sizes and draw(st.booleans()):
            sizes[-1] = sizes[-1] * factor
        else:
            sizes += [sympy.Integer(1)] * draw(st.integers(0, 1)) + [factor]
    return tuple(sizes)


@st.composite
def regrouped(draw: st.DrawFn) -> tuple[Sizes, Sizes]:
    """Two shapes that merging and splitting dimensions leads between; one dimension may be dynamic."""
    factors: list[sympy.Expr] = [sympy.Integer(n) for n in draw(st.lists(st.integers(2, 4), min_size=1, max_size=4))]
    if draw(st.booleans()):
        factors[draw(st.integers(0, len(factors) - 1))] = BATCH
    return draw(grouped(factors)), draw(grouped(factors))


def settled(a: Sizes, b: Sizes) -> tuple[Domain, Index, Index]:
    """The domain after every split, and the index into both shapes."""
    domain = Domain()
    index = tuple(domain.atom("i", n, reduced=False) for n in a)
    for _ in range(20):
        try:
            return domain, index, domain.at(maps.reshape(b, a), tuple(domain.resolve(e) for e in index))
        except Refined:
            continue
    raise AssertionError("splitting does not end")


def check(domain: Domain, index: Index, moved: Index, a: Sizes, b: Sizes, batch: int) -> None:
    """At every point of the domain both indices address the same element of a tensor seen in both shapes."""

    def number(expr: sympy.Expr, point: dict[sympy.Symbol, int]) -> int:
        return int(sympy.sympify(domain.resolve(expr)).subs({**point, BATCH: batch}))

    in_a, in_b = ([number(n, {}) for n in shape] for shape in (a, b))
    elements = torch.arange(math.prod(in_a))
    seen = set()
    sizes = [number(domain.size[atom], {}) for atom in domain.kept]
    for place in itertools.product(*(range(n) for n in sizes)):
        point = dict(zip(domain.kept, place, strict=True))
        at_a, at_b = (tuple(number(e, point) for e in i) for i in (index, moved))
        assert all(0 <= i < n for i, n in zip(at_b, in_b, strict=True)), (at_b, in_b)
        assert elements.reshape(in_b)[at_b] == elements.reshape(in_a)[at_a]
        assert number(offset(moved, b), point) == elements.reshape(in_a)[at_a]
        seen.add(at_b)
    assert len(seen) == len(elements), "the domain's points do not cover the tensor"


@settings(max_examples=40, deadline=None)
@given(shapes=regrouped(), batch=st.integers(1, 3))
def test_a_reshape_that_merges_and_splits(shapes: tuple[Sizes, Sizes], batch: int) -> None:
    a, b = shapes
    domain, index, moved = settled(a, b)
    for e in moved:
        domain.linear(e)
    check(domain, index, moved, a, b, batch)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_any_reshape_is_right(sizes: list[int], random: object) -> None:
    a = tuple(sympy.Integer(n) for n in sizes)
    total = math.prod(sizes)
    divisor = random.choice([d for d in range(1, total + 1) if total % d == 0])  # type: ignore[attr-defined]
    b = (sympy.Integer(divisor), sympy.Integer(total // divisor))
    domain, index, moved = settled(a, b)
    check(domain, index, moved, a, b, 1)


def test_a_cut_atom_is_split_into_outer_and_inner() -> None:
    domain, index, moved = settled((sympy.Integer(12),), (sympy.Integer(3), sympy.Integer(4)))
    assert [domain.size[atom] for atom in domain.kept] == [3, 4]
    assert domain.resolve(index[0]) == 4 * domain.kept[0] + domain.kept[1]
    assert moved == tuple(domain.kept)


def test_what_has_no_linear_index_is_no_place_to_store_at() -> None:
    domain, _, moved = settled((sympy.Integer(2), sympy.Integer(3)), (sympy.Integer(3), sympy.Integer(2)))
    with pytest.raises(Unalignable):
        domain.linear(moved[0])
    coefficients, rest = domain.terms(moved[0])
    assert not coefficients and rest == moved[0]


def test_a_quotient_is_an_integer_for_every_size_or_none() -> None:
    assert quotient(12 * BATCH, sympy.Integer(4)) == 3 * BATCH
    assert quotient(BATCH, sympy.Integer(4)) is None
    assert quotient(BATCH * (BATCH + 1), BATCH) == BATCH + 1
