"""Operators that only address elements differently."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph import maps
from ..graph.build import Build, NotLowered, dims_of, expr_of, normalise, shape_of
from ..graph.sizes import ONE, ZERO
from ..graph.value import Concat, Shape, Value, numel
from .concatenation import between
from .registry import NotOne, lowers


@lowers(
    "aten.view",
    "aten.reshape",
    "aten._unsafe_view",
    "aten.flatten",
    "aten.unflatten",
    "aten.view_as",
    "aten.reshape_as",
    about="The same elements in another shape",
    addressing=True,
)
def reshape(x: Value, *_: Any, shape: Shape, out: torch.dtype, **__: Any) -> Value:
    """A view in row-major order; ``shape`` is of torch's result, so -1 does not occur.

    Raises:
        NotLowered: for ``view`` to another dtype.
    """
    if out != x.dtype:
        raise NotLowered("the same bits in another dtype")
    return Build.reshape(x, shape)


@lowers("aten.permute", about="The dims in another order", addressing=True)
def permute(x: Value, dims: list[int], **_: Any) -> Value:
    """A view; ``dims`` may count from the end."""
    return Build.permute(x, tuple(normalise(d, len(x.shape)) for d in dims))


@lowers("aten.transpose", "aten.swapaxes", "aten.swapdims", about="Two dims exchanged", addressing=True)
def transpose(x: Value, a: int, b: int, **_: Any) -> Value:
    """A permutation; a tensor of shape () stays as it is."""
    if not x.shape:  # a number has no dims, and torch takes them for the one that it would have
        return x
    order = list(range(len(x.shape)))
    a, b = normalise(a, len(order)), normalise(b, len(order))
    order[a], order[b] = order[b], order[a]
    return Build.permute(x, tuple(order))


@lowers("aten.t", "aten.numpy_T", about="The dims in reverse", addressing=True)
def t(x: Value, **_: Any) -> Value:
    """A permutation; tensors of shape () and [n] stay as they are."""
    return Build.permute(x, tuple(reversed(range(len(x.shape)))))


@lowers("aten.unsqueeze", about="A dim of size one more", addressing=True)
def unsqueeze(x: Value, dim: int, **_: Any) -> Value:
    """A view; ``dim`` counts in the result."""
    return Build.unsqueeze(x, normalise(dim, len(x.shape) + 1))


def _size_along(place: int) -> NotOne:
    """The size of the dimension that argument ``place`` names, the first by default."""

    def size(args: Any, _: Any) -> tuple[sympy.Expr, ...]:
        x, dim = args[0], args[place] if len(args) > place else 0
        return (x.shape[dim],) if isinstance(x, Value) and x.shape and isinstance(dim, int) else ()

    return size


def _unless_at_an_end(args: Any, fake: Any) -> tuple[sympy.Expr, ...]:
    """A select's dimension; one element is first and last."""
    return () if args[2] in (0, -1) else _size_along(1)(args, fake)


def _those_that_stay(args: Any, fake: Any) -> tuple[sympy.Expr, ...]:
    """Of the dims that a squeeze names, by default all, those that are longer than one."""
    x = args[0]
    if not isinstance(x, Value):
        return shape_of(fake.shape) if isinstance(fake, torch.Tensor) else ()
    chosen = dims_of(args[1] if len(args) > 1 else None, len(x.shape))
    return tuple(x.shape[d] for d in chosen if x.shape[d] != ONE)


@lowers("aten.squeeze", about="Dims of size one left out", addressing=True, not_one=_those_that_stay)
def squeeze(x: Value, dims: Any = None, **_: Any) -> Value:
    """A view; of ``dims``, by default all, those whose size is one."""
    chosen = dims_of(dims, len(x.shape))
    return Build.squeeze(x, tuple(d for d in chosen if x.shape[d] == ONE)) if x.shape else x


@lowers("aten.expand", "aten.expand_as", about="Dims of size one repeated", addressing=True)
def expand(x: Value, *_: Any, shape: Shape, **__: Any) -> Value:
    """A view with the dims of ``shape``, those that ``x`` lacks in front."""
    while len(x.shape) < len(shape):
        x = Build.unsqueeze(x, 0)
    return Build.expand(x, shape)


def _begin(size: sympy.Expr, start: Any) -> sympy.Expr:
    """Where a slice of a dimension begins, if it is long enough."""
    begin = expr_of(start) if start is not None else ZERO
    if begin.is_number and begin < 0:
        begin = sympy.expand(size + begin)
        if begin.is_number and begin < 0:
            begin = ZERO
    if not begin.is_number and begin.could_extract_minus_sign():
        begin = sympy.expand(size + begin)
    return begin


