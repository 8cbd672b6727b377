"""Operators that only address elements differently, and those that read through an index tensor."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph import maps
from ..graph.build import Build, NotLowered, dims_of, expr_of, normalise
from ..graph.sizes import ONE, ZERO, same
from ..graph.value import Pointwise, Shape, Value, numel
from . import margins


def reshape(x: Value, *_: Any, shape: Shape, **__: Any) -> Value:
    return Build.reshape(x, shape)


def permute(x: Value, dims: list[int], **_: Any) -> Value:
    return Build.permute(x, tuple(normalise(d, len(x.shape)) for d in dims))


def transpose(x: Value, a: int, b: int, **_: Any) -> Value:
    order = list(range(len(x.shape)))
    a, b = normalise(a, len(order)), normalise(b, len(order))
    order[a], order[b] = order[b], order[a]
    return Build.permute(x, tuple(order))


def t(x: Value, **_: Any) -> Value:
    return Build.permute(x, tuple(reversed(range(len(x.shape)))))


def unsqueeze(x: Value, dim: int, **_: Any) -> Value:
    return Build.unsqueeze(x, normalise(dim, len(x.shape) + 1))


def squeeze(x: Value, dims: Any = None, **_: Any) -> Value:
    chosen = dims_of(dims, len(x.shape))
    return Build.squeeze(x, tuple(d for d in chosen if x.shape[d] == ONE))


def expand(x: Value, *_: Any, shape: Shape, **__: Any) -> Value:
    while len(x.shape) < len(shape):
        x = Build.unsqueeze(x, 0)
    return Build.expand(x, shape)


def slice_(
    x: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1, *, shape: Shape, **_: Any
) -> Value:
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


def select(x: Value, dim: int, index: Any, **_: Any) -> Value:
    dim = normalise(dim, len(x.shape))
    place = expr_of(index)
    if place.is_number and place < 0:
        place = sympy.expand(x.shape[dim] + place)
    return Build.select(x, dim, place)


def split_sizes(x: Value, dim: int, shapes: list[Shape]) -> list[Value]:
    """Pieces of ``x`` along ``dim``, one per shape."""
    dim = normalise(dim, len(x.shape))
    pieces, start = [], ZERO
    for shape in shapes:
        pieces.append(Build.slice(x, dim, start, ONE, shape[dim]))
        start = sympy.expand(start + shape[dim])
    return pieces


def chunk(x: Value, _: Any, dim: int = 0, *, shapes: list[Shape], **__: Any) -> list[Value]:
    return split_sizes(x, dim, shapes)


def unbind(x: Value, dim: int = 0, *, shapes: list[Shape], **_: Any) -> list[Value]:
    dim = normalise(dim, len(x.shape))
    return [Build.select(x, dim, sympy.Integer(i)) for i in range(len(shapes))]


#: tensors beyond which a concatenation is left to torch: a kernel would ask of each element which of them it is from
_MOST_PIECES = 8


def cat(values: list[Value], dim: int = 0, *, shape: Shape, out: torch.dtype, **_: Any) -> Value:
    dim = normalise(dim, len(shape))
    values = [v for v in values if not (len(v.shape) == 1 and v.shape[0] == ZERO)]
    if len(values) > _MOST_PIECES:
        raise NotLowered(f"a concatenation of {len(values)} tensors")
    return Build.concat(tuple(Build.cast(v, out) for v in values), dim, shape, out)


def stack(values: list[Value], dim: int = 0, *, shape: Shape, out: torch.dtype, **_: Any) -> Value:
    dim = normalise(dim, len(shape))
    return cat([Build.unsqueeze(v, dim) for v in values], dim, shape=shape, out=out)


def flip(x: Value, dims: list[int], **_: Any) -> Value:
    return Build.view(x, maps.flip(x.shape, tuple(normalise(d, len(x.shape)) for d in dims)), "flip")


def rot90(x: Value, times: int = 1, dims: Any = (0, 1), **_: Any) -> Value:
    a, b = (normalise(d, len(x.shape)) for d in dims)
    if times % 4 == 0:
        return x
    if times % 4 == 2:
        return Build.view(x, maps.flip(x.shape, (a, b)), "flip")
    turned = Build.view(x, maps.flip(x.shape, (b if times % 4 == 1 else a,)), "flip")
    return transpose(turned, a, b)


def _replaced(x: Value, part: Value, dim: int, start: sympy.Expr, out: torch.dtype) -> Value:
    """``x`` with ``part`` in place of as many elements along ``dim``, from ``start``."""
    end, size = sympy.expand(start + part.shape[dim]), x.shape[dim]
    before = [Build.slice(x, dim, ZERO, ONE, start)] if start != ZERO else []
    after = [] if same(end, size) else [Build.slice(x, dim, end, ONE, sympy.expand(size - end))]
    return cat([*before, part, *after], dim, shape=x.shape, out=out)


def select_scatter(x: Value, part: Value, dim: int, index: Any, *, out: torch.dtype, **_: Any) -> Value:
    dim, place = normalise(dim, len(x.shape)), expr_of(index)
    place = sympy.expand(x.shape[dim] + place) if place.could_extract_minus_sign() else place
    return _replaced(x, Build.unsqueeze(part, dim), dim, place, out)


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
    dim, begin = normalise(dim, len(x.shape)), expr_of(start or 0)
    if step != 1:
        raise NotLowered("slice_scatter with a step")
    begin = sympy.expand(x.shape[dim] + begin) if begin.could_extract_minus_sign() else begin
    return _replaced(x, part, dim, begin, out)


def repeat_interleave(x: Value, repeats: Any, dim: int | None = None, **_: Any) -> Value:
    """x[..., i // repeats, ...]"""
    if not isinstance(repeats, int):
        raise NotLowered("repeat_interleave with a tensor")
    if dim is None:
        x, dim = Build.reshape(x, (numel(x.shape),)), 0
    map = maps.repeat_interleave(x.shape, normalise(dim, len(x.shape)), sympy.Integer(repeats))
    return Build.view(x, map, "repeat_interleave")


def embedding(weight: Value, index: Value, *_: Any, shape: Shape, **__: Any) -> Value:
    value = Build.gather(weight, index, 0, "rows", shape, "embedded")
    value.meaning = ("embedding", (weight, index))
    return value


def broadcast_tensors(values: list[Value], *, shapes: list[Shape], **_: Any) -> list[Value]:
    return [expand(v, shape=s) if v.shape != s else v for v, s in zip(values, shapes, strict=True)]


def index_select(x: Value, dim: int, index: Value, *, shape: Shape, **_: Any) -> Value:
    return Build.gather(x, index, normalise(dim, len(x.shape)), "rows", shape)


def gather(x: Value, dim: int, index: Value, *, shape: Shape, **_: Any) -> Value:
    return Build.gather(x, index, normalise(dim, len(x.shape)), "take", shape)


def full(*_: Any, shape: Shape, out: torch.dtype, fill: float, **__: Any) -> Value:
    """A constant tensor: a constant, expanded."""
    constant = Value(Pointwise("constant", (fill,)), (), out)
    return expand(constant, shape=shape) if shape else constant


def _fill(x: Any, args: tuple[Any, ...], name: str) -> Any:
    if name.startswith("aten.full"):
        return args[0] if args else x
    return 0 if "zeros" in name else 1


def filled(name: str) -> Any:
    def lower(x: Any, *args: Any, shape: Shape, out: torch.dtype, **_: Any) -> Value:
        fill = _fill(x, args, name)
        if not isinstance(fill, int | float | bool):
            raise NotLowered("a fill value known only at run time")
        value = float(fill) if out.is_floating_point else bool(fill) if out == torch.bool else int(fill)
        return full(shape=shape, out=out, fill=value)

    return lower


def arange(*args: Any, shape: Shape, out: torch.dtype, **_: Any) -> Value:
    start, step = 0, 1
    if len(args) >= 2:
        start = args[0]
    if len(args) >= 3:
        step = args[2]
    if not (isinstance(start, int) and isinstance(step, int)):
        raise NotLowered("arange with steps that are not integers")
    index = Build.iota(shape, 0, torch.int32, "position")
    value = index
    if step != 1:
        value = Build.pointwise("mul", value, step)
    if start != 0:
        value = Build.pointwise("add", value, start)
    cast = Build.cast(value, out)
    assert isinstance(cast, Value)
    return cast


def _triangle(x: Value, diagonal: int, keep: str) -> Value:
    rank = len(x.shape)
    row, col = Build.iota(x.shape, rank - 2, name="i"), Build.iota(x.shape, rank - 1, name="j")
    edge = row if diagonal == 0 else Build.pointwise("add", row, diagonal)
    inside = Build.pointwise(keep, col, edge, dtype=torch.bool)
    if x.dtype == torch.bool:
        return Build.pointwise("and", inside, x, dtype=torch.bool)
    zero: Any = 0.0 if x.dtype.is_floating_point else 0
    return Build.pointwise("where", inside, x, zero, dtype=x.dtype)


def tril(x: Value, diagonal: int = 0, **_: Any) -> Value:
    return _triangle(x, diagonal, "le")


def triu(x: Value, diagonal: int = 0, **_: Any) -> Value:
    return _triangle(x, diagonal, "ge")


def same_values(x: Value, *_: Any, **__: Any) -> Value:
    """Operators that change nothing a kernel sees: contiguous, clone, detach, dropout in eval mode."""
    return x


def dropout(x: Value, p: float, train: bool, **_: Any) -> Value:
    if train and p > 0:
        raise NotLowered("dropout in training mode draws random numbers")
    return x


OPERATORS: dict[str, Any] = {
    **margins.OPERATORS,
    "aten.view": reshape,
    "aten.reshape": reshape,
    "aten._unsafe_view": reshape,
    "aten.flatten": reshape,
    "aten.unflatten": reshape,
    "aten.view_as": reshape,
    "aten.reshape_as": reshape,
    "aten.permute": permute,
    "aten.transpose": transpose,
    "aten.t": t,
    "aten.numpy_T": t,
    "aten.mT": lambda x, **k: transpose(x, -2, -1),
    "aten.swapaxes": transpose,
    "aten.swapdims": transpose,
    "aten.unsqueeze": unsqueeze,
    "aten.squeeze": squeeze,
    "aten.expand": expand,
    "aten.expand_as": expand,
    "aten.slice": slice_,
    "aten.select": select,
    "aten.narrow": lambda x, dim, start, length, *, shape, **k: slice_(x, dim, start, shape=shape),
    "aten.chunk": chunk,
    "aten.split": chunk,
    "aten.split_with_sizes": chunk,
    "aten.tensor_split": chunk,
    "aten.unbind": unbind,
    "aten.cat": cat,
    "aten.stack": stack,
    "aten.flip": flip,
    "aten.fliplr": lambda x, **k: flip(x, [1]),
    "aten.flipud": lambda x, **k: flip(x, [0]),
    "aten.rot90": rot90,
    "aten.select_scatter": select_scatter,
    "aten.slice_scatter": slice_scatter,
    "aten.repeat_interleave": repeat_interleave,
    "aten.embedding": embedding,
    "aten.index_select": index_select,
    "aten.gather": gather,
    "aten.broadcast_tensors": broadcast_tensors,
    "aten.arange": arange,
    "aten.tril": tril,
    "aten.triu": triu,
    **{
        name: filled(name)
        for name in (
            "aten.full",
            "aten.full_like",
            "aten.zeros",
            "aten.ones",
            "aten.zeros_like",
            "aten.ones_like",
            "aten.new_zeros",
            "aten.new_ones",
            "aten.scalar_tensor",
        )
    },
    "aten.contiguous": same_values,
    "aten.clone": same_values,
    "aten.detach": same_values,
    "aten.detach_": same_values,
    "aten.alias": same_values,
    "aten.lift_fresh_copy": same_values,
    "aten.dropout": dropout,
    "aten.feature_dropout": dropout,
}
