"""Convolutions as products of float16: of few channels, in groups, transposed."""

from __future__ import annotations

import torch
from torch import nn

from .convolution import TransposedResidual, residual_inputs
from .halves import HALF
from .registry import CASES, Case, case, module, r

PLANES = {"halves": True, "tf32": False}

module("float16_few_conv2d", nn.Conv2d, (3, 8, 3), lambda n: [r(2, 3, 8 + n, 9)], kernels=4, **HALF)
module("float16_few_conv3d", nn.Conv3d, (3, 8, 3), lambda n: [r(2, 3, 5 + n, 6, 5)], kernels=4, **HALF)
module("float16_few_dilated", nn.Conv2d, (5, 7, 3, 2, 2, 2), lambda n: [r(2, 5, 9 + n, 8)], kernels=4, **HALF)
module("float16_few_conv1d", nn.Conv1d, (6, 9, 5, 2, 3), lambda n: [r(2, 6, 17 + n)], kernels=4, **HALF)
module(
    "float16_few_transposed", nn.ConvTranspose2d, (5, 7, 3, 2, 1, 1), lambda n: [r(2, 5, 5 + n, 4)], kernels=4, **HALF
)
module("float16_grouped", nn.Conv2d, (32, 12, 3, 1, 1, 1, 2), lambda n: [r(2, 32, 5 + n, 4)], kernels=4, **HALF)
module("float16_few_grouped", nn.Conv2d, (12, 8, 3, 2, 1, 1, 2), lambda n: [r(2, 12, 9 + n, 8)], kernels=4, **HALF)
module(
    "float16_grouped_transposed",
    nn.ConvTranspose3d,
    (8, 6, (1, 3, 5), (1, 2, 2), (0, 1, 2), 0, 2),
    lambda n: [r(2, 8, 2, 4 + n, 5)],
    kernels=4,
    **HALF,
)
module("tf32_conv2d", nn.Conv2d, (4, 8, (1, 3)), lambda n: [r(2, 4, 8 + n, 9)], kernels=1, **HALF)


def _with_nan(x: torch.Tensor) -> torch.Tensor:
    x[0, 1, 3, 4] = float("nan")
    return x


# What lies next to a window has no part in it, not even as NaN times zero.
case(
    "float16_few_with_nan",
    lambda self, x, w: torch.nan_to_num(torch.nn.functional.conv2d(x, w), nan=500.0),
    lambda n: [_with_nan(r(2, 3, 6 + n, 7)), r(8, 3, 3, 3)],
    **HALF,
)


class FromColours(nn.Module):
    """torch rounds the second convolution to TF32, and the first one, of few channels, not at most sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


CASES["float16_from_colours"] = Case(FromColours, lambda n: [r(2, 3, 8 + n, 9)], **HALF)


class Residual(nn.Module):
    """Convolutions whose results are read by another one, by a sum and by both."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Conv2d(16, 16, size, padding=size // 2) for size in (3, 3, 1))
        self.norm = nn.BatchNorm2d(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm(self.first(x)))
        return torch.relu(self.third(self.second(y)) + y + x).mean(dim=(2, 3))


CASES["torch_channels_last"] = Case(Residual, lambda n: [r(2, 16, 5 + n, 6)], **HALF)


