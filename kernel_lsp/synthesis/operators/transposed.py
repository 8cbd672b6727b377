"""Transposed convolutions: for each phase of the output a convolution with every ``stride``-th element of the weight.

Output y of a dimension takes x[i] * w[k] wherever y = i * stride - padding + k * dilation. With y = q * stride + r, the phase r
fixes k modulo the stride, so k = k0(r) + stride * j and i = q + e(r) - dilation * j: windows of the input without gaps. Where
stride and dilation have a common factor g, only every g-th output takes anything: those are computed as if both were
smaller by g, and the others are zero. Where no output takes two elements of the filter, the product of each element with
each input is computed, and each output takes one of these or is zero. The phases are those of Dumoulin and Visin, "A guide to convolution arithmetic for
deep learning" (2016), section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv

from ..graph.build import Build, NotLowered
from ..graph.division import Quotient, Remainder
from ..graph.map import Guard, Map, dim, dims
from ..graph.sizes import ONE, ZERO, quotient, same, same_shape
from ..graph.value import Convolution, Shape, Value
from .registry import lowers
from .windows import each, told

#: Summed elements of a group below which its products are added up one by one.
_LEAST_SUMMED = 16


@dataclass(frozen=True)
class _Axis:
    """One spatial dimension: ``count`` groups of ``stride`` phases each, ``taps`` elements of the weight for each of them."""

    input: sympy.Expr
    size: sympy.Expr
    stride: int
    dilation: int
    shift: int  # the padding, of the outputs that take something
    every: int  # outputs from one that takes something to the next
    first: int  # the first one
    outputs: sympy.Expr  # how many there are of them
    whole: sympy.Expr  # all outputs

    @property
    def count(self) -> sympy.Expr:
        return _rounded_up(self.outputs, self.stride)

    @property
    def taps(self) -> sympy.Expr:
        return _rounded_up(self.size, self.stride)

    def weight_place(self, phase: sympy.Expr, tap: sympy.Expr) -> sympy.Expr:
        """k, which may lie beyond the weight for the last tap."""
        inverse = pow(self.dilation, -1, self.stride) if self.stride > 1 else 0
        start = Remainder((phase + self.shift) * inverse, sympy.Integer(self.stride)) if inverse else ZERO
        return start + self.stride * tap

    def beyond(self, phase: sympy.Expr, tap: sympy.Expr) -> list[Guard]:
        """Of what the last tap of some phases lies beyond: there is no such product, whatever the input holds."""
        if same(self.taps * self.stride, self.size):
            return []
        return [(self.weight_place(phase, tap), ZERO, self.size)]

    def input_place(self, group: sympy.Expr, phase: sympy.Expr, tap: sympy.Expr) -> sympy.Expr:
        """i, which may lie outside of the input."""
        reach = self.dilation * (self.stride - 1)  # keeps what is divided from being negative
        reach += -reach % self.stride
        left = phase + self.shift - self.dilation * self.weight_place(phase, ZERO) + reach
        return group + Quotient(left, sympy.Integer(self.stride)) - reach // self.stride - self.dilation * tap


@lowers(
    "aten.conv_transpose1d",
    "aten.conv_transpose2d",
    "aten.conv_transpose3d",
    about="Transposed convolution, phase by phase",
)
def transposed(
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    *,
    shape: Shape,
    out: torch.dtype,
) -> Value:
    """conv_transpose1d, 2d and 3d: ``x`` [N, C, *spatial] or [C, *spatial], ``weight`` [C, O / groups, *sizes].

    y[n, o, i * stride - padding + k * dilation] is the sum over c, i, k of x[n, c, i] * weight[c, o, k], plus bias[o].

    Raises:
        NotLowered: for dtypes other than float32, float16 and bfloat16.
    """
    if out not in (torch.float32, torch.float16, torch.bfloat16):
        raise NotLowered(f"transposed convolution in {out}")
    spatial = len(weight.shape) - 2
    alone = len(x.shape) == spatial + 1
    if alone:
        x, shape = Build.unsqueeze(x, 0), (ONE, *shape)
    numbers = zip(
        x.shape[2:],
        weight.shape[2:],
        each(stride, spatial),
        each(padding, spatial),
        each(dilation, spatial),
        shape[2:],
        strict=True,
    )
    axes = [_axis(*given) for given in numbers]
    settings = told(spatial, ("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1))
    settings += told(1, ("groups", groups, 1))
    meaning = (f"conv_transpose{spatial}d", (x, weight, *settings))
    if all(axis.taps == ONE for axis in axes) and not all(same(axis.size, axis.stride) for axis in axes):
        product = _scattered(_of_each_element(x, weight, axes, groups, out), axes)
    else:
        product = _product(x, weight, axes, groups, out)
        product.meaning = meaning
        product = _in_turn(product, axes, shape[1])
    product = _spread(product, axes)
    product.meaning = meaning
    if bias is not None:
        along_channels = Build.reshape(bias, (*bias.shape, *[ONE] * spatial))
        product = Build.pointwise("add", product, along_channels, dtype=out)
        product.meaning = (f"conv_transpose{spatial}d", (x, weight, bias, *settings))
    if alone:
        return Build.squeeze(product, (0,))
    if groups == 1:
        steps, margin, spread = (each(given, spatial) for given in (stride, padding, dilation))
        product.convolved = Convolution(x, weight, bias, steps, margin, spread, transposed=True)
    return product


def _axis(
    length: sympy.Expr,
    size: sympy.Expr,
    stride: sympy.Expr,
    padding: sympy.Expr,
    dilation: sympy.Expr,
    whole: sympy.Expr,
) -> _Axis:
    if not all(n.is_Integer for n in (stride, padding, dilation)):
        raise NotLowered("a transposed convolution whose stride varies")
    every = math.gcd(int(stride), int(dilation))
    first = -int(padding) % every
    return _Axis(
        input=length,
        size=size,
        stride=int(stride) // every,
        dilation=int(dilation) // every,
        shift=(first + int(padding)) // every,
        every=every,
        first=first,
        outputs=_rounded_up(whole - first, every),
        whole=whole,
    )


def _rounded_up(length: sympy.Expr, parts: int) -> sympy.Expr:
    """``length`` / ``parts``, rounded up."""
    n = sympy.Integer(parts)
    exact = (quotient(sympy.expand(length + more), n) for more in range(parts))
    return next((q for q in exact if q is not None), FloorDiv(sympy.expand(length + parts - 1), n))


def _product(x: Value, weight: Value, axes: list[_Axis], groups: int, out: torch.dtype) -> Value:
    """[N, O, count, stride, count, stride, …], of groups [N, G, O / G, count, …]: the product of each phase."""
    group = "g" if groups > 1 else ""
    if group:
        x = Build.reshape(x, (x.shape[0], sympy.Integer(groups), *_divided(x.shape[1], groups), *x.shape[2:]))
        weight = Build.reshape(weight, (sympy.Integer(groups), *_divided(weight.shape[0], groups), *weight.shape[1:]))
    places, phases, taps = "tuv"[: len(axes)], "xyz"[: len(axes)], "ijk"[: len(axes)]
    seen, packed = _windows(x, axes), _phases(weight, axes)
    between = "".join(place + phase for place, phase in zip(places, phases, strict=True))
    left, right, axes_of = f"{group}co{phases}{taps}", f"n{group}c{places}{phases}{taps}", f"n{group}o{between}"
    summed = sympy.prod([weight.shape[len(group)], *(axis.taps for axis in axes)])
    if group and (weight.shape[2] == ONE or (summed.is_number and summed < _LEAST_SUMMED)):
        return _added_up(seen, right, packed, left, axes_of, out)
    return Build.convolve(packed, seen, left, right, axes_of, out)


def _divided(channels: sympy.Expr, groups: int) -> tuple[sympy.Expr]:
    each_group = quotient(channels, sympy.Integer(groups))
    if each_group is None:
        raise NotLowered("groups of channels whose number varies")
    return (each_group,)


def _windows(x: Value, axes: list[_Axis]) -> Value:
    """``x`` [N, …, C, *spatial] as [N, …, C, *counts, *phases, *taps]."""
    rank, lead = len(axes), len(x.shape) - len(axes)
    index: list[sympy.Expr] = [dim(i) for i in range(lead)]
    guards: list[Guard] = []
    for d, axis in enumerate(axes):
        place = axis.input_place(dim(lead + d), dim(lead + rank + d), dim(lead + 2 * rank + d))
        index.append(place)
        guards += [(place, ZERO, axis.input), *axis.beyond(dim(lead + rank + d), dim(lead + 2 * rank + d))]
    shape = (*x.shape[:lead], *(a.count for a in axes), *_phase_shape(axes))
    return Build.view(x, Map(shape, x.shape, tuple(index), tuple(guards), 0.0), "window")


def _phases(weight: Value, axes: list[_Axis]) -> Value:
    """``weight`` […, C, O, *sizes] as […, C, O, *phases, *taps]: the elements that each phase takes."""
    rank, lead = len(axes), len(weight.shape) - len(axes)
    index: list[sympy.Expr] = [dim(i) for i in range(lead)]
    guards: list[Guard] = []
    for d, axis in enumerate(axes):
        place = axis.weight_place(dim(lead + d), dim(lead + rank + d))
        index.append(place)
        guards += axis.beyond(dim(lead + d), dim(lead + rank + d))
    shape = (*weight.shape[:lead], *_phase_shape(axes))
    pad = 0.0 if guards else None
    return Build.view(weight, Map(shape, weight.shape, tuple(index), tuple(guards), pad), "phase")


def _phase_shape(axes: list[_Axis]) -> Shape:
    return (*(sympy.Integer(a.stride) for a in axes), *(a.taps for a in axes))


def _added_up(seen: Value, seen_axes: str, weight: Value, weight_axes: str, axes: str, out: torch.dtype) -> Value:
    """The contraction of few products each, as a sum of what is multiplied element by element."""
    summed = [letter for letter in weight_axes if letter not in axes]
    order = axes + "".join(summed)

    def spread(value: Value, letters: str) -> Value:
        value = Build.permute(value, tuple(letters.index(letter) for letter in order if letter in letters))
        for d, letter in enumerate(order):
            value = value if letter in letters else Build.unsqueeze(value, d)
        return Build.cast(value, torch.float32)

    products = Build.pointwise("mul", spread(seen, seen_axes), spread(weight, weight_axes))
    dims = tuple(range(len(axes), len(order)))
    return Build.squeeze(Build.reduce("sum", products, dims, name="product", dtype=out), dims)


def _of_each_element(x: Value, weight: Value, axes: list[_Axis], groups: int, out: torch.dtype) -> Value:
    """[N, O, *sizes, *input]: the product of each element of the filter, of which no output takes two.

    It is a convolution of one element with as many output channels as the filter has elements for all of them.
    """
    rank = len(axes)
    channels, sizes = weight.shape[1] * groups, weight.shape[2:]
    one = Build.reshape(weight, (weight.shape[0], sympy.prod(weight.shape[1:]), *[ONE] * rank))
    plain = [_axis(axis.input, ONE, ONE, ZERO, ONE, axis.input) for axis in axes]
    product = _product(x, one, plain, groups, out)
    if groups == 1:
        places, elements = "xyz"[:rank], "ijk"[:rank]
        product.meaning = ("einsum", (f'"nc{places},co{elements}->no{elements}{places}"', x, weight))
    return Build.reshape(product, (product.shape[0], channels, *sizes, *(axis.input for axis in axes)))


def _scattered(product: Value, axes: list[_Axis]) -> Value:
    """[N, O, *outputs] of [N, O, *sizes, *input]: each output from the one element of the filter that it takes, zero where it takes none."""
    lead = product.shape[:2]
    of_weight = [axis.weight_place(dim(2 + d), ZERO) for d, axis in enumerate(axes)]
    of_input = [axis.input_place(ZERO, dim(2 + d), ZERO) for d, axis in enumerate(axes)]
    guards: list[Guard] = []
    for axis, tap, place in zip(axes, of_weight, of_input, strict=True):
        guards += [*([(tap, ZERO, axis.size)] if not same(axis.size, axis.stride) else []), (place, ZERO, axis.input)]
    shape = (*lead, *(axis.outputs for axis in axes))
    index = (dim(0), dim(1), *of_weight, *of_input)
    return Build.view(product, Map(shape, product.shape, index, tuple(guards), 0.0), "scattered")


def _in_turn(product: Value, axes: list[_Axis], channels: sympy.Expr) -> Value:
    """[N, O, *outputs] of [N, O, count, stride, …]: the phases in turn, without what is beyond the last output."""
    lead = (product.shape[0], channels)
    value = Build.reshape(product, (*lead, *(sympy.expand(a.count * a.stride) for a in axes)))
    wanted = (*lead, *(axis.outputs for axis in axes))
    if same_shape(value.shape, wanted):
        return value
    return Build.view(value, Map(wanted, value.shape, dims(len(wanted))), "cut")


def _spread(value: Value, axes: list[_Axis]) -> Value:
    """[N, O, *whole] of [N, O, *outputs]: zero at what takes nothing because stride and dilation have a common factor."""
    if all(axis.every == 1 for axis in axes):
        return value
    index, guards = [dim(0), dim(1)], []
    for d, axis in enumerate(axes):
        n = sympy.Integer(axis.every)
        before = dim(2 + d) + (axis.every - axis.first) % axis.every  # of the same phase, and not negative
        index.append(Quotient(before, n) - (1 if axis.first else 0))
        if axis.every > 1:
            guards.append((Remainder(before, n), ZERO, ONE))
            if axis.first:
                guards.append((dim(2 + d), sympy.Integer(axis.first), axis.whole))
    shape = (*value.shape[:2], *(axis.whole for axis in axes))
    return Build.view(value, Map(shape, value.shape, tuple(index), tuple(guards), 0.0), "spread")
