"""Convolutions: windows of the input times the weight, with what follows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .registry import CASES, Case, case, module, r


class Partly(nn.Module):
    """A convolution with what follows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x)) * 2.0 + 1.0


CASES["convolution_relu"] = Case(Partly, lambda n: [r(2, 3, 8 + n, 9)], kernels=1)

module("conv1d_strided", nn.Conv1d, (4, 6, 3, 2, 0, 2), lambda n: [r(2, 4, 20 + n)], kernels=1)
module("conv2d", nn.Conv2d, (5, 7, 3), lambda n: [r(2, 5, 13 + n, 11)], kernels=1)
module("conv2d_same", nn.Conv2d, (4, 5, 3, 1, "same", 2), lambda n: [r(2, 4, 9, 8 + n)], kernels=1)
module("conv2d_one", nn.Conv2d, (20, 9, 1, 1, 0, 1, 1, False), lambda n: [r(2 + n, 20, 7, 5)], kernels=1)
module("conv2d_circular", nn.Conv2d, (3, 4, 3, 1, 1, 1, 1, True, "circular"), lambda n: [r(2, 3, 8 + n, 9)], kernels=2)
module("conv2d_reflect", nn.Conv2d, (3, 4, (3, 5), 1, (1, 2), 1, 1, True, "reflect"), lambda n: [r(2, 3, 8 + n, 9)])
module("conv2d_grouped", nn.Conv2d, (8, 12, 3, 2, 1, 1, 2), lambda n: [r(2, 8, 12 + n, 12)], kernels=1)
module("depthwise_large", nn.Conv2d, (3, 3, 5, 2, 2, 1, 3), lambda n: [r(2, 3, 100 + n, 96)], kernels=1)
module("conv2d_depthwise", nn.Conv2d, (6, 6, 3, 1, 1, 1, 6), lambda n: [r(2, 6, 9 + n, 8)], kernels=1)
module("conv2d_no_batch", nn.Conv2d, (3, 4, 3), lambda n: [r(3, 8 + n, 9)], kernels=1)
module("conv2d_one_output", nn.Conv2d, (20, 1, 1), lambda n: [r(2 + n, 20, 7, 5)], kernels=1)
module("conv1d_one_place", nn.Conv1d, (8, 5, 3), lambda n: [r(2 + n, 8, 3)], kernels=1)
module("transposed", nn.ConvTranspose2d, (5, 7, 3), lambda n: [r(2, 5, 6 + n, 5)], kernels=1)
module("transposed1d_strided", nn.ConvTranspose1d, (6, 4, 5, 3, 2, 1), lambda n: [r(2, 6, 7 + n)], kernels=1)
module("transposed_odd", nn.ConvTranspose2d, (4, 5, 3, 2), lambda n: [r(2, 4, 5 + n, 4)], kernels=1)
module("transposed_dilated", nn.ConvTranspose1d, (5, 4, 4, 3, 1, 0, 1, True, 2), lambda n: [r(2, 5, 8 + n)], kernels=1)
module("transposed_cut", nn.ConvTranspose2d, (4, 3, 4, 3, 1), lambda n: [r(2, 4, 5 + n, 4)], kernels=1)
# Each result takes one element of the filter or none: the products are computed first and put in their places.
module("scattered", nn.ConvTranspose2d, (4, 3, 3, 5, 1, 0, 1, False, 2), lambda n: [r(2, 4, 5 + n, 4)], kernels=2)
module("scattered1d", nn.ConvTranspose1d, (6, 4, 2, 3, 0, 2), lambda n: [r(2, 6, 7 + n)], kernels=2)
module(
    "scattered3d",
    nn.ConvTranspose3d,
    (3, 4, (1, 2, 2), (2, 2, 4), 0, (1, 0, 0), 1, True, (1, 1, 2)),
    lambda n: [r(2, 3, 3 + n, 4, 3)],
    kernels=2,
)
module("scattered_grouped", nn.ConvTranspose2d, (32, 6, 2, 3, 1, 1, 2), lambda n: [r(2, 32, 5 + n, 4)], kernels=2)
module("scattered_depthwise", nn.ConvTranspose2d, (6, 6, 2, 3, 0, 0, 6), lambda n: [r(2, 6, 5 + n, 4)])
module("scattered_no_batch", nn.ConvTranspose1d, (6, 4, 1, 2), lambda n: [r(6, 7 + n)], kernels=2)
module("transposed_gaps", nn.ConvTranspose2d, (4, 3, 3, 2, 1, 0, 1, False, 2), lambda n: [r(2, 4, 5 + n, 4)], kernels=2)
module("transposed_grouped", nn.ConvTranspose2d, (8, 6, (3, 4), 2, 1, 1, 2), lambda n: [r(2, 8, 4 + n, 5)], kernels=1)
module("transposed_depthwise", nn.ConvTranspose1d, (6, 6, 3, 2, 1, 1, 6), lambda n: [r(2, 6, 5 + n)], kernels=1)
module("transposed3d", nn.ConvTranspose3d, (4, 5, 3, 2, 1, 1), lambda n: [r(2, 4, 3 + n, 4, 3)], kernels=1)


