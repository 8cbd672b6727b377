"""Windows that overlap from row to row: each lane has several rows, so that what they share is loaded once."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .registry import CASES, Case, case, module, r

# 13 + n rows in groups of eight or four: the last group reaches beyond the end, for the windows' loads and for the stores.
case(
    "rows_max_pool2d",
    lambda self, x: F.max_pool2d(x, 4, 1, 1),
    lambda n: [r(2, 3, 13 + n, 11)],
    kernels=1,
    in_rows=True,
)
case(
    "rows_max_pool2d_places",
    lambda self, x: F.max_pool2d(x, 3, 1, return_indices=True),
    lambda n: [r(2, 3, 10 + n, 9)],
    in_rows=True,
)
case(
    "rows_avg_pool2d",
    lambda self, x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False) * 2 + x,
    lambda n: [r(2, 3, 15 + n, 9)],
    in_rows=True,
)
case(
    "rows_avg_pool3d",
    lambda self, x: F.avg_pool3d(x, 3, 1, 1),
    lambda n: [r(2, 2, 4, 8 + n, 7)],
    kernels=1,
    in_rows=True,
)
case(
    "rows_avg_pool3d_strided",  # of three rows one is the next window's
    lambda self, x: F.avg_pool3d(x, 3, 2, 1),
    lambda n: [r(2, 2, 5, 30 + n, 15)],
    kernels=1,
    in_rows=True,
)
# Channels are last in memory: lanes next to each other have channels, and a lane's results lie next to each other in a row.
case(
    "rows_of_channels_last_pool2d",
    lambda self, x: F.max_pool2d(x.permute(0, 3, 1, 2), 3, 1, 1),
    lambda n: [r(2, 5, 13 + n, 20)],
    kernels=1,
    in_rows=True,
)
case(
    "rows_of_channels_last_avg_pool1d",
    lambda self, x: F.avg_pool1d(F.gelu(x).mT, 3, 2, 1).mT,
    lambda n: [r(3, 29 + n, 33)],
    in_rows=True,
)


class ChannelsLastDepthwise(nn.Module):
    """A convolution between layers that have channels last, of part of them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(24, 24, (3, 5), 1, (1, 2), groups=24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rest, part = x.split([8, 24], -1)
        return torch.cat([rest, self.conv(part.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)], -1)


module("rows_of_channels_last_depthwise", ChannelsLastDepthwise, (), lambda n: [r(2, 6, 9 + n, 32)], in_rows=True)
case(
    "rows_of_a_view",  # what is pooled is computed of what is loaded, from another memory order
    lambda self, x: F.max_pool2d(F.relu(x[:, :, 1:] - 0.5), 3, 1, 1),
    lambda n: [r(2, 3, 12 + n, 9)],
    kernels=1,
    in_rows=True,
)


class NormedDepthwise(nn.Module):
    """What the norm of a channel is of is the same at each place of a window."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, 1, 1, groups=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(torch.relu(self.norm(x)))


module("rows_depthwise_of_a_norm", NormedDepthwise, (), lambda n: [r(2, 4, 15 + n, 9)], kernels=1, in_rows=True)
module("rows_depthwise", nn.Conv2d, (4, 4, 3, 1, 1, 1, 4), lambda n: [r(2, 4, 15 + n, 9)], kernels=1, in_rows=True)
module(
    "rows_depthwise_large", nn.Conv2d, (3, 3, 7, 1, 3, 1, 3), lambda n: [r(1, 3, 16 + n, 8)], kernels=1, in_rows=True
)
module(
    "rows_depthwise_strided", nn.Conv2d, (4, 4, 5, 2, 2, 1, 4), lambda n: [r(2, 4, 29 + n, 9)], kernels=1, in_rows=True
)
module(
    "rows_depthwise_dilated", nn.Conv2d, (4, 4, 3, 1, 0, 2, 4), lambda n: [r(2, 4, 19 + n, 9)], kernels=1, in_rows=True
)
module(
    "rows_depthwise_flipped",
    nn.ConvTranspose2d,
    (4, 4, 3, 1, 1, 0, 4),
    lambda n: [r(2, 4, 15 + n, 9)],
    kernels=1,
    in_rows=True,
)


# What follows has rows and channels as one dimension, is divided along rows, or goes through them backwards.
case(
    "rows_flattened",
    lambda self, x: (F.max_pool2d(x, 3, 1, 1).flatten(1).relu(), F.avg_pool2d(x, 3, 1, 1).flatten(1, 2) * 2),
    lambda n: [r(2, 3, 15 + n, 12)],
    in_rows=True,
)
case(
    "rows_repeated",
    lambda self, x, y: F.max_pool2d(x, 3, 1, 1) + y.repeat_interleave(2, 2)[:, :, :-1],
    lambda n: [r(2, 3, 15 + 2 * n, 9), r(2, 3, 8 + n, 9)],
    in_rows=True,
)
case(
    "rows_cropped",
    lambda self, x, y: F.relu(F.avg_pool2d(x, 3, 1, 1)) + F.interpolate(y, scale_factor=2.0)[:, :, :-1, :-1],
    lambda n: [r(2, 3, 15 + 2 * n, 17), r(2, 3, 8 + n, 9)],
    in_rows=True,
)
case(
    "rows_backwards",
    lambda self, x, y: F.max_pool2d(x, 3, 1, 1) + y.flip(2),
    lambda n: [r(2, 3, 13 + n, 9), r(2, 3, 13 + n, 9)],
    in_rows=True,
)
case(
    "rows_joined",
    lambda self, x, y: torch.cat([F.max_pool2d(x, 3, 1, 1), F.avg_pool2d(y, 3, 1, 1)], 1)[:, :, :-1],
    lambda n: [r(2, 3, 13 + n, 9), r(2, 2, 13 + n, 9)],
    in_rows=True,
)


class Placed(nn.Module):
    """What is put in its places beside pooled rows asks whether there is an element, by the row and by the column."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 3, 3, 2, 1, 0, 1, False, 2)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, 3, 1, 1) + self.up(y)


CASES["rows_beside_places"] = Case(Placed, lambda n: [r(2, 3, 13 + 2 * n, 13), r(2, 3, 6 + n, 6)], in_rows=True)


class Rows(nn.Module):
    """What follows reads another tensor of the result's size, and numbers of a row."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1, groups=4)

    def forward(self, x: torch.Tensor, y: torch.Tensor, row: torch.Tensor) -> Any:
        return F.silu(self.conv(x)) * y + row[:, None], y.half()


CASES["rows_followed"] = Case(Rows, lambda n: [r(2, 4, 15 + n, 9), r(2, 4, 15 + n, 9), r(15 + n)], in_rows=True)
