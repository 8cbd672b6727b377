"""Pooling: reductions over windows.

A window is seen as dimensions of its own behind those that count the windows; its maximum or sum is a reduction of these.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered, number_or_size, size_operand
from ..graph.sizes import ONE, ZERO
from ..graph.value import Average, Shape, Value, numel
from .registry import lowers
from .windows import Windows, adaptive_windows, each, last, told, windows_of


def maximum(spatial: int, *, indices: bool) -> Any:
    """The lowering of max pooling over the last ``spatial`` dims, 1 to 3; ``indices``: with the place of each, int64.

    Raises:
        NotLowered, by the lowering: the elements are integers, or the size of a window varies.
    """

    def lower(
        x: Value,
        size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        *,
        shape: Shape,
        out: torch.dtype,
    ) -> Any:
        """max_pool1d to 3d: the greatest of each window, a NaN where there is one, and where it stands."""
        if not x.dtype.is_floating_point:
            raise NotLowered(f"the maximum of windows in {x.dtype}")
        windows = _windows(size, stride, padding, dilation, spatial)
        seen = windows_of(x, windows, shape[-spatial:], -math.inf, rounds_up=ceil_mode)
        pooled = Build.reduce("amax", seen, last(len(seen.shape), spatial), name="pooled")
        pooled.dtype, pooled.meaning = x.dtype, (f"max_pool{spatial}d", (x, *_told(windows)))
        result = Build.squeeze(pooled, last(len(seen.shape), spatial))
        return [result, _places(seen, x, windows)] if indices else result

    return lower


def _places(seen: Value, x: Value, windows: Windows) -> Value:
    """Where the greatest of each window stands among the last dimensions of ``x``, in row-major order: the first of equal ones, the last NaN."""
    of = functools.partial(Build.pointwise, dtype=torch.int64)
    flat = Build.reshape(seen, (*seen.shape[: -windows.rank], sympy.prod(windows.sizes)))
    rank = len(flat.shape) - 1
    greatest = Build.squeeze(Build.reduce("argmax", flat, (rank,), name="place"), (rank,))
    # Of several NaN torch's pooling gives the place of the last, its argmax that of the first.
    place = Build.iota(flat.shape, rank, torch.int32)
    missing = Build.pointwise("where", Build.comparison("ne", flat, flat), place, -1, dtype=torch.int32)
    last = Build.squeeze(Build.reduce("max", missing, (rank,), dtype=torch.int32, name="last_nan"), (rank,))
    greatest = of("maximum_int", greatest, last, name="place")
    result: Value | None = None
    inner = ONE
    for k in reversed(range(windows.rank)):
        size, step, dilation, padding = windows.along(k)
        within = of("floordiv_int", greatest, int(inner)) if inner != ONE else greatest
        within = of("mod_int", within, int(size)) if k else within
        within = of("mul", within, int(dilation)) if dilation != ONE else within
        begin = of("mul", Build.iota(greatest.shape, rank - windows.rank + k, torch.int64), int(step))
        at = of("add", begin, within)
        if padding != ZERO:
            # Where nothing is above -inf, the first place is the greatest; in the margin it means the first inside. That is at
            # 0, or where the steps of the dilation come to first: ``above`` is never negative, and the same place in a step.
            above = -(-padding // dilation) * dilation - padding
            first = of("mod_int", of("add", begin, int(above)), int(dilation)) if dilation != ONE else 0
            at = of("maximum_int", of("sub", at, int(padding)), first)
        stride = sympy.prod(x.shape[len(x.shape) - windows.rank + k + 1 :])
        at = of("mul", at, size_operand(stride)) if stride != ONE else at
        result = at if result is None else of("add", at, result)
        inner *= size
    assert result is not None
    return result


def average(spatial: int) -> Any:
    """The lowering of average pooling over the last ``spatial`` dims, 1 to 3.

    Raises:
        NotLowered, by the lowering: the size of a window varies.
    """

    def lower(
        x: Value,
        size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
        *,
        shape: Shape,
        out: torch.dtype,
    ) -> Value:
        """avg_pool1d to 3d: the sum of each window over how many elements it has, those of the padding counted or not."""
        windows, counts = _windows(size, stride, padding, 1, spatial), shape[-spatial:]
        divisor: Any = divisor_override
        if divisor is None and count_include_pad and not ceil_mode:
            divisor = size_operand(sympy.prod(windows.sizes))
        elif divisor is None:
            divisor = _how_many(x.shape[-spatial:], windows, counts, count_include_pad)
        seen = windows_of(x, windows, counts, 0.0, rounds_up=ceil_mode)
        mean = _mean(x, seen, divisor, out, f"avg_pool{spatial}d", _told(windows))
        if divisor_override is None and not ceil_mode and not any(windows.padding):
            mean.averaged = Average(x, windows.sizes, windows.step)
        return mean

    return lower


def adaptive_average(spatial: int) -> Any:
    """The lowering of adaptive average pooling over the last ``spatial`` dims, 1 to 3."""

    def lower(x: Value, *_: Any, shape: Shape, out: torch.dtype) -> Value:
        """adaptive_avg_pool1d to 3d: window i goes from floor(i * n / count) to before ceil((i + 1) * n / count)."""
        name = f"adaptive_avg_pool{spatial}d"
        if all(n == ONE for n in shape[-spatial:]):  # one window has all elements
            dims = tuple(range(len(x.shape) - spatial, len(x.shape)))
            return _over(
                Build.reduce("sum", x, dims, name="total"), number_or_size(numel(x.shape[-spatial:])), x, out, name
            )
        seen, divisor = adaptive_windows(x, x.shape[-spatial:], shape[-spatial:])
        return _mean(x, seen, divisor, out, name)

    return lower


def _told(windows: Windows) -> tuple[str, ...]:
    """The settings of a pooling, as a call has them: its windows, and what is not the default."""
    rank = windows.rank
    (sizes,) = (one.partition("=")[2] for one in told(rank, ("size", windows.sizes, 0)))
    stride = told(rank, ("stride", windows.step, 0)) if windows.step != windows.sizes else ()
    return (sizes, *stride, *told(rank, ("padding", windows.padding, 0), ("dilation", windows.dilation, 1)))


def _mean(x: Value, seen: Value, divisor: Any, out: torch.dtype, name: str, settings: tuple[str, ...] = ()) -> Value:
    """The sum of each window, which is ``seen`` as the last dimensions, over ``divisor``."""
    inside = tuple(range(len(x.shape), len(seen.shape)))
    total = Build.squeeze(Build.reduce("sum", seen, inside, name="total"), inside)
    return _over(total, divisor, x, out, name, settings)


def _over(total: Value, divisor: Any, x: Value, out: torch.dtype, name: str, settings: tuple[str, ...] = ()) -> Value:
    """``total`` over ``divisor``, which is what the operator ``name`` gives for ``x``."""
    mean = Build.pointwise("div", total, divisor, dtype=out)
    mean.meaning = (name, (x, *settings))
    return mean


def _how_many(spatial: Shape, windows: Windows, counts: Shape, with_margin: bool) -> Value:
    """How many elements each window has: shape ``counts``. Windows are cut where the padding ends, too."""
    of = functools.partial(Build.pointwise, dtype=torch.int32)
    result: Value | None = None
    for k, n in enumerate(spatial):
        size, step, _, padding = windows.along(k)
        margin = padding if with_margin else ZERO
        begin = of("sub", of("mul", Build.iota(counts, k), int(step)), int(padding))
        end = of("minimum_int", of("add", begin, int(size)), size_operand(n + margin))
        length = of("sub", end, of("maximum_int", begin, -int(margin)))
        result = length if result is None else of("mul", result, length)
    assert result is not None
    result.name = "count"
    return result


def _windows(size: Any, stride: Any, padding: Any, dilation: Any, spatial: int) -> Windows:
    sizes = each(size, spatial)
    step = sizes if stride is None or (isinstance(stride, list | tuple) and not stride) else each(stride, spatial)
    found = Windows(sizes, step, each(dilation, spatial), each(padding, spatial))
    if not all(n.is_Integer for group in (found.sizes, found.step, found.dilation, found.padding) for n in group):
        raise NotLowered("windows whose size varies")
    return found


def _windows_fit(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """avg_pool3d refuses images that are smaller than a window, also where their margins make up for it; avg_pool2d does not."""
    return tuple((n - 1, size) for n, size in zip(each(given["size"], 3), given["x"].shape[-3:], strict=True))


for _n in (1, 2, 3):
    lowers(f"aten.max_pool{_n}d", about="The maximum of each window")(maximum(_n, indices=False))
    lowers(f"aten.max_pool{_n}d_with_indices", about="The maximum of each window, and its place")(
        maximum(_n, indices=True)
    )
    lowers(f"aten.avg_pool{_n}d", about="The mean of each window", less=_windows_fit if _n == 3 else None)(average(_n))
    lowers(f"aten.adaptive_avg_pool{_n}d", about="The means of as many windows as are asked for")(adaptive_average(_n))
