"""Elements by index tensors: ``x[i]``, ``x[:, i, j]``."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, NotLowered, broadcast_shapes, size_operand
from ..graph.sizes import ONE
from ..graph.value import Shape, Value, numel
from .registry import lowers


@lowers("aten.index", "aten._unsafe_index", about="Elements that index tensors name; not by bools")
def index(x: Value, indices: list[Value | None], *, shape: Shape, **_: Any) -> Value:
    """Several indices become one into their dims, merged; dims that do not follow one another go to the front."""
    dims = [dim for dim, one in enumerate(indices) if one is not None]
    chosen = [one for one in indices if one is not None]
    if not dims or any(one.dtype not in (torch.int64, torch.int32) for one in chosen):
        raise NotLowered("an index that is not made of integers")
    if dims != list(range(dims[0], dims[-1] + 1)):
        x = Build.permute(x, (*dims, *(dim for dim in range(len(x.shape)) if dim not in dims)))
        dims = list(range(len(dims)))
    first, sizes = dims[0], x.shape[dims[0] : dims[-1] + 1]
    place: Value | None = None
    for one, size in zip(chosen, sizes, strict=True):
        own = _from_the_front(one, size)
        if place is not None:
            own = Build.pointwise(
                "add", Build.pointwise("mul", place, _count(size), dtype=torch.int64), own, dtype=torch.int64
            )
        place = own
    assert place is not None
    wanted = broadcast_shapes(*(one.shape for one in chosen))
    if place.shape != wanted:
        place = Build.expand(place, wanted)
    merged = Build.reshape(x, (*x.shape[:first], numel(sizes), *x.shape[first + len(dims) :]))
    return Build.gather(merged, place, first, "rows", shape)


def _count(size: Any) -> Any:
    return int(size) if size.is_number else size_operand(size)


def _from_the_front(place: Value, size: Any) -> Value:
    """Negative places count from the end."""
    place = Build.cast(place, torch.int64)
    behind = Build.pointwise("add", place, _count(size), dtype=torch.int64)
    return Build.pointwise("where", Build.comparison("lt", place, 0), behind, place, dtype=torch.int64)


@lowers("aten.constant_pad_nd", about="With a number around")
def constant_pad_nd(x: Value, pad: list[int], value: float = 0.0, *, shape: Shape, out: torch.dtype, **_: Any) -> Value:
    """A concatenation in each dim that is padded; a negative count cuts off."""
    from .views import full

    if any(not isinstance(count, int) for count in pad):
        raise NotLowered("padding by a size")
    fill: Any = float(value) if out.is_floating_point else bool(value) if out == torch.bool else int(value)
    rank = len(x.shape)
    for i in range(0, len(pad), 2):
        dim, before, after = rank - 1 - i // 2, pad[i], pad[i + 1]
        if before < 0 or after < 0:
            start, less = max(-before, 0), max(-before, 0) + max(-after, 0)
            size = x.shape[dim] - less
            x = Build.slice(x, dim, size * 0 + start, ONE, size)
        pieces = [x]
        for count, place in ((before, 0), (after, 2)):
            if count > 0:
                border = (*x.shape[:dim], ONE * count, *x.shape[dim + 1 :])
                pieces.insert(place, full(shape=border, out=out, fill=fill))
        if len(pieces) > 1:
            size = sum((piece.shape[dim] for piece in pieces), ONE * 0)
            x = Build.concat(tuple(pieces), dim, (*x.shape[:dim], size, *x.shape[dim + 1 :]), out)
    return x


@lowers("aten.diagonal", about="What stands on a diagonal")
def diagonal(x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1, *, shape: Shape, **_: Any) -> Value:
    """Every (columns + 1)-th element of the two dims, merged."""
    rank = len(x.shape)
    row, column = dim1 % rank, dim2 % rank
    turned = Build.permute(x, (*(dim for dim in range(rank) if dim not in (row, column)), row, column))
    rows, columns = turned.shape[-2:]
    if not columns.is_number:
        raise NotLowered("a diagonal of a dim whose size varies")
    merged = Build.reshape(turned, (*turned.shape[:-2], rows * columns))
    place = Build.iota((shape[-1],), 0, torch.int32, "position")
    place = Build.pointwise("mul", place, int(columns) + 1)
    start = offset if offset >= 0 else -offset * int(columns)
    if start:
        place = Build.pointwise("add", place, start)
    return Build.gather(merged, place, rank - 2, "rows", shape)
