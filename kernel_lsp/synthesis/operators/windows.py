"""The windows that convolutions and pooling go over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from ..graph import maps
from ..graph.build import Build, NotLowered, expr_of
from ..graph.sizes import ONE
from ..graph.value import Value

Sizes = tuple[sympy.Expr, ...]


@dataclass(frozen=True)
class Windows:
    """Sizes, steps, dilations and paddings, one for each of the last dimensions of a tensor."""

    sizes: Sizes
    step: Sizes
    dilation: Sizes
    padding: Sizes

    @property
    def rank(self) -> int:
        return len(self.sizes)


def each(given: Any, rank: int) -> Sizes:
    """A number for each of ``rank`` dimensions: one for all, or one each."""
    numbers = list(given) if isinstance(given, list | tuple) else [given]
    numbers = numbers * rank if len(numbers) == 1 else numbers
    if len(numbers) != rank:
        raise NotLowered(f"{len(numbers)} numbers for {rank} dimensions")
    return tuple(expr_of(n) for n in numbers)


def windows_of(x: Value, windows: Windows, counts: Sizes, pad: float | int, name: str = "window") -> Value:
    """``x`` [..., *spatial] as [..., *counts, *sizes]; ``pad`` stands where a window leaves ``x``."""
    rank = len(x.shape)
    along = tuple(range(rank - windows.rank, rank))
    map = maps.windows(
        x.shape, along, windows.sizes, windows.step, windows.dilation, windows.padding, counts=counts, pad=pad
    )
    return Build.view(x, map, name)


def last(rank: int, count: int) -> tuple[int, ...]:
    return tuple(range(rank - count, rank))


def without_batch(x: Value, spatial: int) -> tuple[Value, bool]:
    """``x`` with a batch dimension, and whether it had none."""
    return (Build.unsqueeze(x, 0), True) if len(x.shape) == spatial + 1 else (x, False)


def ones(count: int) -> Sizes:
    return (ONE,) * count
