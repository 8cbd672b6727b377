"""Products in float32 that are made of products in half precision or TF32."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .registry import CASES, Case, case, module, r

HALF = {"tolerance": 2e-3, "halves": True}
module("float16_conv2d", nn.Conv2d, (20, 24, 3, 1, 1), lambda n: [r(2, 20, 9 + n, 11)], kernels=4, **HALF)
module("float16_conv2d_huge", nn.Conv2d, (16, 8, 3), lambda n: [r(2, 16, 6 + n, 7) * 1e5], halves=True)
module("float16_several_huge", nn.Conv2d, (16, 72, 3), lambda n: [r(2, 16, 12 + n, 9) * 1e5], halves=True)
module("float16_conv2d_tiny", nn.Conv2d, (16, 8, 3), lambda n: [r(2, 16, 6 + n, 7) * 1e-8], halves=True)
module("float16_conv1d", nn.Conv1d, (32, 9, 4, 3, 2, 2), lambda n: [r(2, 32, 17 + n)], kernels=4, **HALF)
module("float16_conv3d", nn.Conv3d, (16, 8, (1, 3, 2), (1, 2, 1), (0, 1, 1)), lambda n: [r(2, 16, 3 + n, 6, 5)], **HALF)
module("float16_transposed", nn.ConvTranspose2d, (16, 8, 3, 2, 1, 1), lambda n: [r(2, 16, 5 + n, 4)], kernels=4, **HALF)


class TwoFloat16(nn.Module):
    """Two convolutions of one tensor: it is written with its channels last once."""

    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(16, 8, 1)

    def forward(self, x):
        return torch.relu(self.wide(x)) + self.narrow(x)


class Preactivated(nn.Module):
    """What is normalized and activated before a convolution, of its input and of what another convolution gave."""

    def __init__(self):
        super().__init__()
        self.norm, self.norm_both = nn.BatchNorm2d(16), nn.BatchNorm2d(24)
        self.first, self.second = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(24, 8, 3, padding=1)

    def forward(self, x):
        y = self.first(torch.relu(self.norm(x)))
        return self.second(torch.relu(self.norm_both(torch.cat((x, y), 1))))


# Each convolution: what rounds its input, what packs its weight, its kernel, the exact one. What the exact one reads has no kernel of its own.
CASES["float16_preactivated"] = Case(Preactivated, lambda n: [r(2, 16, 6 + n, 7)], kernels=8, **HALF)
CASES["float16_preactivated_huge"] = Case(Preactivated, lambda n: [r(2, 16, 6 + n, 7) * 1e5], kernels=8, halves=True)
CASES["float16_two"] = Case(TwoFloat16, lambda n: [r(2, 16, 6 + n, 7)], **HALF)
case("planes_mm", lambda self, x, y: x @ y, lambda n: [r(33 + n, 72), r(72, 24)], kernels=3, halves=True)
case(
    "planes_bmm",
    lambda self, x, y: torch.bmm(torch.relu(x), y),
    lambda n: [r(3, 17 + n, 72), r(3, 72, 20)],
    kernels=4,
    halves=True,
)
module("planes_linear", nn.Linear, (1104, 24), lambda n: [r(19 + n, 1104)], kernels=4, halves=True)
module("planes_huge", nn.Linear, (70, 24), lambda n: [r(19 + n, 70) * 1e5], halves=True)
case(
    "planes_bmm_huge",
    lambda self, x, y: torch.bmm(x, y),
    lambda n: [r(3, 70 + n, 72) * 1e5, r(3, 72, 20)],
    kernels=4,
    halves=True,
)
module("planes_tiny", nn.Linear, (70, 24), lambda n: [r(19 + n, 70) * 1e-8], halves=True)
case("planes_of_small", lambda self, x, y: torch.exp(x) @ y, lambda n: [r(33 + n, 72) - 20, r(72, 24)], halves=True)
# Rows that are no multiple of 16 bytes: planes are written with K last, and longer.
case("planes_rough", lambda self, x, y: x @ y, lambda n: [r(33 + n, 71), r(71, 21)], kernels=4, halves=True)
case("planes_rough_columns", lambda self, x, y: x @ y, lambda n: [r(33 + n, 64), r(64, 21)], halves=True)
module("planes_rough_linear", nn.Linear, (75, 24), lambda n: [r(19 + n, 75)], kernels=4, halves=True)
module(
    "planes_short", nn.Linear, (40, 24), lambda n: [r(19 + n, 40)], kernels=4, halves=True
)  # one step is the whole sum
case("planes_rough_square", lambda self, x: x @ x.mT, lambda n: [r(2, 19 + n, 35)], halves=True)
# Thin: the larger operand is split in the tiles of the product.
THIN = {"halves": True, "thin": "one"}
case("thin_mm", lambda self, x, y: x @ y, lambda n: [r(5 + n, 72), r(72, 104)], kernels=3, **THIN)
case("thin_mm_columns", lambda self, x, y: x @ y, lambda n: [r(104, 72), r(72, 8 * n + 8)], kernels=3, **THIN)
case("thin_mm_turned", lambda self, x, y: x @ y.mT, lambda n: [r(200, 136).mT, r(n + 2, 200)], kernels=3, **THIN)
case("thin_bmm", lambda self, x, y: torch.bmm(x, torch.relu(y)), lambda n: [r(3, 33 + n, 72), r(3, 72, 104)], **THIN)
BOTH = {"halves": True, "thin": "both"}
case("thin_both", lambda self, x, y: x @ y, lambda n: [r(40 + n, 264), r(264, 24)], kernels=2, **BOTH)
case("thin_both_huge", lambda self, x, y: x @ y, lambda n: [r(40 + n, 72), r(72, 24) * 1e5], kernels=2, **BOTH)
module("thin_linear_huge", nn.Linear, (72, 104), lambda n: [r(9 + n, 72) * 1e5], **THIN)


class ThinSwish(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y * torch.sigmoid(y) * 2.0


CASES["thin_swish"] = Case(ThinSwish, lambda n: [r((200, 1, 0, 40)[n], 264)], init=(264, 216), kernels=3, **THIN)


class ThinWeight(nn.Module):
    """A weight that float16 does not hold, in one place or at all."""

    def __init__(self, scale, only):
        super().__init__()
        self.times = max(1.0, 0.1 / scale)
        self.register_buffer("weight", r(104, 72))
        self.weight[only] *= scale

    def forward(self, x):
        return functional.linear(x, self.weight) * self.times


CASES["thin_weight_huge"] = Case(ThinWeight, lambda n: [r(9 + n, 72)], init=(1e6, (71, 3)), **THIN)
CASES["thin_weight_tiny"] = Case(ThinWeight, lambda n: [r(9 + n, 72)], init=(1e-8, slice(None)), **THIN)
# One kernel, which splits both operands in each step, and sums a tile again where float16 does not hold its numbers.
STEPS = {"in_steps": True, "kernels": 1}
case("split_mm", lambda self, x, y: x @ y, lambda n: [r(33 + n, 72), r(72, 40)], **STEPS)
case("split_mm_turned", lambda self, x, y: x.mT @ y.mT, lambda n: [r(72, 33 + n), r(40, 72)], **STEPS)
case("split_mm_strided", lambda self, x, y: x @ y, lambda n: [r(33 + n, 144)[:, ::2], r(2, 72, 40)[1]], **STEPS)
case("split_bmm_of_sums", lambda self, x, y: torch.bmm(x, y), lambda n: [r(3, 17, 64 + n), r(3, 64 + n, 40)], **STEPS)
module("split_linear_huge", nn.Linear, (72, 40), lambda n: [r(33 + n, 72) * 1e5], **STEPS)
module("split_linear_tiny", nn.Linear, (72, 40), lambda n: [r(33 + n, 72) * 1e-8], **STEPS)


class SplitGated(nn.Module):
    """Rows of zeros alone, and one infinite element; what follows reads one of the inputs again."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(72, 40, bias=False)

    def forward(self, gate, up):
        return torch.relu(self.out(functional.silu(gate) * up)) + gate[:, :40]


def _gated(n):
    gate, up = r(80 + n, 72), r(80 + n, 72)
    up[64:] = 0.0
    if n == 3:
        gate[1, 5] = float("inf")
    return [gate, up]


CASES["split_gated"] = Case(SplitGated, _gated, in_steps=True)
# Weights that are packed in the first call alone.
module("kept_linear", nn.Linear, (1104, 24), lambda n: [r(19 + n, 1104)], kernels=4, halves=True, keep=True)
module(
    "kept_conv2d", nn.Conv2d, (20, 24, 3, 1, 1), lambda n: [r(2, 20, 9 + n, 11)], halves=True, keep=True, tolerance=2e-3
)
