"""Results with other elements in places that are few, or that a condition tells: a choice for each element.

What is put at many places that only tensors know stays with torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered, Operand, expr_of, normalise, number_or_size, opmath
from ..graph.division import Quotient
from ..graph.map import Map, dims
from ..graph.sizes import ONE, ZERO, Index
from ..graph.value import Scalar, Shape, Value, numel
from .registry import lowers

#: places along a dim up to which each element asks of all of them
_MOST_PLACES = 8


def _masked_dims(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """The sizes of a mask, and of the dims that it is for; those of the dims of the value that are more than one, and of the same of ``x``."""
    x, indices, value = given["x"], given["indices"], given["value"]
    masked = tuple(zip(indices[-1].shape, x.shape[len(indices) - 1 :], strict=False))
    if numel(value.shape) == ONE:
        return masked
    others = [*x.shape[: len(indices) - 1], ONE, *x.shape[len(indices) - 1 + len(indices[-1].shape) :]]
    sizes = zip(reversed(value.shape), reversed(others), strict=False)
    return masked + tuple((size, other) for size, other in sizes if size != ONE)


def _same_rows(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """The sizes of all dims but the one along which elements are put."""
    x, dim = given["x"], given["dim"]
    others = [v for v in (given["index"], given["source"]) if isinstance(v, Value) and len(v.shape) == len(x.shape)]
    rest = [d for d in range(len(x.shape)) if d != normalise(dim, len(x.shape))]
    return tuple((other.shape[d], x.shape[d]) for other in others for d in rest)


@lowers(
    "aten.index_put",
    "aten._unsafe_index_put",
    about="A number, or values of the dims beside it, where a mask says so",
    equal=_masked_dims,
)
def index_put(
    x: Value, indices: list[Value | None], value: Value, accumulate: bool = False, *, out: torch.dtype, **_: Any
) -> Value:
    """``where`` with the mask, which covers the dims of ``x`` from its own place on; ``accumulate`` adds the value.

    ``value`` [..., 1, ...] has one place for all that the mask selects: what it holds differs along the other dims alone.

    Raises:
        NotLowered: for indices other than one mask, and for values that differ among what the mask selects.
    """
    chosen = [(d, one) for d, one in enumerate(indices) if one is not None]
    if len(chosen) != 1 or chosen[0][1].dtype != torch.bool:
        raise NotLowered("places that are no mask")
    first, mask = chosen[0]
    if first != len(indices) - 1:
        raise NotLowered("a mask of other dims")
    dims = len(mask.shape)
    new: Operand = Build.cast(_one_place(value, len(x.shape) - first - dims, dims), out)
    mask = Build.reshape(mask, x.shape[first : first + dims])
    for _d in range(len(x.shape) - first - dims):
        mask = Build.unsqueeze(mask, len(mask.shape))
    if accumulate:
        new = Build.arithmetic("add", x, new, result=out)
    return Build.pointwise("where", mask, new, x, dtype=out)


def _one_place(value: Value, after: int, dims: int) -> Value:
    """``value``, whose dim before the last ``after`` ones has size one, with ``dims`` dims of size one in its place.

    Raises:
        NotLowered: it has another size.
    """
    if numel(value.shape) == ONE:
        return Build.reshape(value, ())
    place = len(value.shape) - after - 1
    if place < 0:
        return value
    if value.shape[place] != ONE:
        raise NotLowered("a value for each place of a mask")
    return Build.reshape(value, (*value.shape[:place], *(ONE,) * dims, *value.shape[place + 1 :]))


def _few(size: sympy.Expr) -> int:
    if not size.is_Integer or size > _MOST_PLACES:
        raise NotLowered(f"more than {_MOST_PLACES} places, or so many as a size says")
    return int(size)


def _place(x: Value, dim: int) -> Value:
    return Build.iota(x.shape, dim, torch.int32)


def _at(index: Value, dim: int, k: int) -> Value:
    """Place ``k`` of ``index`` along ``dim``, which stays with size one."""
    return Build.slice(index, dim, sympy.Integer(k), ONE, ONE)


def _put(x: Value, dim: int, index: Value, source: Callable[[int], Operand], out: torch.dtype, add: bool) -> Value:
    """``index`` [..., few, ...] in the dims of ``x``; later places win over earlier ones, or are added."""
    place, value = _place(x, dim), Build.cast(x, out)
    for k in range(_few(index.shape[dim])):
        here = Build.comparison("eq", place, _at(index, dim, k))
        new = Build.cast(source(k), out)
        if add and out == torch.bool:
            added = Build.pointwise("and", here, new, dtype=out)
            value = Build.pointwise("or", value, added, dtype=out)
        elif add:
            zero: Any = 0.0 if out.is_floating_point else 0
            added = Build.pointwise("where", here, new, zero, dtype=opmath(out))
            value = Build.arithmetic("add", value, added, result=out)
        else:
            value = Build.pointwise("where", here, new, value, dtype=out)
    return value


def turned_around(place: Value, size: sympy.Expr) -> Value:
    """Places, int64, along a dim of ``size``; negative ones count from its end."""
    behind = Build.pointwise("add", place, number_or_size(size), dtype=torch.int64)
    return Build.pointwise("where", Build.comparison("lt", place, 0), behind, place, dtype=torch.int64)


def _line(index: Value, dim: int, rank: int) -> Value:
    """An index of one dim along ``dim`` of ``rank``."""
    size = index.shape[0] if index.shape else ONE
    return Build.reshape(index, tuple(size if d == dim else ONE for d in range(rank)))


@lowers("aten.index_copy", about="Up to eight places of a dim replaced")
def index_copy(x: Value, dim: int, index: Value, source: Value, *, out: torch.dtype, **_: Any) -> Value:
    """``index`` [n] names places of ``dim``; ``source`` has n of them. Of equal places the last one stays.

    Raises:
        NotLowered: for more than eight places.
    """
    return _by_line(x, dim, index, source, out, add=False)


@lowers("aten.index_add", about="Up to eight places of a dim added to")
def index_add(x: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1, out: torch.dtype, **_: Any) -> Value:
    """As ``index_copy``, with ``alpha`` times ``source`` added; equal places add up.

    Raises:
        NotLowered: for more than eight places.
    """
    if alpha != 1:
        source = Build.arithmetic("mul", source, alpha, result=out)
    return _by_line(x, dim, index, source, out, add=True)


def _by_line(x: Value, dim: int, index: Value, source: Value, out: torch.dtype, add: bool) -> Value:
    rank = len(x.shape)
    if not rank or len(source.shape) != rank:
        raise NotLowered("a number")
    dim = normalise(dim, rank)
    return _put(x, dim, _line(index, dim, rank), lambda k: _at(source, dim, k), out, add)


@lowers("aten.index_fill", about="One number in up to eight places of a dim")
def index_fill(x: Value, dim: int, index: Value, value: Operand, *, out: torch.dtype, **_: Any) -> Value:
    """``value``, a number or a tensor of shape (), at the places of ``dim`` in ``index`` [n]; negative ones count from the end.

    Raises:
        NotLowered: for more than eight places.
    """
    rank = len(x.shape)
    if not rank or isinstance(value, Scalar):
        raise NotLowered("a number")
    dim = normalise(dim, rank)
    places = turned_around(Build.cast(index, torch.int64), x.shape[dim])
    return _put(x, dim, _line(places, dim, rank), lambda _k: value, out, add=False)


@lowers("aten.scatter", about="Elements at the places of a dim that each row names, up to eight", equal=_same_rows)
def scatter(x: Value, dim: int, index: Value, source: Operand, *, out: torch.dtype, **_: Any) -> Value:
    """``index`` has the rank of ``x``; ``source`` is a number or has an element for each index. Of equal places the last one stays.

    Raises:
        NotLowered: for more than eight places along ``dim``.
    """
    return _by_rows(x, dim, index, source, out, add=False)


@lowers(
    "aten.scatter_add", about="Elements added at the places of a dim that each row names, up to eight", equal=_same_rows
)
def scatter_add(x: Value, dim: int, index: Value, source: Value, *, out: torch.dtype, **_: Any) -> Value:
    """As ``scatter``; equal places add up, one after the other.

    Raises:
        NotLowered: for more than eight places along ``dim``.
    """
    return _by_rows(x, dim, index, source, out, add=True)


def _by_rows(x: Value, dim: int, index: Value, source: Operand, out: torch.dtype, add: bool) -> Value:
    rank = len(x.shape)
    if not rank or len(index.shape) != rank or isinstance(source, Scalar):
        raise NotLowered("a number")
    dim = normalise(dim, rank)
    if isinstance(source, Value) and source.shape:
        whole = source
        return _put(x, dim, index, lambda k: _at(whole, dim, k), out, add)
    return _put(x, dim, index, lambda _k: source, out, add)


def every_so_often(
    x: Value, part: Value, dim: int, start: sympy.Expr, step: Any, out: torch.dtype, shape: Shape
) -> Value:
    """``x`` with ``part`` in place of every ``step``-th element along ``dim``, from ``start``.

    Raises:
        NotLowered: where start or step is not a known integer, or start is negative.
    """
    if not isinstance(step, int) or not start.is_Integer or start < 0:
        raise NotLowered("a slice whose places are not known")
    place = Build.pointwise("sub", _place(x, dim), int(start), dtype=torch.int32) if start else _place(x, dim)
    here = Build.comparison("eq", Build.pointwise("rest_int", place, step, dtype=torch.int32), 0)
    if start:
        here = Build.pointwise("and", here, Build.comparison("ge", place, 0), dtype=torch.bool)
    index = list(dims(len(x.shape)))
    beyond = sympy.expand(index[dim] - start)
    index[dim] = Quotient(beyond, expr_of(step))
    part = placed(part, x.shape, tuple(index), beyond, step * part.shape[dim])
    return Build.pointwise("where", here, Build.cast(part, out), x, dtype=out)


def placed(part: Value, shape: Shape, index: Index, beyond: sympy.Expr, end: sympy.Expr) -> Value:
    """``part`` at ``index`` where ``beyond`` lies from 0 to before ``end``; zero at the other places of ``shape``."""
    pad: Any = 0.0 if part.dtype.is_floating_point else False if part.dtype == torch.bool else 0
    guard = ((beyond, ZERO, sympy.expand(end)),)
    return Build.view(part, Map(shape, part.shape, index, guard, pad), "placed")
