"""A map addresses the elements that torch's operator addresses, alone, in chains, and in a kernel's domain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import sympy
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils._sympy.functions import FloorDiv

from kernel_lsp.synthesis.graph import maps
from kernel_lsp.synthesis.graph.division import Quotient, Remainder, bounds, nonnegative, simplify
from kernel_lsp.synthesis.graph.map import Map, at, back, compose, dim, guards_at, invert
from kernel_lsp.synthesis.graph.sizes import offset
from kernel_lsp.synthesis.kernel.domain import Domain, Refined

PAD = -1.0
Torch = Callable[[torch.Tensor], torch.Tensor]


def exprs(numbers: Any) -> tuple[sympy.Expr, ...]:
    return tuple(sympy.Integer(n) for n in numbers)


@dataclass
class Step:
    """One view: its map, and what torch does."""

    name: str
    map: Map
    torch: Torch


def number(expr: sympy.Expr, index: tuple[int, ...]) -> int:
    """The expression's value at an index, computed as Triton would: what is divided must not be negative there."""
    values = {dim(i): sympy.Integer(n) for i, n in enumerate(index)}
    for part in expr.atoms(Quotient, Remainder):
        assert part.args[0].xreplace(values) >= 0, (expr, index)
    return int(expr.xreplace(values))


def taken(map: Map, x: torch.Tensor) -> torch.Tensor:
    """The view of ``x``, element by element as the map says."""
    result = torch.full([int(n) for n in map.shape], math.nan)
    for index in itertools.product(*(range(int(n)) for n in map.shape)):
        held = all(low <= number(e, index) < high for e, low, high in map.guard)
        place = tuple(number(e, index) for e in map.index) if held else ()
        assert not held or all(0 <= i < n for i, n in zip(place, x.shape, strict=True)), (index, place)
        assert held or map.pad is not None
        result[index] = x[place] if held else float(map.pad or 0)
    return result


def elements(shape: Any) -> torch.Tensor:
    return torch.arange(float(math.prod(int(n) for n in shape))).reshape([int(n) for n in shape])


@st.composite
def factored(draw: st.DrawFn, total: int) -> list[int]:
    """Sizes whose product is ``total``."""
    sizes = []
    while total > 1 and len(sizes) < 3:
        size = draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
        sizes.append(size)
        total //= size
    return [*sizes, total]


def _margin_step(draw: st.DrawFn, shape: tuple[int, ...], mode: str) -> Step:
    most = {"constant": 2, "reflect": 1, "replicate": 3, "circular": 2}[mode]
    sizes = [min(most, n - (mode == "reflect")) if mode != "constant" else most for n in shape]
    least = -1 if mode == "constant" else 0
    ends = [
        tuple(draw(st.integers(least if n > 2 else 0, size)) for _ in "ab")
        for n, size in zip(shape, sizes, strict=True)
    ]
    if mode == "constant":
        map = maps.pad(exprs(shape), tuple(exprs(e) for e in ends), PAD)
        return Step("pad", map, lambda x: F.pad(x, [n for e in reversed(ends) for n in e], value=PAD))
    ways = {"reflect": maps.reflect, "replicate": maps.replicate, "circular": maps.circular}

    def one_by_one(x: torch.Tensor) -> torch.Tensor:
        for d, e in enumerate(ends):  # torch pads the last dimensions alone
            turned = x.movedim(d, -1)
            wide = F.pad(turned.reshape(1, -1, turned.shape[-1]), e, mode=mode)
            x = wide.reshape(*turned.shape[:-1], -1).movedim(-1, d)
        return x

    return Step(mode, ways[mode](exprs(shape), tuple(exprs(e) for e in ends)), one_by_one)