def _within(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """What a slice of a fixed number of elements takes for granted of its dimension: torch gives fewer where there are no more.

    Of quotients torch.export notes down more than can be told here.
    """
    x, step = given["x"], expr_of(given.get("step", 1))
    dim = normalise(given.get("dim", 0), len(x.shape))
    size, count = x.shape[dim], given["shape"][dim]
    if size.is_number or not size.is_polynomial(*size.free_symbols) or not count.is_number or count == 0:
        return ()
    begin = _begin(size, given.get("start"))
    return (sympy.Integer(-1), begin), (sympy.expand(begin + (count - 1) * step), size)


@lowers("aten.slice", about="Part of a dim", addressing=True, less=_within)
def slice_(
    x: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1, *, shape: Shape, **_: Any
) -> Value:
    """A view; ``shape`` says where it ends. Where all of the dim is taken it is ``x`` itself."""
    dim = normalise(dim, len(x.shape))
    size = x.shape[dim]
    begin = _begin(size, start)
    if begin == ZERO and step == 1 and sympy.expand(shape[dim] - size) == 0:
        return x  # x[:]
    return Build.slice(x, dim, begin, expr_of(step), shape[dim])


@lowers("aten.select", about="One place of a dim", addressing=True, not_one=_unless_at_an_end)
def select(x: Value, dim: int, index: Any, **_: Any) -> Value:
    """A view without ``dim``; of a concatenation of the piece that ``index`` lies in alone."""
    dim = normalise(dim, len(x.shape))
    place = expr_of(index)
    if place.is_number and place < 0:
        place = sympy.expand(x.shape[dim] + place)
    if isinstance(x.op, Concat) and len(pieces := between(x, dim, place, place + 1)) == 1:
        return Build.squeeze(pieces[0], (dim,))
    return Build.select(x, dim, place)


def split_sizes(x: Value, dim: int, shapes: list[Shape]) -> list[Value]:
    """Pieces of ``x`` along ``dim``, one per shape."""
    dim = normalise(dim, len(x.shape))
    pieces, start = [], ZERO
    for shape in shapes:
        pieces.append(Build.slice(x, dim, start, ONE, shape[dim]))
        start = sympy.expand(start + shape[dim])
    return pieces


@lowers(
    "aten.chunk",
    "aten.split",
    "aten.split_with_sizes",
    "aten.tensor_split",
    about="Pieces along a dim",
    addressing=True,
    not_one=_size_along(2),
)
def chunk(x: Value, _: Any, dim: int = 0, *, shapes: list[Shape], **__: Any) -> list[Value]:
    """Views; ``shapes`` of torch's results say how long each is."""
    return split_sizes(x, dim, shapes)


@lowers("aten.unbind", about="Every place of a dim by itself", addressing=True)
def unbind(x: Value, dim: int = 0, *, shapes: list[Shape], **_: Any) -> list[Value]:
    """Views without ``dim``, as many as its size."""
    dim = normalise(dim, len(x.shape))
    return [Build.select(x, dim, sympy.Integer(i)) for i in range(len(shapes))]


@lowers("aten.flip", about="Dims backwards", addressing=True)
def flip(x: Value, dims: list[int], **_: Any) -> Value:
    """A view; ``dims`` may count from the end."""
    return Build.view(x, maps.flip(x.shape, tuple(normalise(d, len(x.shape)) for d in dims)), "flip")


@lowers("aten.rot90", about="Turned by right angles", addressing=True)
def rot90(x: Value, times: int = 1, dims: Any = (0, 1), **_: Any) -> Value:
    """A view, turned ``times`` from the first of ``dims`` towards the second."""
    a, b = (normalise(d, len(x.shape)) for d in dims)
    if times % 4 == 0:
        return x
    if times % 4 == 2:
        return Build.view(x, maps.flip(x.shape, (a, b)), "flip")
    order = tuple(b if d == a else a if d == b else d for d in range(len(x.shape)))
    turned = b if times % 4 == 1 else a
    return Build.views(x, "rot90", lambda shape: maps.flip(shape, (turned,)), lambda shape: maps.permute(shape, order))


@lowers("aten.repeat_interleave", about="Each element several times", addressing=True)
def repeat_interleave(x: Value, repeats: Any, dim: int | None = None, **_: Any) -> Value:
    """x[..., i // repeats, ...].

    Raises:
        NotLowered: for repeats in a tensor.
    """
    if not isinstance(repeats, int):
        raise NotLowered("repeat_interleave with a tensor")
    if dim is None:
        x, dim = Build.reshape(x, (numel(x.shape),)), 0
    map = maps.repeat_interleave(x.shape, normalise(dim, len(x.shape)), sympy.Integer(repeats))
    return Build.view(x, map, "repeat_interleave")


@lowers("aten.broadcast_tensors", about="Tensors expanded to one shape", addressing=True)
def broadcast_tensors(values: list[Value], *, shapes: list[Shape], **_: Any) -> list[Value]:
    """Views, ``shapes`` being torch's results."""
    return [expand(v, shape=s) if v.shape != s else v for v, s in zip(values, shapes, strict=True)]


@lowers(
    "aten.contiguous",
    "aten.clone",
    "aten.detach",
    "aten.detach_",
    "aten.alias",
    "aten.lift_fresh_copy",
    addressing=True,
)
def same_values(x: Value, *_: Any, **__: Any) -> Value:
    """Operators that change nothing a kernel sees: contiguous, clone, detach, dropout in eval mode."""
    return x


@lowers("aten.dropout", "aten.feature_dropout", about="In eval mode: the same values", addressing=True)
def dropout(x: Value, p: float, train: bool, **_: Any) -> Value:
    """``x`` itself.

    Raises:
        NotLowered: in training mode, unless ``p`` is 0.
    """
    if train and p > 0:
        raise NotLowered("dropout in training mode draws random numbers")
    return x


@lowers("aten.mT", about="The last two dims exchanged", addressing=True)
def matrix_transpose(x: Value, **_: Any) -> Value:
    """``transpose`` of the last two dims."""
    return transpose(x, -2, -1)


@lowers("aten.fliplr", about="The second dim backwards", addressing=True)
def fliplr(x: Value, **_: Any) -> Value:
    """``flip`` of dim 1."""
    return flip(x, [1])


@lowers("aten.flipud", about="The first dim backwards", addressing=True)
def flipud(x: Value, **_: Any) -> Value:
    """``flip`` of dim 0."""
    return flip(x, [0])


@lowers("aten.narrow", about="Part of a dim", addressing=True)
def narrow(x: Value, dim: int, start: Any, length: Any, *, shape: Shape, **_: Any) -> Value:
    """``slice_`` of ``length`` places from ``start``."""
    return slice_(x, dim, start, shape=shape)
