"""Elements by index tensors: ``x[i]``, ``x[:, i, j]``, the rows of an embedding, one element for each index."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, NotLowered, broadcast_shapes, normalise, size_operand
from ..graph.sizes import ONE
from ..graph.value import Shape, Value, numel
from .registry import lowers
from .views import expand


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


@lowers("aten.embedding", about="The rows that an index names")
def embedding(weight: Value, index: Value, *_: Any, shape: Shape, **__: Any) -> Value:
    """A gather [..., D] of ``weight`` [N, D] by ``index`` [...]."""
    value = Build.gather(weight, index, 0, "rows", shape, "embedded")
    value.meaning = ("embedding", (weight, index))
    return value


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
