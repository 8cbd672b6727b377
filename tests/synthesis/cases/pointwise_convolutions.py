"""Convolutions of one element whose kernel rounds the input to float16 as it reads it."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .halves import HALF
from .registry import CASES, Case, module, r

EXACT = {"halves": True}  # out of the range what is multiplied is float32

module("pointwise_conv2d", nn.Conv2d, (20, 24, 1), lambda n: [r(2, 20, 9 + n, 11)], kernels=3, **HALF)
module("pointwise_conv2d_strided", nn.Conv2d, (32, 9, 1, 2), lambda n: [r(2, 32, 9 + n, 8)], kernels=3, **HALF)
module(
    "pointwise_conv1d", nn.Conv1d, (70, 5, 1, 3, 0, 2, 1, False), lambda n: [r(3 + n, 70, 17 + n)], kernels=3, **HALF
)
module("pointwise_conv3d", nn.Conv3d, (16, 72, 1), lambda n: [r(1, 16, 3, 4 + n, 5)], kernels=3, **HALF)
module("pointwise_conv2d_one_place", nn.Conv2d, (48, 20, 1), lambda n: [r(5 + n, 48, 1, 1)], kernels=3, **HALF)
module("pointwise_conv2d_no_batch", nn.Conv2d, (16, 8, 1), lambda n: [r(16, 6 + n, 7)], kernels=3, **HALF)
module("pointwise_transposed", nn.ConvTranspose2d, (20, 8, 1), lambda n: [r(2, 20, 6 + n, 7)], **HALF)
# A margin of zeros, and groups: the input is written with its channels last.
module("pointwise_conv2d_padded", nn.Conv2d, (16, 8, 1, 1, 1), lambda n: [r(2, 16, 6 + n, 7)], kernels=4, **HALF)
module("pointwise_conv2d_grouped", nn.Conv2d, (32, 8, 1, 1, 0, 1, 2), lambda n: [r(2, 32, 6 + n, 7)], kernels=4, **HALF)
module("pointwise_conv2d_few", nn.Conv2d, (6, 8, 1), lambda n: [r(2, 6, 6 + n, 7)], kernels=1, **HALF)


class Inverted(nn.Module):
    """Two convolutions of one element around one of each channel, a residual around all of them."""

    def __init__(self):
        super().__init__()
        self.wide, self.each, self.narrow = (
            nn.Conv2d(16, 32, 1),
            nn.Conv2d(32, 32, 3, 1, 1, 1, 32),
            nn.Conv2d(32, 16, 1),
        )
        self.norm = nn.BatchNorm2d(32)

    def forward(self, x):
        return x + self.narrow(functional.silu(self.norm(self.each(functional.relu6(self.wide(x))))))


CASES["pointwise_inverted"] = Case(Inverted, lambda n: [r(2, 16, 5 + n, 6)], **HALF)


class Several(nn.Module):
    """Three convolutions of one tensor, beside each other: each product's kernel notes of its own sums."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.pooled = nn.Conv2d(16, 8, 1), nn.Conv2d(16, 24, 1), nn.Conv2d(16, 5, 1)

    def forward(self, x):
        branches = [self.first(x), torch.relu(self.second(x)), self.pooled(functional.max_pool2d(x, 3, 1, 1))]
        return torch.cat([*branches, self.pooled(x)], 1)


CASES["pointwise_several"] = Case(Several, lambda n: [r(2, 16, 5 + n, 6)], **HALF)


class Parts(nn.Conv2d):
    """Of parts of a tensor, and of a sum."""

    def forward(self, x, y):
        first, second = x.chunk(2, 1)
        return super().forward(first) - super().forward(torch.relu(second + y))


CASES["pointwise_of_parts"] = Case(Parts, lambda n: [r(2, 48, 5 + n, 6), r(2, 24, 5 + n, 6)], init=(24, 8, 1), **HALF)


class Told(nn.Module):
    """Numbers where there is none; a channel without weight."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", r(8, 20, 1, 1))
        self.weight[:, 17] = 0.0

    def forward(self, x):
        return torch.nan_to_num(functional.conv2d(x, self.weight), nan=500.0, posinf=600.0, neginf=-600.0)


def _put(x: torch.Tensor, channel: int, number: float) -> torch.Tensor:
    x[1, channel, 3, 4] = number
    return x


# One number alone leaves the range, whichever elements the kernel looks at; a weight of zero hides none that is rounded to infinity.
for channel in (16, 17):
    for name, number in (("nan", float("nan")), ("infinity", float("inf")), ("one_huge", 1e6)):
        CASES[f"pointwise_{name}_{channel}"] = Case(
            Told, lambda n, c=channel, number=number: [_put(r(2, 20, 6 + n, 7), c, number)], kernels=3, **EXACT
        )
CASES["pointwise_several_huge"] = Case(Several, lambda n: [_put(r(2, 16, 5 + n, 6), 7, 1e6)], **EXACT)
module("pointwise_huge", nn.Conv2d, (20, 8, 1), lambda n: [r(2, 20, 6 + n, 7) * 1e5], **EXACT)
module("pointwise_tiny", nn.Conv2d, (20, 8, 1), lambda n: [r(2, 20, 6 + n, 7) * 1e-8], **EXACT)


class TinyWeight(nn.Module):
    """Less than float16 has bits for."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", r(8, 20, 1, 1) * 1e-8)

    def forward(self, x):
        return functional.conv2d(x, self.weight)


CASES["pointwise_tiny_weight"] = Case(TinyWeight, lambda n: [r(2, 20, 6 + n, 7)], **EXACT)
module(
    "asked_half_pointwise",
    nn.Conv2d,
    (20, 24, 1),
    lambda n: [r(2, 20, 9 + n, 11)],
    kernels=3,
    tolerance=2e-3,
    precision="half",
)