@st.composite
def step(draw: st.DrawFn, shape: tuple[int, ...], only: tuple[str, ...] = ()) -> Step:
    """A way to view a tensor of ``shape``, which has at least one dimension."""
    names = only or (*TOTAL, *PARTIAL)
    name = draw(st.sampled_from(names))
    s, rank = exprs(shape), len(shape)
    d = draw(st.integers(0, rank - 1))
    n = shape[d]
    if name == "permute":
        order = tuple(draw(st.permutations(range(rank))))
        return Step(name, maps.permute(s, order), lambda x: x.permute(order))
    if name == "reshape":
        sizes = draw(factored(math.prod(shape)))
        return Step(name, maps.reshape(s, exprs(sizes)), lambda x: x.reshape(sizes))
    if name == "unsqueeze":
        return Step(name, maps.unsqueeze(s, d), lambda x: x.unsqueeze(d))
    if name == "squeeze":
        gone = tuple(i for i, size in enumerate(shape) if size == 1)[: rank - 1]
        return Step(name, maps.squeeze(s, gone), lambda x: x.squeeze(gone) if gone else x)
    if name == "flip":
        return Step(name, maps.flip(s, (d,)), lambda x: x.flip(d))
    if name == "roll":
        by = draw(st.integers(-7, 7))
        return Step(name, maps.roll(s, {d: sympy.Integer(by)}), lambda x: x.roll(by, d))
    if name == "channel_shuffle":
        each = draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0]))
        flat = (1, n, -1)
        front = math.prod(shape[:d])
        seen = (front, n, math.prod(shape[d + 1 :]))
        first = maps.reshape(s, exprs(seen))
        both = compose(maps.channel_shuffle(exprs(seen), each), first)
        assert both is not None
        whole = compose(maps.reshape(exprs(seen), s), both)
        assert whole is not None

        def shuffled(x: torch.Tensor) -> torch.Tensor:
            rows = [F.channel_shuffle(row.reshape(flat), each) for row in x.reshape(seen)]
            return torch.stack(rows).reshape(shape)

        return Step(name, whole, shuffled)
    if name == "slice":
        start, by = draw(st.integers(0, n - 1)), draw(st.integers(1, 3))
        size = -(-(n - start) // by)
        map = maps.slice_(s, d, *exprs((start, by, size)))
        return Step(name, map, lambda x: x.narrow(d, start, n - start).movedim(d, 0)[::by].movedim(0, d))
    if name == "select" and rank > 1:
        place = draw(st.integers(0, n - 1))
        return Step(name, maps.select(s, d, sympy.Integer(place)), lambda x: x.select(d, place))
    if name == "expand":
        wide = tuple(draw(st.integers(1, 3)) if size == 1 else size for size in shape)
        return Step(name, maps.expand(s, exprs((2, *wide))), lambda x: x.expand(2, *wide))
    if name == "repeat":
        counts = [draw(st.integers(1, 2)) for _ in range(rank + draw(st.integers(0, 1)))]
        return Step(name, maps.repeat(s, exprs(counts)), lambda x: x.repeat(counts))
    if name == "repeat_interleave":
        count = draw(st.integers(1, 3))
        return Step(name, maps.repeat_interleave(s, d, sympy.Integer(count)), lambda x: x.repeat_interleave(count, d))
    if name == "scaled":
        up = draw(st.integers(1, n * 3))
        shape_ = (*s[:d], sympy.Integer(up), *s[d + 1 :])
        map = maps.scaled(s, shape_, {d: exprs((n, up))})
        return Step(name, map, lambda x: x.index_select(d, torch.arange(up) * n // up))
    if name == "unfold":
        size, by = draw(st.integers(1, n)), draw(st.integers(1, 3))
        return Step(name, maps.unfold(s, d, *exprs((size, by))), lambda x: x.unfold(d, size, by))
    if name == "windows":
        by, dilation, around = (draw(st.integers(low, 2)) for low in (1, 1, 0))
        size = draw(st.integers(1, max(1, (n + 2 * around - 1) // dilation + 1)))
        span = dilation * (size - 1) + 1
        assume(span <= n + 2 * around)
        map = maps.windows(s, (d,), *((sympy.Integer(k),) for k in (size, by, dilation, around)), pad=PAD)

        def cut(x: torch.Tensor) -> torch.Tensor:
            wide = F.pad(x.movedim(d, -1), (around, around), value=PAD).movedim(-1, d)
            return wide.unfold(d, span, by)[..., ::dilation]

        return Step(name, map, cut)
    if name == "diagonal" and rank > 1:
        a, b = draw(st.permutations(range(rank)))[:2]
        shift = draw(st.integers(1 - shape[a], shape[b] - 1))
        size = elements(shape).diagonal(shift, a, b).shape[-1]
        return Step(name, maps.diagonal(s, shift, a, b, sympy.Integer(size)), lambda x: torch.diagonal(x, shift, a, b))
    if name in ("constant", "reflect", "replicate", "circular"):
        return _margin_step(draw, shape, name)
    return Step("flip", maps.flip(s, ()), lambda x: x)


TOTAL = ("permute", "reshape", "unsqueeze", "squeeze", "flip", "roll", "channel_shuffle")
PARTIAL = (
    *("slice", "select", "expand", "repeat", "repeat_interleave", "scaled", "unfold", "windows", "diagonal"),
    *("constant", "reflect", "replicate", "circular"),
)


@st.composite
def chain(draw: st.DrawFn, longest: int, only: tuple[str, ...] = ()) -> tuple[tuple[int, ...], list[Step]]:
    """A shape and views of it, each of the one before."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    steps: list[Step] = []
    seen = shape
    for _ in range(draw(st.integers(1, longest))):
        new = draw(step(seen, only))
        seen = tuple(int(n) for n in new.map.shape)
        assume(seen and 0 < math.prod(seen) <= 400)
        steps.append(new)
    return shape, steps


def composed(steps: list[Step]) -> Map:
    whole: Map | None = steps[0].map
    for one in steps[1:]:
        assert whole is not None
        whole = compose(one.map, whole)
    assert whole is not None
    return whole


def expected(steps: list[Step], x: torch.Tensor) -> torch.Tensor:
    for one in steps:
        x = one.torch(x)
    return x


@pytest.mark.parametrize("name", [*TOTAL, *PARTIAL])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_each_way_is_what_torch_does(name: str, data: st.DataObject) -> None:
    shape, (one,) = data.draw(chain(1, (name,)))
    x = elements(shape)
    assert torch.equal(taken(one.map, x), one.torch(x))


@settings(max_examples=150, deadline=None)
@given(chain(4))
def test_a_composed_map_addresses_what_the_chain_does(views: tuple[tuple[int, ...], list[Step]]) -> None:
    shape, steps = views
    x = elements(shape)
    assert torch.equal(taken(composed(steps), x), expected(steps, x))


@settings(max_examples=60, deadline=None)
@given(chain(3, TOTAL))
def test_the_inverse_after_the_map_is_the_identity(views: tuple[tuple[int, ...], list[Step]]) -> None:
    shape, steps = views
    x = elements(shape)
    whole = composed(steps)
    other = invert(whole)
    assert other is not None
    assert torch.equal(taken(other, expected(steps, x)), x)
    both = compose(other, whole)
    assert both is not None
    assert torch.equal(taken(both, x), x)


@settings(max_examples=60, deadline=None)
@given(chain(3, (*TOTAL, "expand")))
def test_the_way_back_holds_wherever_an_element_is(views: tuple[tuple[int, ...], list[Step]]) -> None:
    _, steps = views
    whole = composed(steps)
    if whole.inverse is None:
        return
    for index in itertools.product(*(range(int(n)) for n in whole.shape)):
        place = exprs(number(e, index) for e in whole.index)
        there = back(whole, place)
        assert all(e is None or int(e) == i for e, i in zip(there, index, strict=True)), (there, index)


@settings(max_examples=100, deadline=None)
@given(chain(3))
def test_what_keeps_the_order_is_a_reshape(views: tuple[tuple[int, ...], list[Step]]) -> None:
    shape, steps = views
    whole = composed(steps)
    x = elements(shape)
    seen = expected(steps, x)
    if whole.keeps_order:
        assert torch.equal(seen.reshape(-1), x.reshape(-1))
    if all(one.name in ("reshape", "squeeze", "unsqueeze") for one in steps):
        assert whole.keeps_order


@settings(max_examples=100, deadline=None)
@given(chain(4))
def test_a_kernels_domain_addresses_the_same_elements(views: tuple[tuple[int, ...], list[Step]]) -> None:
    """Step by step over the domain's atoms, as a kernel does, with the atoms split wherever that helps."""
    shape, steps = views
    x = elements(shape)
    seen = expected(steps, x)
    domain = Domain()
    for _ in range(50):
        try:
            index = domain.origin = domain.origin or tuple(
                domain.atom("i", n, reduced=False) for n in exprs(seen.shape)
            )
            held = []
            for one in reversed(steps):
                held += [(domain.simplify(e), low, high) for e, low, high in guards_at(one.map, index)]
                index = domain.at(one.map, index)
            where = domain.simplify(offset(index, exprs(shape)))
            break
        except Refined:
            continue
    for place in itertools.product(*(range(int(domain.size[a])) for a in domain.kept)):
        point = dict(zip(domain.kept, exprs(place), strict=True))
        result = int(domain.resolve(offset(domain.origin, exprs(seen.shape))).xreplace(point))
        inside = all(low <= e.xreplace(point) < high for e, low, high in held)
        value = x.reshape(-1)[int(where.xreplace(point))] if inside else PAD
        assert seen.reshape(-1)[result] == value, (steps, place)


def test_maps_with_different_pads_do_not_compose() -> None:
    one = maps.pad(exprs((3,)), (exprs((1, 1)),), 0.0)
    assert compose(maps.pad(one.shape, (exprs((1, 1)),), 1.0), one) is None
    assert compose(maps.pad(one.shape, (exprs((1, 1)),), 0.0), one) is not None


def test_what_repeats_or_leaves_out_elements_has_no_inverse() -> None:
    shape = exprs((4, 3))
    for map in (
        maps.slice_(shape, 0, *exprs((0, 1, 2))),
        maps.repeat(shape, exprs((2, 1))),
        maps.expand(exprs((1, 3)), shape),
        maps.pad(shape, (exprs((1, 0)), exprs((0, 0))), 0.0),
    ):
        assert invert(map) is None


BATCH, LENGTH = (sympy.Symbol(name, integer=True, positive=True) for name in ("batch", "length"))


def test_sizes_known_at_run_time_divide() -> None:
    i, j = dim(0), dim(1)
    ranges = {i: BATCH, j: LENGTH}
    assert simplify(Quotient(LENGTH * i + j, LENGTH), ranges) == i
    assert simplify(Remainder(LENGTH * i + j, LENGTH), ranges) == j
    assert simplify(Quotient(j, BATCH), ranges) == Quotient(j, BATCH)
    assert simplify(7 * LENGTH * Quotient(j, 7) + LENGTH * Remainder(j, 7), ranges) == LENGTH * j
    assert bounds(LENGTH * i + j, ranges) == (0, BATCH * LENGTH - 1)


def test_nothing_that_may_be_negative_is_left_inside_a_division() -> None:
    i, j = dim(0), dim(1)
    ranges = {i: sympy.Integer(4), j: LENGTH}
    shifted = Quotient(LENGTH * i + j - 1, LENGTH)
    assert simplify(shifted, ranges) == shifted, "(j - 1) // length is -1 in Python and 0 in Triton"
    assert simplify(Quotient(LENGTH * i + j + LENGTH, LENGTH), ranges) == i + 1
    ranges[j] = sympy.Integer(3)
    assert simplify(Quotient(3 * i + j - 1, 3), ranges) == i - 1 + Quotient(j + 2, 3)


def test_sizes_that_a_reshape_divides_leave_nothing_over() -> None:
    rows = FloorDiv(LENGTH, 4)
    cut = maps.reshape((BATCH, LENGTH), (BATCH, rows, sympy.Integer(4)))
    assert cut.index == (dim(0), 4 * dim(1) + dim(2)) and cut.keeps_order
    back_again = invert(cut)
    assert back_again is not None and back_again.index == (dim(0), Quotient(dim(1), 4), Remainder(dim(1), 4))
    assert nonnegative(LENGTH - 4 * rows) and not nonnegative(4 * rows - LENGTH)


def test_where_either_shape_may_lack_elements_nothing_is_paired() -> None:
    halved = FloorDiv(LENGTH, 2)
    map = maps.reshape((2 * halved, BATCH), (LENGTH, 2 * FloorDiv(BATCH, 2)))
    assert all(len(e.free_symbols & {dim(0), dim(1)}) == 2 for e in map.index)


def test_what_does_not_align_stays_a_division() -> None:
    map = maps.reshape(exprs((6, 35)), exprs((15, 14)))
    domain = Domain()
    index = tuple(domain.atom("i", n, reduced=False) for n in map.shape)
    there = domain.at(map, index)
    assert all(e.has(Quotient, Remainder) for e in there)
    a, b = index
    assert domain.simplify(offset(there, map.operand)) == 14 * a + b
    assert at(map, index) != there or map.keeps_order