class TransposedTail(nn.Module):
    """What follows a transposed convolution is computed in its kernel, whose tiles have a row and a column that are not stored."""

    def __init__(self):
        super().__init__()
        self.up, self.scale = nn.ConvTranspose2d(6, 8, 3, stride=2), nn.Parameter(torch.randn(8, 1, 1))

    def forward(self, x):
        return F.gelu(self.up(x) * self.scale) + 1.0


module(
    "transposed3d_uneven",
    nn.ConvTranspose3d,
    (4, 5, (2, 2, 4), 2, (0, 0, 1)),
    lambda n: [r(2, 4, 3 + n, 4, 3)],
    kernels=1,
)


class TransposedPhase(nn.Module):
    """A parameter is called what a kernel calls its phase."""

    def __init__(self):
        super().__init__()
        self.up, self.phase = nn.ConvTranspose2d(6, 8, 3, stride=2), nn.Parameter(torch.randn(8, 1, 1))

    def forward(self, x):
        return self.up(x) * self.phase


CASES["transposed_phase"] = Case(TransposedPhase, lambda n: [r(2, 6, 5 + n, 4)], kernels=1)
CASES["transposed_tail"] = Case(TransposedTail, lambda n: [r(2, 6, 5 + n, 4)], kernels=1)


class TransposedResidual(nn.Module):
    """What is added to a transposed convolution, or multiplied with it, as long as what is left of it; one NaN is added."""

    def __init__(self):
        super().__init__()
        self.up, self.rows = nn.ConvTranspose2d(6, 8, 3, stride=2), nn.Parameter(torch.randn(8, 15, 1))

    def forward(self, x, y, mask):
        z = torch.relu(self.up(x) * self.rows[:, : y.shape[-2]]) + y
        return torch.where(mask & (z == z), z, 500.0)


def residual_inputs(n: int) -> list[torch.Tensor]:
    y = r(2, 8, 9 + 2 * n, 11)
    y[1, 2, -1, -1] = float("nan")
    return [r(2, 6, 4 + n, 5), y, torch.rand(9 + 2 * n, 11) > 0.5]


CASES["transposed_residual"] = Case(TransposedResidual, residual_inputs, kernels=1)
module("conv3d", nn.Conv3d, (3, 4, (2, 3, 3), 1, (0, 1, 1)), lambda n: [r(2, 3, 5 + n, 7, 6)], kernels=1)


class ConvNormAct(nn.Module):
    """A convolution with a norm in eval mode, an activation, a residual and a pool after it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(F.silu(self.norm(self.conv(x))) + x, 2)


CASES["conv_norm_act_pool"] = Case(ConvNormAct, lambda n: [r(2, 6, 8 + n, 10)], kernels=1)
case(
    "product_with_an_infinite_number",
    lambda self, x, w: torch.nan_to_num(torch.nn.functional.conv1d(x, w), posinf=500.0, neginf=-500.0),
    lambda n: [r(1, 1, 20 + n), torch.full((1, 1, 1), torch.inf)],
)


case(
    "transposed_to_one_channel_in_bfloat16",
    lambda self, x, weight: F.conv_transpose1d(x, weight, stride=2, padding=2),
    lambda n: [r(1, 7, 16 + n).bfloat16(), r(7, 1, 1).bfloat16()],
    tolerance=2e-2,
)
