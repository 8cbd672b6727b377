"""Views as data: which element of its operand an element of a view is.

A ``Map`` says it with one expression per dimension of the operand, over the view's own indices ``dim(0)``, ``dim(1)``, …
and sizes. ``maps.py`` has one for each way to address elements; what kernels make of a map is the same for all.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import sympy

from .division import Ranges, is_size, simplify
from .sizes import ONE, ZERO, Index, exact, offset
from .value import Shape

#: (expression, low, high): the operand has such an element where low <= expression < high.
Guard = tuple[sympy.Expr, sympy.Expr, sympy.Expr]


@functools.lru_cache(maxsize=64)
def dim(i: int) -> sympy.Symbol:
    """The index along dimension ``i``."""
    return sympy.Symbol(f"dim{i}", integer=True, nonnegative=True)


def dims(rank: int) -> Index:
    """The indices of a tensor of that many dimensions, from the left."""
    return tuple(dim(i) for i in range(rank))


@dataclass(frozen=True)
class Map:
    """A view of shape ``shape`` on a tensor of shape ``operand``.

    ``index``: one expression per dimension of the operand, over ``dim(i)`` of the view and sizes.
    ``guard``: the element exists where all of these hold; elsewhere the view holds ``pad``.
    ``inverse``: one expression per dimension of the view, over ``dim(i)`` of the operand: where the view holds an element
    of the operand. None for a dimension that is free (the element is at every place of an expanded dimension); None for
    the whole where elements of the operand are missing, are at several places otherwise, or a guard is needed.
    """

    shape: Shape
    operand: Shape
    index: Index
    guard: tuple[Guard, ...] = ()
    pad: float | int | bool | None = None
    inverse: tuple[sympy.Expr | None, ...] | None = None
    reshapes: bool = False  # known to keep the order of elements, though that may not show in the index

    @functools.cached_property
    def keeps_order(self) -> bool:
        """Whether element n of the view, in row-major order, is element n of the operand, and there are no others."""
        if self.reshapes:
            return True
        if self.guard or self.inverse is None or None in self.inverse:
            return False
        here = offset(_without_ones(self.shape), self.shape)
        there = simplify(offset(tuple(e.xreplace(_ones(self.shape)) for e in self.index), self.operand), self.ranges)
        return here == there or exact(here) == exact(there)  # it is a reshape: what is divided leaves no remainder

    @property
    def ranges(self) -> Ranges:
        """Each index symbol with the size of its dimension."""
        return {dim(i): n for i, n in enumerate(self.shape)}

    @property
    def permutation(self) -> tuple[int, ...] | None:
        """The operand's dimension for each of the view's; None where the view is not a permutation."""
        if self.guard or len(self.index) != len(self.shape) or set(self.index) != set(dims(len(self.shape))):
            return None
        return tuple(self.index.index(dim(i)) for i in range(len(self.shape)))

    @property
    def picks_strides(self) -> bool:
        """Whether each of the operand's dimensions is one of the view's or stands at one place: strides alone address it."""
        return not self.guard and all(isinstance(e, sympy.Symbol) or is_size(e) for e in self.index)


def _ones(shape: Shape) -> dict[sympy.Symbol, sympy.Expr]:
    """The only index along each dimension of size one."""
    return {dim(i): ZERO for i, n in enumerate(shape) if n == ONE}


def _without_ones(shape: Shape) -> Index:
    return tuple(ZERO if n == ONE else dim(i) for i, n in enumerate(shape))


def at(map: Map, index: Index) -> Index:
    """The operand's index of the element at ``index`` of the view, divisions not carried out."""
    return _substituted(map.index, index)


def _substituted(exprs: Index, index: Index) -> Index:
    place = dict(zip(dims(len(index)), index, strict=True))
    return tuple(place[e] if e in place else e.xreplace(place) for e in exprs)


def back(map: Map, index: Index) -> tuple[sympy.Expr | None, ...]:
    """The index in a view with an inverse of the element at ``index`` of its operand; None where it is free."""
    assert map.inverse is not None
    return tuple(None if e is None else _substituted((e,), index)[0] for e in map.inverse)


def guards_at(map: Map, index: Index) -> tuple[Guard, ...]:
    """The conditions under which the operand has the element at ``index`` of the view."""
    place = dict(zip(dims(len(index)), index, strict=True))
    return tuple((e.xreplace(place), low, high) for e, low, high in map.guard)


def compose(outer: Map, inner: Map) -> Map | None:
    """``outer`` of ``inner``'s view, as a view of ``inner``'s operand. None where both have guards and different pads."""
    if outer.guard and inner.guard and (type(outer.pad), outer.pad) != (type(inner.pad), inner.pad):
        return None
    index = tuple(simplify(e, outer.ranges) for e in at(inner, outer.index))
    guard = *outer.guard, *((simplify(e, outer.ranges), low, high) for e, low, high in guards_at(inner, outer.index))
    pad = outer.pad if outer.guard else inner.pad
    # Where the index of one does not show that it keeps the order, that of both need not either.
    both = (outer.reshapes or inner.reshapes) and outer.keeps_order and inner.keeps_order
    return Map(outer.shape, inner.operand, index, guard, pad, _inverse_of_both(outer, inner), both)


def _inverse_of_both(outer: Map, inner: Map) -> tuple[sympy.Expr | None, ...] | None:
    if outer.inverse is None or inner.inverse is None:
        return None
    free = {dim(i) for i, e in enumerate(inner.inverse) if e is None}
    between = tuple(dim(i) if e is None else e for i, e in enumerate(inner.inverse))
    result: list[sympy.Expr | None] = []
    for e in outer.inverse:
        if e is None or e in free:
            result.append(None)
        elif e.free_symbols & free:
            return None  # free only together with others
        else:
            result.append(simplify(_substituted((e,), between)[0], operand_ranges(inner)))
    return tuple(result)


def operand_ranges(map: Map) -> Ranges:
    """As ``Map.ranges``, for the operand's dimensions."""
    return {dim(i): n for i, n in enumerate(map.operand)}


def invert(map: Map) -> Map | None:
    """The view that gives the operand back; None where elements are missing or repeated."""
    if map.inverse is None or map.guard:
        return None
    index = tuple(e for e in map.inverse if e is not None)
    return (
        Map(map.operand, map.shape, index, inverse=map.index, reshapes=map.reshapes)
        if len(index) == len(map.inverse)
        else None
    )
