"""Every way to address the elements of a tensor, each as a ``Map``; ``operand`` is the tensor's shape."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import sympy
from torch.utils._sympy.functions import FloorDiv, PythonMod

from .division import Quotient, Remainder, within
from .map import Map, dim, dims, invert
from .sizes import ONE, ZERO, Index, exact, offset, quotient, same, strides
from .value import Shape, numel


def permute(operand: Shape, order: tuple[int, ...]) -> Map:
    """Dimension i of the view is dimension ``order[i]`` of the operand."""
    index = tuple(dim(order.index(d)) for d in range(len(order)))
    return Map(tuple(operand[d] for d in order), operand, index, inverse=tuple(dim(d) for d in order))


def expand(operand: Shape, shape: Shape) -> Map:
    """Dimensions of size one, and further ones in front, take the sizes of ``shape``."""
    shift = len(shape) - len(operand)
    index = tuple(ZERO if n == ONE else dim(d + shift) for d, n in enumerate(operand))
    inverse = (*[None] * shift, *(None if n == ONE else dim(d) for d, n in enumerate(operand)))
    return Map(shape, operand, index, inverse=inverse)


@functools.lru_cache(maxsize=1024)
def reshape(operand: Shape, shape: Shape) -> Map:
    """The same elements, in row-major order, with other sizes."""
    groups = _groups(operand, shape)
    return Map(
        shape,
        operand,
        _regrouped([(b, a) for a, b in groups], shape, operand),
        inverse=_regrouped(groups, operand, shape),
        reshapes=True,
    )


def _regrouped(groups: Runs, given: Shape, wanted: Shape) -> Index:
    """The index into ``wanted`` of the element that ``dim(0)``, … address in ``given``."""
    result: list[sympy.Expr] = [ZERO] * len(wanted)
    for run, places in groups:
        linear = offset(tuple(dim(i) for i in run), tuple(given[i] for i in run))
        for k, (place, stride) in enumerate(zip(places, strides(tuple(wanted[j] for j in places)), strict=True)):
            expr = Quotient(linear, stride)
            result[place] = expr if k == 0 else Remainder(expr, wanted[place])
    return tuple(result)


Runs = list[tuple[list[int], list[int]]]


def _groups(a: Shape, b: Shape) -> Runs:
    """Pairs of runs of dimensions of a and b with equal products; size-one dimensions belong to no run.

    A size n of one shape matches k * (n // k) of the other: nothing can be missing, since the products of the whole are
    equal. Where no runs match, everything is one run.
    """
    found = _runs(a, b)
    if found is None:
        found = _runs(tuple(exact(n) for n in a), tuple(exact(n) for n in b))
        found = None if found is None or _rounded_in_both(found, a, b) else found
    if found is None:
        found = [([i for i, n in enumerate(a) if n != ONE], [j for j, n in enumerate(b) if n != ONE])]
    return found


def _rounded_in_both(runs: Runs, a: Shape, b: Shape) -> bool:
    """Whether what one shape might lack in one run, the other might lack in another one."""
    less = set()
    for run_a, run_b in runs:
        size_a, size_b = numel(tuple(a[i] for i in run_a)), numel(tuple(b[j] for j in run_b))
        if not same(size_a, size_b):
            less |= {side for side, n in enumerate((size_a, size_b)) if not same(n, exact(n))}
    return len(less) > 1


def _runs(a: Shape, b: Shape) -> Runs | None:
    left = [i for i, n in enumerate(a) if n != ONE]
    right = [j for j, n in enumerate(b) if n != ONE]
    groups: Runs = []
    i = j = 0
    while i < len(left) and j < len(right):
        run_a, run_b = [left[i]], [right[j]]
        size_a, size_b = a[left[i]], b[right[j]]
        i, j = i + 1, j + 1
        while not same(size_a, size_b):
            grow_a = i < len(left) and (quotient(size_b, size_a) is not None or j >= len(right))
            if grow_a:
                size_a = sympy.expand(size_a * a[left[i]])
                run_a.append(left[i])
                i += 1
            elif j < len(right):
                size_b = sympy.expand(size_b * b[right[j]])
                run_b.append(right[j])
                j += 1
            else:
                return None
        groups.append((run_a, run_b))
    return groups if i == len(left) and j == len(right) else None


def slice_(operand: Shape, d: int, start: sympy.Expr, step: sympy.Expr, size: sympy.Expr) -> Map:
    """``size`` elements along dimension ``d``, ``step`` apart, from ``start``."""
    return _along(operand, d, start + step * dim(d), size)


def _along(operand: Shape, d: int, expr: sympy.Expr, size: sympy.Expr) -> Map:
    """A view whose dimension ``d`` has ``size`` and addresses the operand by ``expr`` over ``dim(d)``."""
    index, shape = list(dims(len(operand))), list(operand)
    index[d], shape[d] = sympy.expand(expr), size
    return Map(tuple(shape), operand, tuple(index))


def select(operand: Shape, d: int, place: sympy.Expr) -> Map:
    """The one index ``place`` of dimension ``d``, which goes."""
    rest = dims(len(operand) - 1)
    return Map((*operand[:d], *operand[d + 1 :]), operand, (*rest[:d], place, *rest[d:]))


def unsqueeze(operand: Shape, d: int) -> Map:
    """A dimension of size one before dimension ``d``."""
    index = tuple(dim(i if i < d else i + 1) for i in range(len(operand)))
    rest = dims(len(operand))
    return Map((*operand[:d], ONE, *operand[d:]), operand, index, inverse=(*rest[:d], ZERO, *rest[d:]))


def squeeze(operand: Shape, gone: tuple[int, ...]) -> Map:
    """Without the dimensions ``gone``, which have size one."""
    left = [d for d in range(len(operand)) if d not in gone]
    index = tuple(dim(left.index(d)) if d in left else ZERO for d in range(len(operand)))
    return Map(tuple(operand[d] for d in left), operand, index, inverse=tuple(dim(d) for d in left))


def flip(operand: Shape, turned: tuple[int, ...]) -> Map:
    """The dimensions ``turned`` from their ends."""
    index = tuple(sympy.expand(n - 1 - dim(d)) if d in turned else dim(d) for d, n in enumerate(operand))
    return Map(operand, operand, index, inverse=index)


def roll(operand: Shape, shifts: dict[int, sympy.Expr]) -> Map:
    """Element i of dimension d of the operand is element (i + ``shifts[d]``) % size of the view."""

    def turned(sign: int) -> Index:
        return tuple(
            Remainder(dim(d) + _positive(sign * shifts[d], n), n) if d in shifts and n != ONE else dim(d)
            for d, n in enumerate(operand)
        )

    return Map(operand, operand, turned(-1), inverse=turned(1))


def _positive(shift: sympy.Expr, n: sympy.Expr) -> sympy.Expr:
    """A shift by as much modulo ``n`` that is not negative."""
    return shift if shift.is_number and shift >= 0 else PythonMod(shift, n)


def repeat(operand: Shape, counts: tuple[sympy.Expr, ...]) -> Map:
    """The operand ``counts[d]`` times along dimension d; further counts stand for further dimensions in front."""
    shift = len(counts) - len(operand)
    sizes = (*[ONE] * shift, *operand)
    index = tuple(
        dim(d + shift) if counts[d + shift] == ONE else Remainder(dim(d + shift), n) for d, n in enumerate(operand)
    )
    return Map(tuple(sympy.expand(n * c) for n, c in zip(sizes, counts, strict=True)), operand, index)


def repeat_interleave(operand: Shape, d: int, count: sympy.Expr) -> Map:
    """Each element ``count`` times along dimension ``d``."""
    return _along(operand, d, Quotient(dim(d), count), sympy.expand(operand[d] * count))


def scaled(operand: Shape, shape: Shape, ratios: dict[int, tuple[sympy.Expr, sympy.Expr]]) -> Map:
    """Element i of dimension d of the view, which has ``shape``, is element i * n // m of the operand; ``ratios[d]``: (n, m)."""
    index = list(dims(len(operand)))
    for d, (n, m) in ratios.items():
        index[d] = Quotient(sympy.expand(dim(d) * n), m)
    return Map(shape, operand, tuple(index))


def unfold(operand: Shape, d: int, size: sympy.Expr, step: sympy.Expr) -> Map:
    """Windows of ``size`` along dimension ``d``, ``step`` apart; the last dimension goes through a window."""
    return windows(operand, (d,), (size,), (step,))


def windows(
    operand: Shape,
    along: tuple[int, ...],
    sizes: tuple[sympy.Expr, ...],
    step: tuple[sympy.Expr, ...],
    dilation: tuple[sympy.Expr, ...] | None = None,
    padding: tuple[sympy.Expr, ...] | None = None,
    *,
    counts: tuple[sympy.Expr, ...] | None = None,
    rounds_up: bool = False,
    pad: float | int | bool = 0.0,
) -> Map:
    """Windows along the dimensions ``along``, as convolutions and pooling take them.

    Dimension ``along[k]`` goes through the windows, ``step[k]`` apart; dimension rank + k of the view goes through the
    ``sizes[k]`` elements of one, ``dilation[k]`` apart. The first begins ``padding[k]`` before the operand does, and
    what lies outside is ``pad``. ``counts``: how many windows there are, where the caller knows it; where it ``rounds_up``, the last one may leave the operand.
    """
    rank = len(operand)
    index, shape, guard = list(dims(rank)), list(operand), []
    dilation, padding = dilation or (ONE,) * len(along), padding or (ZERO,) * len(along)
    for k, d in enumerate(along):
        span = dilation[k] * (sizes[k] - 1) + 1
        shape[d] = counts[k] if counts else FloorDiv(sympy.expand(operand[d] + 2 * padding[k] - span), step[k]) + 1
        index[d] = sympy.expand(step[k] * dim(d) + dilation[k] * dim(rank + k) - padding[k])
        guard.append((index[d], ZERO, operand[d]))
    result = Map((*shape, *sizes), operand, tuple(index))
    if padding == (ZERO,) * len(along) and not rounds_up:
        return result
    needed = tuple(g for g in guard if not all(within(*g, result.ranges)))
    return Map(result.shape, operand, result.index, needed, pad if needed else None)


def diagonal(operand: Shape, shift: int, a: int, b: int, size: sympy.Expr) -> Map:
    """The last dimension goes along the diagonal of dimensions ``a`` and ``b``, which go; ``shift``: as in torch."""
    left = [d for d in range(len(operand)) if d not in (a, b)]
    index = [dim(left.index(d)) if d in left else dim(len(left)) for d in range(len(operand))]
    index[a] += max(-shift, 0)
    index[b] += max(shift, 0)
    return Map((*(operand[d] for d in left), size), operand, tuple(index))


#: (dimension, its size, margin before it, margin after it) → index into the operand
Place = Callable[[int, sympy.Expr, sympy.Expr, sympy.Expr], sympy.Expr]
#: How much is added before and after each dimension; a negative number takes away.
Margins = tuple[tuple[sympy.Expr, sympy.Expr], ...]


def pad(operand: Shape, margins: Margins, value: float | int | bool) -> Map:
    """``margins`` of ``value`` around the operand."""
    index = tuple(dim(d) - low for d, (low, _) in enumerate(margins))
    guard = tuple(
        (e, ZERO, n) for e, n, ends in zip(index, operand, margins, strict=True) if any(_grows(end) for end in ends)
    )
    return Map(_padded(operand, margins), operand, index, guard, value if guard else None)


def _grows(end: sympy.Expr) -> bool:
    return not (end.is_number and end <= 0)


def _padded(operand: Shape, margins: Margins) -> Shape:
    return tuple(sympy.expand(n + low + high) for n, (low, high) in zip(operand, margins, strict=True))


def reflect(operand: Shape, margins: Margins) -> Map:
    """Margins that mirror the operand at its first and last elements, which are not repeated."""

    def place(d: int, n: sympy.Expr, low: sympy.Expr, high: sympy.Expr) -> sympy.Expr:
        before = sympy.Abs(dim(d) - low) if _grows(low) else dim(d) - low
        return n - 1 - sympy.Abs(sympy.expand(n - 1 - before)) if _grows(high) else before

    return _margin(operand, margins, place)


def replicate(operand: Shape, margins: Margins) -> Map:
    """Margins that repeat the operand's first and last elements."""

    def place(d: int, n: sympy.Expr, low: sympy.Expr, high: sympy.Expr) -> sympy.Expr:
        before = sympy.Max(dim(d) - low, 0) if _grows(low) else dim(d) - low
        return sympy.Min(before, n - 1) if _grows(high) else before

    return _margin(operand, margins, place)


def circular(operand: Shape, margins: Margins) -> Map:
    """Margins that go on at the operand's other end.

    They may be as wide as the operand and no wider: the shape says so, as a size that is greater where they are.
    """

    def place(d: int, n: sympy.Expr, low: sympy.Expr, high: sympy.Expr) -> sympy.Expr:
        around = _grows(low) or _grows(high)
        return Remainder(sympy.expand(dim(d) - low + n), n) if around else dim(d) - low

    widest = tuple(sympy.Max(n, *ends) for n, ends in zip(operand, margins, strict=True))
    return dataclasses.replace(_margin(operand, margins, place), shape=_padded(widest, margins))


def _margin(operand: Shape, margins: Margins, place: Place) -> Map:
    index = tuple(place(d, n, *margins[d]) for d, n in enumerate(operand))
    return Map(_padded(operand, margins), operand, index)


def pixel_shuffle(operand: Shape, r: int) -> Map:
    """[..., C * r * r, H, W] as [..., C, H * r, W * r]: channels become places in squares of ``r`` by ``r``.

    The shape is that without rounding: no integer where the channels do not divide.
    """
    c, h, w = _last_three(len(operand))
    together = (r * r * c + r * Remainder(h, sympy.Integer(r)) + Remainder(w, sympy.Integer(r)), _cut(h, r), _cut(w, r))
    apart = (_cut(c, r * r), r * h + Remainder(_cut(c, r), sympy.Integer(r)), r * w + Remainder(c, sympy.Integer(r)))
    shape = operand[-3] / (r * r), operand[-2] * r, operand[-1] * r
    return _on_last_three(operand, shape, together, apart)


def pixel_unshuffle(operand: Shape, r: int) -> Map:
    """The inverse of ``pixel_shuffle``."""
    small = (*operand[:-3], operand[-3] * r * r, operand[-2] / r, operand[-1] / r)
    other = invert(pixel_shuffle(small, r))
    assert other is not None
    return other


def channel_shuffle(operand: Shape, groups: int) -> Map:
    """Dimension 1 as [groups, channels // groups], transposed."""
    each = FloorDiv(operand[1], groups)

    def transposed(rows: sympy.Expr, columns: sympy.Expr) -> Index:
        moved = Remainder(dim(1), columns) * rows + Quotient(dim(1), columns)
        return tuple(moved if d == 1 else dim(d) for d in range(len(operand)))

    count = sympy.Integer(groups)
    return Map(operand, operand, transposed(each, count), inverse=transposed(count, each))


def _cut(index: sympy.Expr, n: int) -> sympy.Expr:
    return Quotient(index, sympy.Integer(n))


def _last_three(rank: int) -> tuple[sympy.Symbol, sympy.Symbol, sympy.Symbol]:
    return dim(rank - 3), dim(rank - 2), dim(rank - 1)


def _on_last_three(operand: Shape, shape: Shape, index: Index, inverse: Index) -> Map:
    front = dims(len(operand) - 3)
    return Map((*operand[:-3], *shape), operand, (*front, *index), inverse=(*front, *inverse))
