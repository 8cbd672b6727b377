"""Interpolation that weights neighbours, and nearest elements whose place float32 decides: elements by computed places.

The places and weights are computed in float32 from an element's index, as torch computes them:
``scale`` is in / out, or one over the factor that was given, and with ``align_corners`` (in - 1) / (out - 1).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import sympy
import torch

from ..graph.build import Build, NotLowered, Operand, number_or_size, opmath
from ..graph.sizes import ONE
from ..graph.value import Scalar, Shape, Value
from .registry import lowers

#: torch's coefficient of cubic convolution
_CUBIC = -0.75

#: Channels of an image beyond which torch samples it by a kernel of its own.
_MOST_OF_CUDNN = 1024


def clamped(place: Value, size: sympy.Expr, name: str) -> Value:
    """``place``, which is whole, from 0 to size - 1, as an index that is called ``name``."""
    whole = Build.pointwise("maximum_int", place, 0, dtype=torch.int64)
    return Build.pointwise("minimum_int", whole, number_or_size(size - 1), dtype=torch.int64, name=name)


def _positions(size: sympy.Expr) -> Value:
    return Build.cast(Build.iota((size,), 0), torch.float32)


def _ratio(before: sympy.Expr, after: sympy.Expr, factor: Any) -> Operand:
    """The scale as float32 has it; a size that varies is divided on the host, in float64, which rounds to the same."""
    if isinstance(factor, Scalar):
        raise NotLowered("a scale that varies")
    if factor:
        return float(np.float32(1.0 / factor))
    if before.is_Integer and after.is_Integer:
        return float(np.float32(int(before)) / np.float32(int(after)))
    return Scalar(before / after, is_float=True)


def _source(before: sympy.Expr, after: sympy.Expr, factor: Any, corners: bool) -> Value:
    """Where between the operand's elements each element lies: shape [after], float32."""
    positions = _positions(after)
    if corners:
        if before.is_Integer and after.is_Integer:
            scale: Operand = (
                float(np.float32(int(before) - 1) / np.float32(max(int(after) - 1, 1))) if after > 1 else 0.0
            )
        else:
            scale = Scalar((before - 1) / sympy.Max(after - 1, 1), is_float=True)
        return Build.pointwise("mul", positions, scale)
    centres = Build.pointwise("mul", Build.pointwise("add", positions, 0.5), _ratio(before, after, factor))
    return Build.pointwise("sub", centres, 0.5)


def _along(x: Value, place: Value, dim: int) -> Value:
    return Build.gather(x, place, dim, "rows", (*x.shape[:dim], place.shape[0], *x.shape[dim + 1 :]))


def _weight(weight: Value, dim: int, rank: int) -> Value:
    """A number for each place of ``dim``, to be multiplied."""
    return Build.reshape(weight, tuple(weight.shape[0] if d == dim else ONE for d in range(rank)))


def _weighted(x: Value, taps: dict[int, list[tuple[Value, Value]]], out: torch.dtype) -> Value:
    """The sum over all neighbours of ``x``; ``taps``: of each dim (place, weight) of the neighbours along it.

    The places of all dims are gathered first, and weighted from the last dim on, as torch does.
    """
    dims, rank = sorted(taps), len(x.shape)

    def total(chosen: dict[int, Value], left: list[int]) -> Value:
        if not left:
            value = x
            for d in dims:
                value = _along(value, chosen[d], d)
            return Build.cast(value, opmath(out))
        d, rest = left[0], left[1:]
        parts = [
            Build.pointwise("mul", total(chosen | {d: place}, rest), _weight(weight, d, rank))
            for place, weight in taps[d]
        ]
        return _sum(parts)

    value = total({}, dims)
    return Build.pointwise("identity", value, dtype=out) if value.dtype != out else value


def _sum(parts: list[Value]) -> Value:
    value = parts[0]
    for part in parts[1:]:
        value = Build.pointwise("add", value, part)
    return value


