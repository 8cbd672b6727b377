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


@lowers("aten.cat", about="Tensors one after the other, up to eight")
def cat(values: list[Value], dim: int = 0, *, shape: Shape, out: torch.dtype, **_: Any) -> Value:
    """Cast to ``out`` each; empty tensors of shape [0] are left out.

    Raises:
        NotLowered: for none and for more than eight.
    """
    dim = normalise(dim, len(shape))
    values = [v for v in values if not (len(v.shape) == 1 and v.shape[0] == ZERO)]
    if not values:
        raise NotLowered("a concatenation of nothing")
    if len(values) == 1:
        return Build.cast(values[0], out)
    if len(values) > _MOST_PIECES:
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
    return cat([*before, part, *after], dim, shape=(*x.shape[:dim], inside, *x.shape[dim + 1 :]), out=out)


def between(x: Value, dim: int, start: sympy.Expr, end: sympy.Expr) -> list[Value]:
    """What of ``x`` lies between two places of ``dim``, as pieces of what it was put together from.

    A forward that fills a tensor step by step would else read each element through all the steps after it.
    """
    whole = [Build.slice(x, dim, start, ONE, sympy.expand(end - start))]
    pieces = x.op.operands if isinstance(x.op, Concat) and x.op.dim == dim else ()
    if not pieces or not all(n.is_number for n in (start, end, *(piece.shape[dim] for piece in pieces))):
        return whole
    found, begins = [], ZERO
    for piece in pieces:
        ends = begins + piece.shape[dim]
        first, last = max(start, begins), min(end, ends)
        if first < last:
            inside = first == begins and last == ends
            found.append(piece if inside else Build.slice(piece, dim, first - begins, ONE, last - first))
        begins = ends
    return found


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
