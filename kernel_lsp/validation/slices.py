"""Slices of an independent dimension: which there are, in which order they are looked at, and what lies in one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

#: shortest slice: what torch.export says of a dimension it does not say of its size 1
LEAST = 2


@dataclass
class Part:
    """float64's answer to the inputs [start:stop] of an independent dimension; ``dims``: that dimension of each output."""

    start: int
    stop: int
    exact: Any
    dims: list[int]


def narrowed(tensors: list[torch.Tensor], dims: list[int], part: Part) -> list[torch.Tensor]:
    """The slices of outputs that ``part`` is about; ``dims``: the dimension of each output that is cut."""
    return [t.narrow(d, part.start, part.stop - part.start) for t, d in zip(tensors, dims, strict=True)]


def cut(tree: Any, dims: list[int | None], start: int, stop: int) -> Any:
    """The inputs of a tree from ``start`` to ``stop`` along the dimension that ``dims`` has for each tensor."""
    along = iter(dims)

    def narrow(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        dim = next(along)
        return value if dim is None else value.narrow(dim, start, stop - start)

    return pytree.tree_map(narrow, tree)


def bounds(size: int, rows: int) -> list[tuple[int, int]]:
    """(start, stop) of slices of ``rows``; the last one is longer where less than LEAST would be left."""
    starts = [*range(0, max(size - LEAST, 0) + 1, rows)]
    return [*zip(starts, [*starts[1:], size], strict=True)]


def spread(count: int) -> Iterator[int]:
    """0 … count - 1, the ends first and then always the middle of the widest gap left."""
    yield 0
    if count > 1:
        yield count - 1
    gaps = [(0, count - 1)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            yield middle
            gaps += [(low, middle), (middle, high)]
