"""Convolutions: contractions of the input's windows with the weight."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered
from ..graph.sizes import ONE, ZERO, quotient, same
from ..graph.value import Convolution, Shape, Value
from .registry import lowers
from .windows import Sizes, Windows, each, told, windows_of

#: Summed elements below which a group's products are added up one by one: a tensor core multiplies 16 at a time.
_LEAST_SUMMED = 16


@lowers("aten.conv1d", "aten.conv2d", "aten.conv3d", about="Convolution, not transposed")
def convolution(
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    *,
    shape: Shape,
    out: torch.dtype,
) -> Value:
    """conv1d, conv2d and conv3d: ``x`` [N, C, *spatial] or [C, *spatial], ``weight`` [O, C / groups, *sizes].

    y[n, o, p] = sum over c, k of x[n, c, p * stride + k * dilation - padding] * weight[o, c, k] + bias[o].

    Raises:
        NotLowered: for dtypes other than float32, float16 and bfloat16.
    """
    if out not in (torch.float32, torch.float16, torch.bfloat16):
        raise NotLowered(f"convolution in {out}")
    spatial = len(weight.shape) - 2
    alone = len(x.shape) == spatial + 1
    if alone:
        x, shape = Build.unsqueeze(x, 0), (ONE, *shape)
    sizes, steps, spread = weight.shape[2:], each(stride, spatial), each(dilation, spatial)
    windows = Windows(sizes, steps, spread, _padding(padding, sizes, spread, spatial))
    product = _grouped(x, weight, windows, groups, shape, out)
    settings = told(spatial, ("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1))
    settings += told(1, ("groups", groups, 1))
    product.meaning = (f"conv{spatial}d", (x, weight, *settings))
    if bias is not None:
        along_channels = Build.reshape(bias, (*bias.shape, *[ONE] * spatial))
        product = Build.pointwise("add", product, along_channels, dtype=out)
        product.meaning = (f"conv{spatial}d", (x, weight, bias, *settings))
    if alone:
        return Build.squeeze(product, (0,))
    if groups == 1:
        product.convolved = Convolution(x, weight, bias, steps, windows.padding, spread)
    return product


def _padding(padding: Any, sizes: Sizes, dilation: Sizes, spatial: int) -> Sizes:
    if padding == "valid":
        return (ZERO,) * spatial
    if padding != "same":
        return each(padding, spatial)
    both = [sympy.expand(d * (n - 1)) for d, n in zip(dilation, sizes, strict=True)]
    if any(n % 2 for n in both):
        raise NotLowered("padding to the same size by another amount on each side")
    return tuple(n / 2 for n in both)


def _grouped(x: Value, weight: Value, windows: Windows, groups: int, shape: Shape, out: torch.dtype) -> Value:
    """The sum of products, channels in ``groups``; shape [N, O, *counts]."""
    counts, sizes = shape[2:], weight.shape[2:]
    places, inside = "tuv"[: len(sizes)], "ijk"[: len(sizes)]
    if groups == 1:
        seen = windows_of(x, windows, counts, 0.0)
        return Build.convolve(weight, seen, f"oc{inside}", f"nc{places}{inside}", f"no{places}", out)
    summed, outputs = weight.shape[1], quotient(weight.shape[0], sympy.Integer(groups))
    if outputs is None or not same(x.shape[1], groups * summed):
        raise NotLowered("groups of channels whose number varies")
    x = Build.reshape(x, (x.shape[0], sympy.Integer(groups), summed, *x.shape[2:]))
    weight = Build.reshape(weight, (sympy.Integer(groups), outputs, *weight.shape[1:]))
    seen = windows_of(x, windows, counts, 0.0)
    every = sympy.prod([summed, *sizes])  # a size that varies counts as large
    if not (every.is_number and every < _LEAST_SUMMED) and weight.shape[1] != ONE:
        product = Build.convolve(weight, seen, f"goc{inside}", f"ngc{places}{inside}", f"ngo{places}", out)
    else:
        product = _added_up(seen, weight, len(sizes), out)
    return Build.reshape(product, shape)


def _added_up(seen: Value, weight: Value, spatial: int, out: torch.dtype) -> Value:
    """[N, G, O, *counts] of few products each: ``seen`` [N, G, C, *counts, *sizes], ``weight`` [G, O, C, *sizes]."""
    seen = Build.unsqueeze(seen, 2)  # for the outputs of a group
    spread = Build.reshape(weight, (*weight.shape[:3], *[ONE] * spatial, *weight.shape[3:]))
    products = Build.pointwise("mul", Build.cast(seen, torch.float32), Build.cast(spread, torch.float32))
    summed = (3, *range(len(products.shape) - spatial, len(products.shape)))
    return Build.squeeze(Build.reduce("sum", products, summed, name="product", dtype=out), summed)
