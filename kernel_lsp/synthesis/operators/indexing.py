"""Elements by index tensors: ``x[i]``, ``x[:, i, j]``."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, NotLowered, broadcast_shapes, size_operand
from ..graph.value import Shape, Value, numel
from .registry import lowers


@lowers("aten.index", "aten._unsafe_index", about="Elements that index tensors name; not by bools")
def index(x: Value, indices: list[Value | None], *, shape: Shape, **_: Any) -> Value:
    """Several indices become one into their dims, merged; dims that do not follow one another go to the front.

    Raises:
        NotLowered: for indices that are not integers.
    """
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