class Branches(nn.Module):
    """One input of several convolutions, one of them in groups; a view as an input; an intermediate result that is returned, too."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.grouped = nn.Conv2d(32, 16, 3, padding=1), nn.Conv2d(32, 16, 3, padding=1, groups=2)
        self.after = nn.Conv2d(16, 16, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.cat([self.left(x), self.grouped(x)], dim=1)
        half = torch.relu(both[:, 8:24])
        return self.after(torch.nn.functional.max_pool2d(half, 2)), both


CASES["torch_channels_last_transposed"] = Case(
    nn.Sequential, lambda n: [r(2, 16, 5 + n, 4)], (nn.ConvTranspose2d(16, 24, 3, 2, 1, 1), nn.ReLU()), **HALF
)
CASES["torch_channels_last_branches"] = Case(Branches, lambda n: [r(2, 32, 6 + n, 8)], **HALF)

# As exact as float32: three products of two planes.
module("planes_conv2d", nn.Conv2d, (20, 24, 3, 1, 1), lambda n: [r(2, 20, 9 + n, 11)], kernels=4, **PLANES)
module("planes_conv2d_huge", nn.Conv2d, (20, 8, 3), lambda n: [r(2, 20, 6 + n, 7) * 1e5], **PLANES)
module("planes_conv2d_long", nn.Conv2d, (64, 8, (3, 5)), lambda n: [r(1, 64, 4 + n, 8)], **PLANES)
module("planes_conv3d", nn.Conv3d, (3, 8, (3, 2, 5)), lambda n: [r(2, 3, 5 + n, 6, 7)], kernels=4, **PLANES)
module("planes_conv1d", nn.Conv1d, (6, 9, 5, 2, 3, 2), lambda n: [r(2, 6, 17 + n)], kernels=4, **PLANES)
module(
    "planes_transposed",
    nn.ConvTranspose3d,
    (8, 6, (1, 3, 5), (1, 2, 2), (0, 1, 2), 0, 2),
    lambda n: [r(2, 8, 2, 4 + n, 5)],
    kernels=4,
    **PLANES,
)

# The same of few channels, whose windows are split in the tiles.
WINDOWS = {"halves": True, "tf32": False, "windows": True}
module("split_windows_conv2d", nn.Conv2d, (3, 24, (3, 5), 1, 1), lambda n: [r(2, 3, 9 + n, 11)], kernels=3, **WINDOWS)
module("split_windows_conv3d", nn.Conv3d, (3, 70, 3, 2, 1), lambda n: [r(2, 3, 5 + n, 6, 7)], kernels=3, **WINDOWS)
module("split_windows_conv1d", nn.Conv1d, (6, 9, 5, 2, 3, 2), lambda n: [r(2, 6, 17 + n)], kernels=3, **WINDOWS)
module("split_windows_long", nn.Conv2d, (8, 6, (5, 13)), lambda n: [r(2, 8, 6 + n, 15)], kernels=3, **WINDOWS)
module("split_windows_huge", nn.Conv2d, (3, 8, 3), lambda n: [r(2, 3, 6 + n, 7) * 1e5], **WINDOWS)
module("split_windows_tiny", nn.Conv2d, (3, 8, 3), lambda n: [r(2, 3, 6 + n, 7) * 1e-6], **WINDOWS)


class LargeWeight(nn.Conv2d):
    """Its weight leaves the range of what is stored times 2^11."""

    def __init__(self) -> None:
        super().__init__(3, 8, 3)
        with torch.no_grad():
            self.weight[1, 2] = 33.0


CASES["split_windows_large_weight"] = Case(LargeWeight, lambda n: [r(2, 3, 6 + n, 7)], **WINDOWS)


class WindowsPreactivated(nn.Module):
    """What is convolved is computed, and what follows reduces over the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(5, 16, 3, padding=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.layer(torch.relu(x) + y), 1)


CASES["split_windows_preactivated"] = Case(
    WindowsPreactivated, lambda n: [r(2, 5, 6 + n, 7), r(2, 5, 6 + n, 1)], **WINDOWS
)
case(
    "split_windows_with_nan",
    lambda self, x, w: torch.nan_to_num(torch.nn.functional.conv2d(x, w), nan=500.0),
    lambda n: [_with_nan(r(2, 3, 6 + n, 7)), r(8, 3, 3, 3)],
    **WINDOWS,
)

# Phases of a transposed convolution take different numbers of taps; some here none.
module("float16_phases", nn.ConvTranspose2d, (32, 8, (3, 5), (2, 3), 1), lambda n: [r(2, 32, 4 + n, 5)], **HALF)
module(
    "float16_phases_huge",
    nn.ConvTranspose2d,
    (32, 8, (3, 5), (2, 3), 1),
    lambda n: [r(2, 32, 4 + n, 5) * 1e5],
    halves=True,
)
module("float16_phases_along_one", nn.ConvTranspose2d, (32, 8, (4, 3), 2, 1), lambda n: [r(2, 32, 4 + n, 5)], **HALF)
module("float16_phases_without_taps", nn.ConvTranspose2d, (32, 8, (1, 4), 3), lambda n: [r(2, 32, 3 + n, 4)], **HALF)
module(
    "float16_phases_dilated", nn.ConvTranspose1d, (64, 8, 5, 3, 2, 1, 1, True, 2), lambda n: [r(2, 64, 6 + n)], **HALF
)
module("float16_phases_1d", nn.ConvTranspose1d, (16, 72, 4, 2, 1), lambda n: [r(2, 16, 150 + n)], **HALF)
module("planes_phases", nn.ConvTranspose3d, (20, 8, 3, 2, 1), lambda n: [r(1, 20, 2 + n, 3, 4)], **PLANES)
CASES["float16_transposed_residual"] = Case(TransposedResidual, residual_inputs, kernels=4, **HALF)
case(
    "float16_phases_with_nan",
    lambda self, x, w: torch.nan_to_num(torch.nn.functional.conv_transpose2d(x, w, stride=(3, 2)), nan=500.0),
    lambda n: [_with_nan(r(2, 16, 5 + n, 6)), r(16, 8, 1, 3)],
    **HALF,
)


class OfBranches(nn.Module):
    """A convolution of a sum of parts of its input, by factors of parts. The kernel for what leaves the range computes that itself."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(16, 8, 3, padding=1)

    def forward(self, x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return self.conv((x.unflatten(1, (2, 16)) * s).sum(1) + x[:, 5:21])


CASES["float16_of_branches"] = Case(OfBranches, lambda n: [r(2, 32, 5 + n, 6), r(2, 2, 16, 1, 1)], kernels=4, **HALF)
CASES["float16_of_large_branches"] = Case(
    OfBranches, lambda n: [r(2, 32, 5 + n, 6) * 1e6, r(2, 2, 16, 1, 1)], kernels=4, **HALF
)
