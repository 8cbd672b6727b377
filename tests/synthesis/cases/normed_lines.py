"""Convolutions whose kernels reduce lines of their result along the last dimensions, and store what follows for each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .float16_convolutions import PLANES
from .halves import HALF
from .registry import CASES, Case, r


class Lines(nn.Module):
    """A layer, and a function of its result, whose last dimension has ``width`` elements at any size of the others."""

    def __init__(
        self, layer: Callable[..., nn.Module], arguments: tuple[Any, ...], width: int, after: Callable[..., Any]
    ) -> None:
        super().__init__()
        self.layer, self.after = layer(*arguments), after
        self.weight, self.bias = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> Any:
        return self.after(self, self.layer(x))


def lines(
    name: str,
    layer: Callable[..., nn.Module],
    arguments: tuple[Any, ...],
    width: int,
    after: Callable[..., Any],
    inputs: Callable[[int], list[torch.Tensor]],
    **more: Any,
) -> None:
    CASES[f"lines_{name}"] = Case(Lines, inputs, (layer, arguments, width, after), **more)


def norm(self: Lines, y: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(y + 0.5, self.weight.shape, self.weight, self.bias))


def softmax(self: Lines, y: torch.Tensor) -> torch.Tensor:
    return torch.softmax(y * self.weight, -1)


def pooled(self: Lines, y: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.avg_pool3d(F.layer_norm(y + 1.0, self.weight.shape, self.weight, self.bias), 2))


def with_others(x: torch.Tensor) -> torch.Tensor:
    """``x`` with a NaN and an infinity in two of its lines."""
    x[0, 1, 3, 3], x[1, 2, 0, 1] = float("nan"), float("inf")
    return x


lines("norm", nn.Conv2d, (5, 7, 3), 8, norm, lambda n: [r(2, 5, 5 + n, 10)], kernels=1)
lines("norm_conv1d", nn.Conv1d, (4, 20, 3, 1, 1), 32, norm, lambda n: [r(2 + n, 4, 32)], kernels=1)
lines("norm_one_channel", nn.Conv2d, (3, 1, 1), 4, norm, lambda n: [r(3, 3, 6 + n, 4)], kernels=1)
lines("norm_grouped", nn.Conv2d, (8, 6, 3, 1, 1, 1, 2), 8, norm, lambda n: [r(2, 8, 6 + n, 8)], kernels=1)
lines("norm_nan", nn.Conv2d, (3, 4, 3), 8, norm, lambda n: [with_others(r(2, 3, 7 + n, 10))], kernels=1)
lines("long", nn.Conv2d, (3, 5, 1), 256, norm, lambda n: [r(2, 3, 2 + n, 256)], kernels=1)
lines("of_phases", nn.ConvTranspose2d, (4, 6, 4, 2, 1), 8, norm, lambda n: [r(2, 4, 4 + n, 4)], kernels=2)
lines("softmax", nn.Conv2d, (6, 11, (1, 3)), 16, softmax, lambda n: [r(2, 6, 5 + n, 18)], kernels=1)
lines("softmax_nan", nn.Conv2d, (3, 4, 3), 8, softmax, lambda n: [with_others(r(2, 3, 7 + n, 10))], kernels=1)
lines(
    "of_norm",
    nn.Conv2d,
    (5, 7, 3, 1, 1),
    8,
    lambda self, y: softmax(self, norm(self, y)),
    lambda n: [r(2, 5, 4 + n, 8)],
    kernels=1,
)
lines(
    "of_pixels",
    nn.Conv2d,
    (5, 7, 3, 1, 1),
    8,
    lambda self, y: F.layer_norm(y, (4, 8)),
    lambda n: [r(2 + n, 5, 4, 8)],
    kernels=1,
)
lines(
    "largest_alone",
    nn.Conv2d,
    (5, 7, 3, 1, 1),
    8,
    lambda self, y: (y * self.weight).amax(-1),
    lambda n: [r(2, 5, 4 + n, 8)],
    kernels=1,
)
lines("of_twelve", nn.Conv2d, (5, 7, 3), 12, softmax, lambda n: [r(2, 5, 5 + n, 14)], kernels=2)
lines(
    "varying",
    nn.Conv2d,
    (5, 7, 3),
    1,
    lambda self, y: torch.softmax(y, -1),
    lambda n: [r(2, 5, 5, 10 + n)],
    kernels=2,
)
lines(
    "returned",
    nn.Conv2d,
    (5, 7, 3, 1, 1),
    8,
    lambda self, y: (softmax(self, y), y),
    lambda n: [r(2, 5, 5 + n, 8)],
    kernels=2,
)
lines(
    "bfloat16",
    lambda *sizes: nn.Conv2d(*sizes).to(torch.bfloat16),
    (8, 12, 3),
    8,
    lambda self, y: F.log_softmax(y * self.weight.to(torch.bfloat16), -1),
    lambda n: [r(2, 8, 6 + n, 10).to(torch.bfloat16)],
    kernels=1,
    tolerance=2e-2,
)

lines("float16_norm", nn.Conv2d, (16, 24, 3), 8, norm, lambda n: [r(2, 16, 6 + n, 10)], kernels=4, **HALF)
lines("float16_huge", nn.Conv2d, (16, 24, 3), 8, norm, lambda n: [r(2, 16, 5 + n, 10) * 1e5], kernels=4, **HALF)
lines("float16_few", nn.Conv2d, (3, 10, 3), 16, norm, lambda n: [r(2, 3, 4 + n, 18)], kernels=4, **HALF)
lines("planes_norm", nn.Conv2d, (16, 24, 3), 8, norm, lambda n: [r(2, 16, 6 + n, 10)], kernels=4, **PLANES)
lines("pointwise", nn.Conv2d, (100, 24, 1), 8, norm, lambda n: [r(2, 100, 5 + n, 8)], kernels=3, **HALF)
lines("pairs", nn.ConvTranspose2d, (16, 20, 4, 2, 1), 8, norm, lambda n: [r(2, 16, 3 + n, 4)], kernels=4, **HALF)
lines(
    "pairs_huge",
    nn.ConvTranspose2d,
    (16, 20, 4, 2, 1),
    8,
    norm,
    lambda n: [with_others(r(2, 16, 4 + n, 5)[..., :4] * 1e5)],
    kernels=4,
    **HALF,
)
lines(
    "pairs_pooled",
    nn.ConvTranspose3d,
    (16, 10, 3, 2, 1, 1),
    16,
    pooled,
    lambda n: [r(2, 16, 2 + n, 2, 8)],
    kernels=5,
    steps=(0, 1),
    **HALF,
)
lines("pairs_cut", nn.ConvTranspose2d, (16, 20, (3, 4), 2, 1), 8, norm, lambda n: [r(2, 16, 3 + n, 4)], **HALF)
lines("pairs_one_image", nn.ConvTranspose1d, (16, 20, 4, 2, 1), 32, norm, lambda n: [r(1, 16, 16)], steps=(0,), **HALF)
