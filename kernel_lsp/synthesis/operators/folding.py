"""Windows put back where they were taken from: each element is the sum of those that cover it."""

from __future__ import annotations

from typing import Any

import sympy
from torch.utils._sympy.functions import FloorDiv

from ..graph.build import Build, NotLowered
from ..graph.division import Quotient, Remainder
from ..graph.map import Guard, Map, dim, dims
from ..graph.sizes import ONE, ZERO
from ..graph.value import Shape, Value, numel
from .registry import lowers
from .windows import Sizes, Windows, each, last


def _counts(spatial: Sizes, windows: Windows) -> Sizes:
    """How many windows go over each of the dimensions ``spatial``."""
    counts = []
    for k, n in enumerate(spatial):
        size, step, dilation, padding = windows.along(k)
        counts.append(FloorDiv(sympy.expand(n + 2 * padding - dilation * (size - 1) - 1), step) + 1)
    return tuple(counts)


def _windows(given: dict[str, Any]) -> Windows:
    sizes, step, dilation, padding = (each(given[key], 2) for key in ("kernel_size", "stride", "dilation", "padding"))
    return Windows(sizes, step, dilation, padding)


def _as_many(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """How many windows there are, and how many the image takes."""
    return ((given["x"].shape[-1], numel(_counts(each(given["output_size"], 2), _windows(given)))),)


@lowers(
    "aten.col2im",
    about="The sum of the windows that cover each element",
    formula="fold(v) = the sums of the windows v that cover each element",
    equal=_as_many,
)
def col2im(
    x: Value, output_size: list[Any], kernel_size: Any, dilation: Any, padding: Any, stride: Any, *, shape: Shape
) -> Value:
    """``x`` [N, C * a window's elements, windows], or without N, as images [N, C, H, W].

    Raises:
        NotLowered: the size of a window, or where windows lie, varies.
    """
    windows = Windows(each(kernel_size, 2), each(stride, 2), each(dilation, 2), each(padding, 2))
    if not all(n.is_Integer for one in (windows.sizes, windows.step, windows.dilation, windows.padding) for n in one):
        raise NotLowered("windows whose size varies")
    rank, counts = len(shape), _counts(shape[-2:], windows)
    axes = [_Axis(dim(rank - 2 + k), dim(rank + k), counts[k], *windows.along(k)) for k in range(2)]
    channel = dim(rank - 3) * numel(windows.sizes) + axes[0].place * windows.sizes[1] + axes[1].place
    index = (*dims(rank - 3), channel, axes[0].window * counts[1] + axes[1].window)
    guard = (*axes[0].guard, *axes[1].guard)
    covering = Map((*shape, *(axis.most for axis in axes)), x.shape, index, guard, 0.0 if guard else None)
    result = Build.view(x, covering, "covering")
    inside = last(rank + 2, 2)
    if any(axis.most != ONE for axis in axes):
        result = Build.reduce("sum", result, inside, name="folded")
    result = Build.squeeze(result, inside)
    result.meaning = ("fold", (x,))
    return result


class _Axis:
    """Along one dimension of the image: its element ``at`` is covered by at most ``most`` windows, which ``tap`` goes through.

    ``window``: which of the ``count`` windows that is; ``place``: where in it the element lies; ``guard``: there is such a window.
    """

    def __init__(
        self,
        at: sympy.Symbol,
        tap: sympy.Symbol,
        count: sympy.Expr,
        size: sympy.Expr,
        step: sympy.Expr,
        dilation: sympy.Expr,
        padding: sympy.Expr,
    ) -> None:
        guard: list[Guard] = []
        if dilation == ONE:  # the last window that has begun, and those before it
            self.most = -(-size // step)
            self.window = Quotient(at + padding, step) - tap
            self.place = Remainder(at + padding, step) + step * tap
            if size % step:
                guard.append((self.place, ZERO, size))
        else:  # those that have it as their first element, their second, and so on, where such a window begins there
            self.most, self.place = size, tap
            beyond = -(-dilation * (size - 1) // step)  # windows, so that what is divided is not negative
            before = at + padding - dilation * tap + beyond * step
            self.window = Quotient(before, step) - beyond
            if step != ONE:
                guard.append((Remainder(before, step), ZERO, ONE))
        self.guard = (*guard, (self.window, ZERO, count))
