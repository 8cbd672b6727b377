"""The windows that convolutions and pooling go over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv

from ..graph import maps
from ..graph.build import Build, NotLowered, expr_of, size_operand
from ..graph.division import Quotient
from ..graph.map import Map, dim, dims
from ..graph.sizes import ONE, ZERO, quotient
from ..graph.value import Pointwise, Shape, Value

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
        """How many dimensions the windows have."""
        return len(self.sizes)

    def along(self, k: int) -> Sizes:
        """Size, step, dilation and padding along the ``k``-th of those dimensions."""
        return self.sizes[k], self.step[k], self.dilation[k], self.padding[k]


def told(rank: int, *settings: tuple[str, Any, int]) -> tuple[str, ...]:
    """Those of ``settings``, (name, numbers, default), that are not the default, as a call has them: ``stride=2``."""
    found: list[str] = []
    for name, given, default in settings:
        if isinstance(given, str):
            found.append(f'{name}="{given}"')
            continue
        numbers = each(given, rank)
        if any(n != default for n in numbers):
            alike = all(n == numbers[0] for n in numbers)
            text = str(numbers[0]) if alike else "({})".format(", ".join(map(str, numbers)))
            found.append(f"{name}={text}")
    return tuple(found)


def each(given: Any, rank: int) -> Sizes:
    """A number for each of ``rank`` dimensions: one for all, or one each.

    Raises:
        NotLowered: they are not as many as dimensions.
    """
    numbers = list(given) if isinstance(given, list | tuple) else [given]
    numbers = numbers * rank if len(numbers) == 1 else numbers
    if len(numbers) != rank:
        raise NotLowered(f"{len(numbers)} numbers for {rank} dimensions")
    return tuple(expr_of(n) for n in numbers)


def windows_of(x: Value, windows: Windows, counts: Sizes, pad: float | int, *, rounds_up: bool = False) -> Value:
    """``x`` [..., *spatial] as [..., *counts, *sizes]; ``pad`` stands where a window leaves ``x``, as the last ones may where ``counts`` ``rounds_up``."""
    rank = len(x.shape)
    along = tuple(range(rank - windows.rank, rank))
    map = maps.windows(
        x.shape,
        along,
        windows.sizes,
        windows.step,
        windows.dilation,
        windows.padding,
        counts=counts,
        rounds_up=rounds_up,
        pad=pad,
    )
    return Build.view(x, map, "window")


def last(rank: int, count: int) -> tuple[int, ...]:
    """The last ``count`` dims of ``rank``."""
    return tuple(range(rank - count, rank))


def ones(count: int) -> Sizes:
    """Sizes of one for ``count`` dims, such as the dilation of windows without one."""
    return (ONE,) * count


def adaptive_windows(x: Value, sizes: Shape, counts: Shape) -> tuple[Value, Any]:
    """``x`` [..., *sizes] as [..., *counts, *longest windows], and how many elements each window has."""
    rank, spatial = len(x.shape), len(sizes)
    if all(quotient(n, c) is not None for n, c in zip(sizes, counts, strict=True)):
        whole = tuple(n / c for n, c in zip(sizes, counts, strict=True))
        even = Windows(whole, whole, ones(spatial), (ZERO,) * spatial)
        return windows_of(x, even, counts, 0.0), size_operand(sympy.prod(even.sizes))
    index, guard, longest = list(dims(rank)), [], []
    for k, (n, c) in enumerate(zip(sizes, counts, strict=True)):
        d = rank - spatial + k
        begin, end = Quotient(dim(d) * n, c), Quotient((dim(d) + 1) * n + c - 1, c)
        longest.append(_longest(n, c))
        index[d] = begin + dim(rank + k)
        guard.append((end - begin - dim(rank + k), ONE, n + 1))  # none is longer than the tensor
    shape = (*x.shape[: rank - spatial], *counts, *longest)
    seen = Build.view(x, Map(shape, x.shape, tuple(index), tuple(guard), 0.0), "window")
    every = Build.expand(Value(Pointwise("constant", (1.0,)), (), torch.float32), x.shape)
    held = Build.view(every, seen.op.map, "window")  # type: ignore[attr-defined]
    inside = last(len(seen.shape), spatial)
    count = Build.squeeze(Build.reduce("sum", held, inside, name="count"), inside)
    return seen, count


def _longest(n: sympy.Expr, count: sympy.Expr) -> sympy.Expr:
    """The most elements of a window where ``count`` windows go over ``n``, or one more where that is not known."""
    if not (n.is_Integer and count.is_Integer):
        return FloorDiv(n - 1, count) + 2
    n, count = int(n), int(count)
    return sympy.Integer(max(-(-(i + 1) * n // count) - i * n // count for i in range(count)))
