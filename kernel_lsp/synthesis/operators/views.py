"""Operators that only address elements differently, and those that read through an index tensor."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph import maps
from ..graph.build import Build, NotLowered, dims_of, expr_of, normalise, shape_of
from ..graph.sizes import ONE, ZERO, same
from ..graph.value import Concat, Pointwise, Shape, Value, numel
from .registry import NotOne, lowers
from .scattering import every_so_often


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


def _all_that_stay(_: Any, fake: Any) -> tuple[sympy.Expr, ...]:
    return shape_of(fake.shape) if isinstance(fake, torch.Tensor) else ()


@lowers("aten.squeeze", about="Dims of size one left out", addressing=True, not_one=_all_that_stay)
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


@lowers("aten.slice", about="Part of a dim", addressing=True)
def slice_(
    x: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1, *, shape: Shape, **_: Any
) -> Value:
    """A view; ``shape`` says where it ends. Where all of the dim is taken it is ``x`` itself."""
    dim = normalise(dim, len(x.shape))
    size = x.shape[dim]
    begin = expr_of(start) if start is not None else ZERO
    if begin.is_number and begin < 0:
        begin = sympy.expand(size + begin)
        if begin.is_number and begin < 0:
            begin = ZERO
    if not begin.is_number and begin.could_extract_minus_sign():
        begin = sympy.expand(size + begin)
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
    if isinstance(x.op, Concat) and len(pieces := _between(x, dim, place, place + 1)) == 1:
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


def _replaced(x: Value, part: Value, dim: int, start: sympy.Expr, out: torch.dtype) -> Value:
    """``x`` with ``part`` in place of as many elements along ``dim``, from ``start``.

    The result's size is greater than that of ``x`` where the part does not lie inside: that makes it a condition.
    """
    end, size = sympy.expand(start + part.shape[dim]), x.shape[dim]
    inside = sympy.expand(size + sympy.Max(0, -start) + sympy.Max(0, end - size))
    before = [] if start == ZERO else _between(x, dim, ZERO, start)
    after = [] if same(end, size) else _between(x, dim, end, size)
    return cat([*before, part, *after], dim, shape=(*x.shape[:dim], inside, *x.shape[dim + 1 :]), out=out)


def _between(x: Value, dim: int, start: sympy.Expr, end: sympy.Expr) -> list[Value]:
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


@lowers("aten.embedding", about="The rows that an index names")
def embedding(weight: Value, index: Value, *_: Any, shape: Shape, **__: Any) -> Value:
    """A gather [..., D] of ``weight`` [N, D] by ``index`` [...]."""
    value = Build.gather(weight, index, 0, "rows", shape, "embedded")
    value.meaning = ("embedding", (weight, index))
    return value


@lowers("aten.broadcast_tensors", about="Tensors expanded to one shape", addressing=True)
def broadcast_tensors(values: list[Value], *, shapes: list[Shape], **_: Any) -> list[Value]:
    """Views, ``shapes`` being torch's results."""
    return [expand(v, shape=s) if v.shape != s else v for v, s in zip(values, shapes, strict=True)]


@lowers("aten.index_select", about="The places of a dim that an index names")
def index_select(x: Value, dim: int, index: Value, *, shape: Shape, **_: Any) -> Value:
    """A gather of ``index`` [n] or (), which counts as [1]; a tensor of shape () stays as it is."""
    if not index.shape:  # one place, which stays a dim
        index = Build.unsqueeze(index, 0)
    if not x.shape:
        return x
    return Build.gather(x, index, normalise(dim, len(x.shape)), "rows", shape)


@lowers("aten.gather", about="One element of a dim for each index")
def gather(x: Value, dim: int, index: Value, *, shape: Shape, **_: Any) -> Value:
    """A gather; ``index`` has the rank of ``x`` and the result's shape."""
    if not x.shape:
        return expand(x, shape=shape)
    if not index.shape:
        return Build.squeeze(Build.gather(x, Build.unsqueeze(index, 0), 0, "take", (ONE,)), (0,))
    return Build.gather(x, index, normalise(dim, len(x.shape)), "take", shape)


def full(*_: Any, shape: Shape, out: torch.dtype, fill: float, **__: Any) -> Value:
    """A constant tensor: a constant, expanded."""
    constant = Value(Pointwise("constant", (fill,)), (), out)
    return expand(constant, shape=shape) if shape else constant


def _fill(x: Any, args: tuple[Any, ...], name: str) -> Any:
    if "full" in name:
        return args[-1] if args else x
    if name == "aten.scalar_tensor":
        return x
    return 0 if "zeros" in name else 1


def filled(name: str) -> Any:
    """The lowering of ``name``, which makes a tensor of one number: an argument's, 0 or 1."""

    def lower(x: Any, *args: Any, shape: Shape, out: torch.dtype, **_: Any) -> Value:
        fill = _fill(x, args, name)
        if not isinstance(fill, int | float | bool):
            raise NotLowered("a fill value known only at run time")
        value = float(fill) if out.is_floating_point else bool(fill) if out == torch.bool else int(fill)
        return full(shape=shape, out=out, fill=value)

    return lower


def _triangle(x: Value, diagonal: int, keep: str) -> Value:
    rank = len(x.shape)
    row, col = Build.iota(x.shape, rank - 2, name="i"), Build.iota(x.shape, rank - 1, name="j")
    edge = row if diagonal == 0 else Build.pointwise("add", row, diagonal)
    inside = Build.pointwise(keep, col, edge, dtype=torch.bool)
    if x.dtype == torch.bool:
        return Build.pointwise("and", inside, x, dtype=torch.bool)
    zero: Any = 0.0 if x.dtype.is_floating_point else 0
    return Build.pointwise("where", inside, x, zero, dtype=x.dtype)


@lowers("aten.tril", about="The lower triangle")
def tril(x: Value, diagonal: int = 0, **_: Any) -> Value:
    """``where(column <= row + diagonal, x, 0)`` in the last two dims."""
    return _triangle(x, diagonal, "le")


@lowers("aten.triu", about="The upper triangle")
def triu(x: Value, diagonal: int = 0, **_: Any) -> Value:
    """``where(column >= row + diagonal, x, 0)`` in the last two dims."""
    return _triangle(x, diagonal, "ge")


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


for _name in (
    "full",
    "full_like",
    "zeros",
    "ones",
    "zeros_like",
    "ones_like",
    "new_zeros",
    "new_ones",
    "scalar_tensor",
    "new_full",
):
    lowers(f"aten.{_name}", about="One number in every place", addressing=True)(filled(f"aten.{_name}"))
