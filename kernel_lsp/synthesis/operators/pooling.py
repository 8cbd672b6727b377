"""Pooling: reductions over windows."""

from __future__ import annotations

import functools
import math
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv

from ..graph.build import Build, NotLowered, size_operand
from ..graph.division import Quotient
from ..graph.map import Map, dim, dims
from ..graph.sizes import ONE, ZERO, quotient
from ..graph.value import Pointwise, Shape, Value
from .registry import lowers
from .windows import Windows, each, last, ones, windows_of


def maximum(spatial: int, *, indices: bool) -> Any:
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
        seen = windows_of(x, windows, shape[-spatial:], -math.inf)
        inside = last(len(seen.shape), spatial)
        highest = Build.reduce("amax", seen, inside, name="highest")
        highest.dtype = x.dtype
        highest.meaning = (f"max_pool{spatial}d", (x,))
        result = Build.squeeze(highest, inside)
        return [result, _positions(seen, x, windows)] if indices else result

    return lower


def _positions(seen: Value, x: Value, windows: Windows) -> Value:
    """Where the greatest of each window stands among the last dimensions of ``x``, in row-major order."""
    count = windows.rank
    flat = Build.reshape(seen, (*seen.shape[:-count], sympy.prod(windows.sizes)))
    rank = len(flat.shape) - 1
    place = Build.squeeze(Build.reduce("argmax", flat, (rank,), name="place"), (rank,))
    result: Value | None = None
    inner = ONE
    for k in reversed(range(count)):
        within = Build.pointwise("floordiv_int", place, int(inner), dtype=torch.int64) if inner != ONE else place
        if k:
            within = Build.pointwise("mod_int", within, int(windows.sizes[k]), dtype=torch.int64)
        if windows.dilation[k] != ONE:
            within = Build.pointwise("mul", within, int(windows.dilation[k]), dtype=torch.int64)
        begin = Build.iota(place.shape, rank - count + k, torch.int64)
        begin = Build.pointwise("mul", begin, int(windows.step[k]), dtype=torch.int64)
        at = Build.pointwise("add", begin, within, dtype=torch.int64)
        if windows.padding[k] != ZERO:
            at = Build.pointwise("sub", at, int(windows.padding[k]), dtype=torch.int64)
            # Where nothing is above -inf, the first place is the greatest; in the margin it means the first inside.
            at = Build.pointwise("maximum_int", at, _first_inside(windows, k, place.shape, rank), dtype=torch.int64)
        stride = sympy.prod(x.shape[len(x.shape) - count + k + 1 :])
        if stride != ONE:
            at = Build.pointwise("mul", at, size_operand(stride), dtype=torch.int64)
        result = at if result is None else Build.pointwise("add", at, result, dtype=torch.int64)
        inner *= windows.sizes[k]
    assert result is not None
    return result


def _first_inside(windows: Windows, k: int, shape: Shape, rank: int) -> Any:
    """The first place along dimension ``k`` of the windows that a window may take, where it begins in the margin."""
    dilation, padding = int(windows.dilation[k]), int(windows.padding[k])
    if dilation == 1:
        return 0
    begin = Build.iota(shape, rank - windows.rank + k, torch.int64)
    begin = Build.pointwise("mul", begin, int(windows.step[k]), dtype=torch.int64)
    above = -(-padding // dilation) * dilation - padding  # never negative, and the same place in a step of the dilation
    return Build.pointwise(
        "mod_int", Build.pointwise("add", begin, above, dtype=torch.int64), dilation, dtype=torch.int64
    )


def average(spatial: int) -> Any:
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
        windows = _windows(size, stride, padding, 1, spatial)
        counts = shape[-spatial:]
        seen = windows_of(x, windows, counts, 0.0)
        inside = last(len(seen.shape), spatial)
        total = Build.reduce("sum", seen, inside, name="total")
        divisor: Any = divisor_override
        if divisor is None and count_include_pad and not ceil_mode:
            divisor = size_operand(sympy.prod(windows.sizes))
        elif divisor is None:
            divisor = _how_many(x.shape[-spatial:], windows, counts, count_include_pad)
        mean = Build.pointwise("div", Build.squeeze(total, inside), divisor, dtype=out)
        mean.meaning = (f"avg_pool{spatial}d", (x,))
        return mean

    return lower


def _how_many(spatial: Shape, windows: Windows, counts: Shape, count_include_pad: bool) -> Value:
    """How many elements each window has: shape ``counts``. Windows are cut where the padding ends, too."""
    margin = windows.padding if count_include_pad else (ZERO,) * windows.rank
    result: Value | None = None
    for k, (n, size, step, padding) in enumerate(
        zip(spatial, windows.sizes, windows.step, windows.padding, strict=True)
    ):
        place = functools.partial(Build.pointwise, dtype=torch.int32)
        begin = place("sub", place("mul", Build.iota(counts, k), int(step)), int(padding))
        end = place("minimum_int", place("add", begin, int(size)), size_operand(n + margin[k]))
        length = place("sub", end, place("maximum_int", begin, -int(margin[k])))
        result = length if result is None else place("mul", result, length)
    assert result is not None
    result.name = "count"
    return result


def adaptive(kind: str, spatial: int) -> Any:
    def lower(x: Value, *_: Any, shape: Shape, out: torch.dtype) -> Any:
        """adaptive_avg_pool1d to 3d: window i goes from floor(i * n / count) to before ceil((i + 1) * n / count)."""
        sizes, counts = x.shape[-spatial:], shape[-spatial:]
        seen, divisor = _adaptive_windows(x, sizes, counts)
        inside = last(len(seen.shape), spatial)
        total = Build.squeeze(Build.reduce("sum", seen, inside, name="total"), inside)
        mean = Build.pointwise("div", total, divisor, dtype=out)
        mean.meaning = (f"adaptive_avg_pool{spatial}d", (x,))
        return mean

    return lower


def _adaptive_windows(x: Value, sizes: Shape, counts: Shape) -> tuple[Value, Any]:
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
        guard.append((end - begin - dim(rank + k), ONE, longest[-1] + 1))
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


def _windows(size: Any, stride: Any, padding: Any, dilation: Any, spatial: int) -> Windows:
    sizes = each(size, spatial)
    step = sizes if stride is None or (isinstance(stride, list | tuple) and not stride) else each(stride, spatial)
    found = Windows(sizes, step, each(dilation, spatial), each(padding, spatial))
    if not all(n.is_Integer for group in (found.sizes, found.step, found.dilation, found.padding) for n in group):
        raise NotLowered("windows whose size varies")
    return found


for _n in (1, 2, 3):
    lowers(f"aten.max_pool{_n}d", about="The maximum of each window")(maximum(_n, indices=False))
    lowers(f"aten.max_pool{_n}d_with_indices", about="The maximum of each window, and its place")(
        maximum(_n, indices=True)
    )
    lowers(f"aten.avg_pool{_n}d", about="The mean of each window")(average(_n))
    lowers(f"aten.adaptive_avg_pool{_n}d", about="The means of as many windows as are asked for")(adaptive("avg", _n))