def _linear(source: Value, size: sympy.Expr) -> list[tuple[Value, Value]]:
    """The neighbours of places that are not negative."""
    low = Build.pointwise("floor", source)
    further = Build.pointwise("minimum", Build.pointwise("sub", source, low), 1.0, name="weight")
    nearer = Build.pointwise("sub", 1.0, further, dtype=torch.float32)
    first = clamped(Build.cast(low, torch.int64), size, "before")
    second = clamped(Build.pointwise("add", Build.cast(low, torch.int64), 1, dtype=torch.int64), size, "after")
    return [(first, nearer), (second, further)]


def _cubic(source: Value, size: sympy.Expr) -> list[tuple[Value, Value]]:
    """Four neighbours, weighted by cubic convolution (Keys 1981)."""
    low = Build.pointwise("floor", source)
    t = Build.pointwise("sub", source, low, name="weight")
    whole = Build.cast(low, torch.int64)

    def near(v: Value) -> Value:  # ((a + 2) v - (a + 3)) v v + 1
        inner = Build.pointwise("sub", Build.pointwise("mul", v, _CUBIC + 2), _CUBIC + 3)
        return Build.pointwise("add", Build.pointwise("mul", Build.pointwise("mul", inner, v), v), 1.0)

    def far(v: Value) -> Value:  # ((a v - 5 a) v + 8 a) v - 4 a
        inner = Build.pointwise("sub", Build.pointwise("mul", v, _CUBIC), 5 * _CUBIC)
        inner = Build.pointwise("add", Build.pointwise("mul", inner, v), 8 * _CUBIC)
        return Build.pointwise("sub", Build.pointwise("mul", inner, v), 4 * _CUBIC)

    other = Build.pointwise("sub", 1.0, t, dtype=torch.float32)
    weights = (
        far(Build.pointwise("add", t, 1.0)),
        near(t),
        near(other),
        far(Build.pointwise("add", other, 1.0)),
    )
    places = [
        clamped(whole if k == 0 else Build.pointwise("add", whole, k, dtype=torch.int64), size, name)
        for k, name in ((-1, "far_before"), (0, "before"), (1, "after"), (2, "far_after"))
    ]
    return list(zip(places, weights, strict=True))


def _factors(given: tuple[Any, ...], count: int) -> list[Any]:
    """Of each dim the factor that was given, or None; ``.vec`` has one list, ``.default`` a number for each."""
    if given and isinstance(given[0], list | tuple):
        return list(given[0])
    return [*given, *[None] * (count - len(given))][:count]


def _interpolated(
    x: Value, corners: bool, given: tuple[Any, ...], shape: Shape, out: torch.dtype, cubic: bool
) -> Value:
    if not x.dtype.is_floating_point:
        raise NotLowered("interpolation of integers")
    if x.dtype == torch.float64:  # whose places and weights are of float64, too
        raise NotLowered("interpolation in float64")
    count = len(shape) - 2
    taps = {}
    for d, factor in zip(range(2, 2 + count), _factors(given, count), strict=True):
        if x.shape[d] == shape[d] and not factor:
            continue  # every element is its own neighbour
        source = _source(x.shape[d], shape[d], None if corners else factor, corners)
        if cubic:
            taps[d] = _cubic(source, x.shape[d])
        else:
            taps[d] = _linear(Build.pointwise("maximum", source, 0.0), x.shape[d])
    if not taps:
        return Build.pointwise("identity", x, dtype=out)
    value = _weighted(x, taps, out)
    value.name, value.meaning = "interpolated", ("interpolated", (x,))
    return value


