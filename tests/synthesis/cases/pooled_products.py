"""Convolutions whose kernels pool their results: of windows that do not overlap, and others, which take a kernel of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .float16_convolutions import PLANES, WINDOWS
from .folded_products import Folded
from .halves import HALF
from .registry import CASES, Case, r


def pooled(
    name: str,
    layer: Callable[..., nn.Module],
    arguments: tuple[Any, ...],
    after: Callable[[torch.Tensor], Any],
    inputs: Callable[[int], list[torch.Tensor]],
    **more: Any,
) -> None:
    CASES[f"pooled_{name}"] = Case(Folded, inputs, (layer, arguments, lambda self, y: after(y)), **more)


def with_nan(x: torch.Tensor) -> torch.Tensor:
    x[0, 1, 3, 4] = float("nan")
    return x


def block(y: torch.Tensor) -> torch.Tensor:
    return F.max_pool2d(torch.relu(y), 2)


def around(y: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(F.avg_pool2d(torch.tanh(y - 0.5) - 0.2, 2) * 3.0)


pooled("largest", nn.Conv2d, (5, 7, 3), block, lambda n: [r(2, 5, 9 + n, 8)], kernels=1)
pooled("mean", nn.Conv2d, (5, 7, 3, 1, 1), around, lambda n: [r(2, 5, 9 + n, 7)], kernels=1)
pooled("one_channel", nn.Conv2d, (3, 1, 1), block, lambda n: [r(3, 3, 6 + n, 5)], kernels=1)
pooled(
    "gaps", nn.Conv2d, (4, 6, 3), lambda y: F.max_pool2d(y, (1, 2), (2, 3)), lambda n: [r(2, 4, 7 + n, 12)], kernels=1
)
pooled("with_nan", nn.Conv2d, (3, 4, 3), block, lambda n: [with_nan(r(2, 3, 7 + n, 9))], kernels=1)
pooled(
    "conv1d", nn.Conv1d, (4, 20, 3), lambda y: F.avg_pool1d(y.tanh(), 4) + 1.0, lambda n: [r(2, 4, 17 + n)], kernels=1
)
pooled("conv3d", nn.Conv3d, (3, 5, 3), lambda y: F.max_pool3d(y, 2), lambda n: [r(2, 3, 7, 6 + n, 8)], kernels=1)
pooled("grouped", nn.Conv2d, (8, 6, 3, 1, 1, 1, 2), block, lambda n: [r(2, 8, 6 + n, 8)], kernels=1)
pooled("both", nn.Conv2d, (4, 6, 3), lambda y: F.max_pool2d(y, 2) - F.avg_pool2d(y, 2), lambda n: [r(2, 4, 8 + n, 8)])
pooled("overlapping", nn.Conv2d, (4, 6, 3), lambda y: F.max_pool2d(y, 4, 2), lambda n: [r(2, 4, 11 + n, 9)], kernels=2)
pooled("nine", nn.Conv2d, (4, 6, 3), lambda y: F.max_pool2d(y, 3), lambda n: [r(2, 4, 11 + n, 9)], kernels=2)
pooled("padded", nn.Conv2d, (4, 6, 3), lambda y: F.max_pool2d(y, 2, 2, 1), lambda n: [r(2, 4, 9 + n, 9)], kernels=2)
pooled("returned", nn.Conv2d, (4, 6, 3), lambda y: (F.max_pool2d(y, 2), y), lambda n: [r(2, 4, 8 + n, 9)], kernels=2)
pooled("twice", nn.Conv2d, (4, 6, 3), lambda y: F.max_pool2d(block(y), 2), lambda n: [r(2, 4, 14 + n, 11)], kernels=2)
pooled("softmax", nn.Conv2d, (4, 6, 3), lambda y: F.max_pool2d(y, 2).softmax(1), lambda n: [r(2, 4, 8 + n, 9)])
pooled("transposed", nn.ConvTranspose2d, (4, 6, 3, 1, 1), around, lambda n: [r(2, 4, 6 + n, 5)], kernels=1)
pooled("of_phases", nn.ConvTranspose2d, (4, 6, 4, 2, 1), block, lambda n: [r(2, 4, 4 + n, 3)])
pooled(
    "beside_phases",
    nn.ConvTranspose2d,
    (4, 6, 3, (2, 1), 1),
    lambda y: F.max_pool2d(y, (1, 2)),
    lambda n: [r(2, 4, 5 + n, 6)],
    kernels=2,
)
pooled(
    "across_rows",
    nn.Conv2d,
    (4, 6, 3),
    lambda y: y.flatten(2).unfold(2, 4, 4).amax(-1),
    lambda n: [r(2, 4, 8 + n, 9)],
    kernels=2,
)
pooled(
    "diagonal",
    nn.Conv2d,
    (4, 6, 3),
    lambda y: y.diagonal(dim1=2, dim2=3).amax(-1),
    lambda n: [r(2 + n, 4, 10, 10)],
    kernels=2,
)
pooled("float16", nn.Conv2d, (20, 24, 3), block, lambda n: [r(2, 20, 9 + n, 11)], kernels=4, **HALF)
pooled("float16_huge", nn.Conv2d, (20, 8, 3), around, lambda n: [r(2, 20, 8 + n, 7) * 1e5], kernels=4, **HALF)
pooled("planes", nn.Conv2d, (20, 24, 3), around, lambda n: [r(2, 20, 8 + n, 9)], kernels=4, **PLANES)
pooled("windows", nn.Conv2d, (3, 24, 3), block, lambda n: [r(2, 3, 10 + n, 9)], kernels=3, **WINDOWS)


class Network(nn.Module):
    """Two convolutions, the first one pooled before the second one reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Conv2d(20, 16, 3), nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(torch.relu(self.second(F.max_pool2d(torch.relu(self.norm(self.first(x))), 2))), 2).flatten(
            1
        )


CASES["pooled_network"] = Case(Network, lambda n: [r(2, 20, 10 + 2 * n, 12)], **HALF)
