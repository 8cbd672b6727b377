"""Interpolation that takes the nearest element: a ``Map``, where torch's float32 arithmetic gives that of integers.

Elsewhere places are computed (``sampling.py``).
torch computes the index as min(floor(float32(i) * scale), in - 1), all in float32, where ``scale`` is in / out rounded to
float32, or 1 / s rounded to float32 where the caller gave a scale factor s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from ..graph import maps
from ..graph.build import Build, NotLowered
from ..graph.sizes import ONE
from ..graph.value import Scalar, Shape, Value
from .registry import lowers
from .sampling import nearest

#: Below it i * scale of an exact quotient is in float32 on the same side of every integer as without rounding.
_EXACT_BELOW = 2**22
_Ratio = tuple[sympy.Expr, sympy.Expr]


@lowers(
    "aten.upsample_nearest2d",
    about="The nearest element",
    addressing=True,
)
def upsample_nearest2d(x: Value, size: Any, scales: Any = None, scale_w: Any = None, *, shape: Shape) -> Value:
    """``scales``: of both dimensions in the form ``.vec``, which leaves out ``size`` then; in ``.default`` of the height."""
    given = list(scales) if isinstance(scales, list | tuple) else [scales, scale_w]
    try:
        return _by_addresses(x, given, shape)
    except NotLowered:
        return nearest(x, given, shape)


def _by_addresses(x: Value, given: list[Any], shape: Shape) -> Value:
    """As a view, whose elements other values can be computed from in the same kernel.

    Raises:
        NotLowered: the ratio varies, or float32 rounds it so that other elements are taken.
    """
    if any(isinstance(scale, Scalar) for scale in given):
        raise NotLowered("a scale that varies")
    ratios = {
        d: _by_factor(scale) if scale else _by_sizes(x.shape[d], shape[d])
        for d, scale in zip((2, 3), given, strict=True)
    }
    result = list(shape)
    for d, (n, _) in ratios.items():  # a condition of the class where a size varies: beyond it rounding may show
        result[d] = sympy.Min(shape[d], _EXACT_BELOW // n)
    if any(size.is_number and size != result[d] for d, size in enumerate(shape)):
        raise NotLowered("more elements than float32 tells apart")
    return Build.view(x, maps.scaled(x.shape, tuple(result), ratios), "nearest")


def _by_factor(factor: float) -> _Ratio:
    """The ratio in : out for a factor that was given.

    Raises:
        NotLowered: it is no integer nor one over one.
    """
    scale = np.float32(1.0 / factor)
    if float(scale).is_integer():
        return sympy.Integer(int(scale)), ONE
    if float(factor).is_integer():
        return _upwards(int(factor), scale)
    raise NotLowered(f"a scale of {factor}")


def _by_sizes(before: sympy.Expr, after: sympy.Expr) -> _Ratio:
    """As ``_by_factor`` from the sizes alone: one is a multiple of the other, or both are known."""
    up, down = sympy.cancel(after / before), sympy.cancel(before / after)
    if up.is_Integer:
        return _upwards(int(up), np.float32(1) / np.float32(int(up)))
    if down.is_Integer:
        return down, ONE
    if not up.is_Rational:
        raise NotLowered("sizes of which none is a multiple of the other")
    places = np.arange(int(after))
    torchs = np.floor(places.astype(np.float32) * (np.float32(int(before)) / np.float32(int(after))))
    if (torchs != places * int(before) // int(after)).any():
        raise NotLowered("a scale that float32 rounds to other elements")
    return sympy.Integer(down.p), sympy.Integer(down.q)


def _upwards(factor: int, scale: np.float32) -> _Ratio:
    """1 : ``factor``, unless float32's ``scale`` is so small that element ``factor`` is taken from the one before."""
    if np.float32(factor) * scale < 1:
        raise NotLowered(f"a scale of {factor}, which float32 rounds to other elements")
    return ONE, sympy.Integer(factor)