@lowers(
    "aten.upsample_linear1d",
    "aten.upsample_bilinear2d",
    "aten.upsample_trilinear3d",
    about="The neighbours along each dim, weighted linearly",
    formula="interpolated(v) = the neighbours in v of each place, times their weights",
)
def linear(x: Value, size: Any, align_corners: bool, *scales: Any, shape: Shape, out: torch.dtype) -> Value:
    """The last ``len(shape) - 2`` dims of ``x`` [N, C, ...] interpolated to those of ``shape``.

    Raises:
        NotLowered: the elements are integers or float64, or a scale varies.
    """
    return _interpolated(x, align_corners, scales, shape, out, cubic=False)


@lowers("aten.upsample_bicubic2d", about="Four neighbours along each dim, weighted by cubic convolution")
def cubic(x: Value, size: Any, align_corners: bool, *scales: Any, shape: Shape, out: torch.dtype) -> Value:
    """The last two dims of ``x`` [N, C, H, W] interpolated; the convolution's parameter a is -0.75, as in torch.

    Source: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981.

    Raises:
        NotLowered: the elements are integers or float64, or a scale varies.
    """
    return _interpolated(x, align_corners, scales, shape, out, cubic=True)


def nearest(x: Value, given: list[Any], shape: Shape) -> Value:
    """The element at floor(i * scale) in float32.

    Raises:
        NotLowered: a scale varies.
    """
    value = x
    for d, factor in zip(range(2, len(shape)), given, strict=True):
        if same_size(x.shape[d], shape[d]) and not factor:
            continue
        scaled = Build.pointwise("mul", _positions(shape[d]), _ratio(x.shape[d], shape[d], factor))
        place = clamped(Build.cast(Build.pointwise("floor", scaled), torch.int64), x.shape[d], "nearest")
        value = _along(value, place, d)
    return value


