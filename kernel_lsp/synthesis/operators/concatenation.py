"""Tensors one after the other, and with a part of them replaced, which is what is before, the part and what is after."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered, expr_of, normalise
from ..graph.sizes import ONE, ZERO, same
from ..graph.value import Concat, Shape, Value
from .registry import lowers
from .scattering import every_so_often

#: tensors beyond which a concatenation is left to torch: a kernel would ask of each element which of them it is from
_MOST_PIECES = 8
#: those that steps may write into one tensor: a kernel stores them there, each at its place
_MOST_WRITTEN = 1024


@lowers("aten.cat", about="Tensors one after the other, up to eight")
def cat(
    values: list[Value], dim: int = 0, *, shape: Shape, out: torch.dtype, most: int = _MOST_PIECES, **_: Any
) -> Value:
    """Cast to ``out`` each; empty tensors of shape [0] are left out.

    Raises:
        NotLowered: for none and for more than ``most``.
    """
    dim = normalise(dim, len(shape))
    values = [v for v in values if not (len(v.shape) == 1 and v.shape[0] == ZERO)]
    if not values:
        raise NotLowered("a concatenation of nothing")
    if len(values) == 1:
        return Build.cast(values[0], out)
    if len(values) > most:
        raise NotLowered(f"a concatenation of {len(values)} tensors")
    return Build.concat(tuple(Build.cast(v, out) for v in values), dim, shape, out)


@lowers("aten.stack", about="Tensors along a new dim, up to eight")
def stack(values: list[Value], dim: int = 0, *, shape: Shape, out: torch.dtype, **_: Any) -> Value:
    """``cat`` of tensors with the new dim in each.

    Raises:
        NotLowered: for more than eight.
    """
    dim = normalise(dim, len(shape))
    return cat([Build.unsqueeze(v, dim) for v in values], dim, shape=shape, out=out)


def _replaced(x: Value, part: Value, dim: int, start: sympy.Expr, out: torch.dtype) -> Value:
    """``x`` with ``part`` in place of as many elements along ``dim``, from ``start``.

    The result's size is greater than that of ``x`` where the part does not lie inside: that makes it a condition.
    """
    end, size = sympy.expand(start + part.shape[dim]), x.shape[dim]
    inside = sympy.expand(size + sympy.Max(0, -start) + sympy.Max(0, end - size))
    before = [] if start == ZERO else between(x, dim, ZERO, start)
    after = [] if same(end, size) else between(x, dim, end, size)
    shape = (*x.shape[:dim], inside, *x.shape[dim + 1 :])
    return cat([*before, part, *after], dim, shape=shape, out=out, most=_MOST_WRITTEN)


def between(x: Value, dim: int, start: sympy.Expr, end: sympy.Expr) -> list[Value]:
    """What of ``x`` lies between two places of ``dim``, as pieces of what it was put together from.

    A forward that fills a tensor step by step would else read each element through all the steps after it.
    """
    whole = [Build.slice(x, dim, start, ONE, sympy.expand(end - start))]
    if not isinstance(x.op, Concat) or x.op.dim != dim:
        return whole
    size, found, begins = x.shape[dim], list[Value](), ZERO
    for piece in x.op.operands:
        ends = sympy.expand(begins + piece.shape[dim])
        first, last = _greater(start, begins, size), _less(end, ends, size)
        if first is None or last is None:
            return whole
        if not _is_before(last, first):
            inside = same(first, begins) and same(last, ends)
            length = sympy.expand(last - first)
            found.append(piece if inside else Build.slice(piece, dim, sympy.expand(first - begins), ONE, length))
        begins = ends
    return found


def _greater(a: sympy.Expr, b: sympy.Expr, size: sympy.Expr) -> sympy.Expr | None:
    """The greater of two places of a dimension of that size; None where that is not known."""
    least = _less(a, b, size)
    return None if least is None else b if least is a else a


def _less(a: sympy.Expr, b: sympy.Expr, size: sympy.Expr) -> sympy.Expr | None:
    """The lesser of two places, the first of two equal ones; None where that is not known. No place is beyond the end."""
    if a in (b, ZERO) or same(b, size):
        return a
    if b == ZERO or same(a, size):
        return b
    difference = sympy.expand(b - a)
    return None if not difference.is_number else a if difference >= 0 else b


def _is_before(last: sympy.Expr, first: sympy.Expr) -> bool:
    """Whether nothing is from ``first`` to before ``last``."""
    difference = sympy.expand(last - first)
    return bool(difference.is_number and difference <= 0)


@lowers("aten.select_scatter", about="With a part in place of one place of a dim")
def select_scatter(x: Value, part: Value, dim: int, index: Any, *, out: torch.dtype, **_: Any) -> Value:
    """A concatenation of what is before, ``part`` and what is after; ``part`` has the shape of ``x`` without ``dim``.

    Raises:
        NotLowered: where it would have too many pieces.
    """
    dim, place = normalise(dim, len(x.shape)), expr_of(index)
    place = sympy.expand(x.shape[dim] + place) if place.could_extract_minus_sign() else place
    return _replaced(x, Build.unsqueeze(part, dim), dim, place, out)


@lowers("aten.copy", about="What is written over another tensor")
def copy(x: Value, source: Value, *_: Any, shape: Shape, out: torch.dtype, **__: Any) -> Value:
    """``source`` cast to ``out`` and expanded to the shape of ``x``, whose elements are not read."""
    cast = Build.cast(source, out)
    return cast if cast.shape == shape else Build.expand(cast, shape)


@lowers("aten.slice_scatter", about="With a part in place of a slice")
def slice_scatter(
    x: Value,
    part: Value,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    out: torch.dtype,
    **_: Any,
) -> Value:
    """A concatenation as in ``select_scatter``; with a ``step`` elements are chosen by their place.

    Raises:
        NotLowered: where it would have too many pieces, or the places of a ``step`` are not known.
    """
    dim, begin = normalise(dim, len(x.shape)), expr_of(start or 0)
    if step != 1:
        return every_so_often(x, part, dim, begin, step, out, x.shape)
    begin = sympy.expand(x.shape[dim] + begin) if begin.could_extract_minus_sign() else begin
    return _replaced(x, part, dim, begin, out)
