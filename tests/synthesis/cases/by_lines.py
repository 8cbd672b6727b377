"""Elementwise kernels that go by lines: what they read, or store, has lines of another length than the result."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .registry import case, module, r


class Cropped(nn.Module):
    """A crop of several dimensions, with numbers of a channel and of a group of channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(r(channels)), nn.Parameter(r(channels, 1, 1))

    def forward(self, x: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        y = x[:, :, 1:, 2:-1] * self.weight[:, None, None] + self.bias
        shifted = y.unflatten(1, (2, -1)) - groups[:, :, None, None, None]
        return F.hardswish(shifted.flatten(1, 2))


def _cropped(n: int) -> list[torch.Tensor]:
    return [r(2 + n % 2, 6, 13 + n, 31 + n), r(2 + n % 2, 2)]


#: also lines of twice the block and more
_STEPS = (0, 1, 3, 40)

module("by_lines", Cropped, (6,), _cropped, by_lines=True, steps=_STEPS)
module(
    "by_lines_float16",
    Cropped,
    (6,),
    lambda n: [x.half() for x in _cropped(n)],
    by_lines=True,
    tolerance=2e-3,
)
case(  # in pieces, since no power of two fits
    "by_lines_pieces",
    lambda self, x: torch.tanh(x[:, 1:-1, 1:, 3:]) * 2,
    lambda n: [r(2, 5, 4 + n, 300 + n)],
    by_lines=True,
)
case(  # a line in one piece without a mask, several dimensions of lines in a program
    "by_lines_full",
    lambda self, x, y: torch.maximum(x[:, 1:, :-1, :32], y),
    lambda n: [r(2, 4, 17 + n, 35), r(32)],
    by_lines=True,
)
case(
    "by_lines_bool",
    lambda self, x, y: x[:, 1:, 1:, 1:] > y[:, :-1, :-1, :-1],
    lambda n: [r(2, 4, 6 + n, 29 + n).bfloat16(), r(2, 4, 6 + n, 29 + n).bfloat16()],
    by_lines=True,
)
case(
    "by_lines_whole_numbers",
    lambda self, x: (x[:, 1:, 2:, :-1] * 3 + 1, x[:, 1:, 2:, :-1] >> 1),
    lambda n: [torch.arange(2 * 4 * (17 + n) * 28, dtype=torch.int32).reshape(2, 4, 17 + n, 28)],
    by_lines=True,
)
case(  # both what is read and the result have sides that the other lacks
    "by_lines_padded",
    lambda self, x, y: F.pad(torch.sigmoid(x[:, :, 2:, 1:-1]), (2, 1, 1, 3), value=0.5) + y,
    lambda n: [r(2, 3, 7 + n, 29 + n), r(3, 1, 1)],
    by_lines=True,
    steps=_STEPS,
)
case(  # pieces of a tensor, each stored at its place
    "by_lines_concatenated",
    lambda self, x, y: torch.cat([torch.exp(x[:, :, 1:, 1:]), y[:, :, :, :28] * 2], 3),
    lambda n: [r(2, 3, 17 + n, 29), r(2, 3, 16 + n, 30)],
    by_lines=True,
)
case(  # what is expanded varies along some dimensions only
    "by_lines_expanded",
    lambda self, x, y, z: x + y * z,
    lambda n: [r(2, 1, 5 + n, 1, 27 + n), r(3, 1, 4, 27 + n), r(2, 3, 1, 4, 1)],
    by_lines=True,
)


class Upsampled(nn.Module):
    """A transposed convolution of odd sizes, and what is computed of its phases where they are stored."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.ConvTranspose2d(3, 6, 3, 2, 1), nn.GroupNorm(2, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return F.hardswish(self.norm(torch.sigmoid(y) * y))


module("by_lines_phases", Upsampled, (), lambda n: [r(2, 3, 13 + n, 15 + n)], by_lines=True, tile_sums=True)
case(  # the largest number of a crop, for what float16 does not hold
    "by_lines_rounded",
    lambda self, x, w: x[:, 1:, 1:, :-1] @ w,
    lambda n: [r(2, 4, 17 + n, 49), r(48, 24)],
    by_lines=True,
    halves=True,
)