def same_size(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    return bool(sympy.expand(a - b) == 0)


@lowers(
    "aten.grid_sampler",
    "aten.grid_sampler_2d",
    about="Elements of an image at places of a grid, nearest or weighted linearly",
    formula="sampled(v, grid) = the elements of v around the places in grid, times their weights",
)
def grid_sampler(
    x: Value, grid: Value, mode: int, padding: int, align_corners: bool, *, shape: Shape, out: torch.dtype
) -> Value:
    """``mode``: 0 bilinear, 1 nearest; ``padding``: 0 zeros, 1 the border.

    Raises:
        NotLowered: for three dimensions, cubic weights, reflections, and dtypes other than float32.
    """
    if len(shape) != 4 or mode not in (0, 1) or padding not in (0, 1) or out != torch.float32:
        raise NotLowered("a grid sampler in 3 dims, of cubic weights, with reflections or in half precision")
    batch, channels, height, width = x.shape
    places = [
        _unnormalised(
            Build.squeeze(Build.slice(grid, 3, sympy.Integer(k), ONE, ONE), (3,)), size, align_corners, padding
        )
        for k, size in ((1, height), (0, width))
    ]
    taps: list[list[tuple[Value, Value | None]]] = []
    for place in places:
        if mode == 1:
            taps.append([(Build.pointwise("rint", place), None)])
            continue
        low = Build.pointwise("floor", place)
        high = Build.pointwise("add", low, 1.0)
        taps.append([(low, Build.pointwise("sub", high, place)), (high, Build.pointwise("sub", place, low))])
    flat = Build.reshape(Build.permute(x, (0, 2, 3, 1)), (batch * height * width, channels))
    sizes, by_cudnn = (batch, height, width), align_corners and mode == padding == 0 and torch.backends.cudnn.enabled
    terms = [_corner(flat, y, x_, wy, wx, sizes, shape, by_cudnn) for (y, wy), (x_, wx) in itertools.product(*taps)]
    # Stored in the result's own order, as torch does, and not as a view of what has its channels last.
    placed = Build.permute(_sum(terms), (0, 3, 1, 2))
    return Build.pointwise("identity", placed, dtype=out, name="sampled", meaning=("sampled", (x, grid)))


def _unnormalised(place: Value, size: sympy.Expr, corners: bool, padding: int) -> Value:
    """A grid's numbers from -1 to 1 as places between elements."""
    if corners:
        half = Build.pointwise("div", Build.pointwise("add", place, 1.0), 2.0)
        value = Build.pointwise("mul", half, number_or_size(size - 1))
    else:
        scaled = Build.pointwise("mul", Build.pointwise("add", place, 1.0), number_or_size(size))
        value = Build.pointwise("div", Build.pointwise("sub", scaled, 1.0), 2.0)
    if padding == 1:  # where torch takes what is no number for the first place
        value = Build.pointwise("where", Build.comparison("eq", value, value), value, 0.0, dtype=torch.float32)
        value = Build.pointwise("minimum", Build.pointwise("maximum", value, 0.0), number_or_size(size - 1))
    return value


def _corner(
    flat: Value,
    y: Value,
    x: Value,
    wy: Value | None,
    wx: Value | None,
    sizes: tuple[Any, Any, Any],
    shape: Shape,
    by_cudnn: bool,
) -> Value:
    """One neighbour of each place of the grid, times its weights; 0 where it lies outside. ``by_cudnn``: whether torch lets cuDNN compute it on a GPU, of few channels."""
    batch, height, width = sizes
    inside: Value | None = None
    for place, size in ((y, height), (x, width)):
        low = Build.comparison("ge", place, 0.0)
        high = Build.pointwise("le", place, Build.cast(number_or_size(size - 1), torch.float32), dtype=torch.bool)
        both = Build.pointwise("and", low, high, dtype=torch.bool)
        inside = both if inside is None else Build.pointwise("and", inside, both, dtype=torch.bool)
    assert inside is not None
    # What is no number, or beyond the integers, must not become one.
    row, column = (
        clamped(Build.cast(Build.pointwise("where", inside, v, 0.0, dtype=torch.float32), torch.int64), size, name)
        for v, size, name in ((y, height, "image_row"), (x, width, "image_col"))
    )
    image = Build.iota((batch, shape[2], shape[3]), 0, torch.int64)
    linear_place = Build.pointwise(
        "add", Build.pointwise("mul", image, number_or_size(height), dtype=torch.int64), row, dtype=torch.int64
    )
    linear_place = Build.pointwise(
        "add", Build.pointwise("mul", linear_place, number_or_size(width), dtype=torch.int64), column, dtype=torch.int64
    )
    value = Build.gather(flat, linear_place, 0, "rows", (batch, shape[2], shape[3], shape[1]))
    for weight in (wy, wx):
        if weight is not None:
            value = Build.pointwise("mul", value, Build.unsqueeze(weight, 3))
    for place in (y, x) if wx is not None else ():
        inside = Build.pointwise("or", inside, _without_weight(place, shape[1], by_cudnn), dtype=torch.bool)
    return Build.pointwise("where", Build.unsqueeze(inside, 3), value, 0.0, dtype=torch.float32)


def _without_weight(place: Value, channels: sympy.Expr, by_cudnn: bool) -> Value:
    """Whether ``place`` is not finite where torch's weights are NaN then: on the CPU, and cuDNN's, which takes up to 1024 channels.

    Else such a place lies outside on a GPU. Source: ``cond_cudnn_grid_sampler`` in ATen's GridSamplerUtils.h.
    """
    on_cpu = Build.pointwise("not_finite_on_cpu", place, dtype=torch.bool)
    if not by_cudnn or (channels.is_number and channels > _MOST_OF_CUDNN):
        return on_cpu
    anywhere = Build.comparison("ne", Build.pointwise("sub", place, place), 0.0)
    if channels.is_number:
        return anywhere
    few = Build.pointwise(
        "le", Build.cast(number_or_size(channels), torch.float32), float(_MOST_OF_CUDNN), dtype=torch.bool
    )
    return Build.pointwise("or", on_cpu, Build.pointwise("and", anywhere, few, dtype=torch.bool), dtype=torch.bool)
