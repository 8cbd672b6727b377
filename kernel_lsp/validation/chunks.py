"""Large tensors looked at piece by piece: a comparison takes memory for a piece in float64, not for a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

#: elements that are compared at once
PIECE = 1 << 25


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[Callable[[int], tuple[int, ...]], list[torch.Tensor]]]:
    """The same parts of tensors of one shape, at most ``PIECE`` elements each.

    With each: from an index into the flattened part to one into the tensor.
    """
    first = tensors[0]
    if first.numel() <= PIECE:
        yield (lambda at, shape=first.shape: _unravel(at, shape)), list(tensors)  # type: ignore[misc]
        return
    if all(t.is_contiguous() for t in tensors):
        for begin in range(0, first.numel(), PIECE):
            yield (
                (lambda at, begin=begin: _unravel(begin + at, first.shape)),  # type: ignore[misc]
                [t.reshape(-1)[begin : begin + PIECE] for t in tensors],
            )
        return
    dim = max(range(first.dim()), key=lambda d: first.shape[d])
    count = max(1, PIECE * first.shape[dim] // first.numel())
    for begin in range(0, first.shape[dim], count):
        parts = [t.narrow(dim, begin, min(count, first.shape[dim] - begin)) for t in tensors]

        def index(at: int, begin: int = begin, shape: Any = parts[0].shape) -> tuple[int, ...]:
            inner = _unravel(at, shape)
            return (*inner[:dim], inner[dim] + begin, *inner[dim + 1 :])

        yield index, parts


def _unravel(at: int, shape: Any) -> tuple[int, ...]:
    index = []
    for n in reversed(shape):
        index.append(at % n)
        at //= n
    return tuple(reversed(index))


def identical(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether tensors of one shape hold the same values, NaN included; piece by piece."""
    a, b = bits(a), bits(b)
    return all(bool(((x == y) | ((x != x) & (y != y))).all()) for _, (x, y) in pieces(a, b)) if a.numel() else True


def bits(t: torch.Tensor) -> torch.Tensor:
    """A bool's bytes, since all that are not zero read as True, poison too; others as they are."""
    if t.dtype is torch.bool and not t.is_meta:
        return t.contiguous().view(torch.uint8)
    if t.dtype.itemsize == 1 and t.dtype.is_floating_point:  # float8: torch cannot compare those
        return t.to(torch.float32)
    return t
