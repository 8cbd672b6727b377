"""Products whose kernels reduce their rows or columns: what a softmax over channels, or their least, comes to behind a convolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .float16_convolutions import PLANES
from .halves import HALF
from .registry import CASES, Case, r


class Folded(nn.Module):
    """A layer, and a function of its result."""

    def __init__(self, layer: Callable[..., nn.Module], arguments: tuple[Any, ...], after: Callable[..., Any]) -> None:
        super().__init__()
        self.layer, self.after, self.bias = layer(*arguments), after, nn.Parameter(torch.randn(1, 1, 1))

    def forward(self, x: torch.Tensor) -> Any:
        return self.after(self, self.layer(x))


def folded(
    name: str,
    layer: Callable[..., nn.Module],
    arguments: tuple[Any, ...],
    after: Callable[..., Any],
    inputs: Callable[[int], list[torch.Tensor]],
    **more: Any,
) -> None:
    CASES[f"folded_{name}"] = Case(Folded, inputs, (layer, arguments, after), **more)


def gate(self: Folded, y: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid((torch.softmax(y, dim=1) + self.bias) * 2.0)


def least(self: Folded, y: torch.Tensor) -> torch.Tensor:
    return torch.exp(-torch.min(y * 2.0, dim=1, keepdim=True)[0])


def smooth_most(self: Folded, y: torch.Tensor) -> torch.Tensor:
    return torch.clamp(F.hardswish(torch.logsumexp(y, dim=1, keepdim=True)) - self.bias, -1.0, 1.0)


def channel_norm(self: Folded, y: torch.Tensor) -> torch.Tensor:
    mean = y.mean(dim=1, keepdim=True)
    centered = y - mean
    return centered / torch.sqrt((centered * centered).mean(dim=1, keepdim=True) + 1e-5) * self.bias


folded("softmax", nn.Conv2d, (5, 7, 3), gate, lambda n: [r(2, 5, 9 + n, 8)], kernels=1)
folded("least", nn.Conv1d, (4, 20, 3), least, lambda n: [r(2, 4, 17 + n)], kernels=1)
folded("norm", nn.Conv2d, (6, 11, (1, 3)), channel_norm, lambda n: [r(2, 6, 5 + n, 8)], kernels=1)
folded("transposed", nn.ConvTranspose2d, (4, 5, 4, 2, 1, 1), gate, lambda n: [r(2, 4, 4 + n, 3)], kernels=1)
folded("linear", nn.Linear, (12, 10), lambda self, y: torch.softmax(y, -1), lambda n: [r(40 + n, 12)], kernels=1)
folded("place", nn.Conv2d, (6, 21, 1), lambda self, y: y.argmax(1), lambda n: [r(2, 6, 7 + n, 5)])
folded(
    "layer_norm",
    nn.Linear,
    (12, 40),
    lambda self, y: F.gelu(F.layer_norm(y, (40,))) + 1.0,
    lambda n: [r(3, 20 + n, 12)],
    kernels=1,
)


class Gates(nn.Module):
    """A product whose rows fit in a tile, reduced and then combined with another product, in either order."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(12, 40), nn.Linear(12, 40)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        left, right = self.left(x), self.right(x)
        return left.amax(1, keepdim=True) * right, torch.softmax(right, 1) * left, F.layer_norm(left, (40,)) + right


class OneGate(Gates):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.left(x), 1) * self.right(x)


CASES["folded_gates"] = Case(Gates, lambda n: [r(30 + n, 12)])
CASES["folded_one_gate"] = Case(OneGate, lambda n: [r(30 + n, 12)], kernels=2)
folded(
    "bfloat16",
    lambda *sizes: nn.Conv2d(*sizes).to(torch.bfloat16),
    (8, 12, 3),
    lambda self, y: F.log_softmax(y, 1),
    lambda n: [r(2, 8, 6 + n, 7).to(torch.bfloat16)],
    kernels=1,
    tolerance=1e-2,
)

folded("float16_softmax", nn.Conv2d, (16, 24, 3), gate, lambda n: [r(2, 16, 6 + n, 7)], kernels=4, **HALF)
folded("float16_least", nn.Conv2d, (16, 64, 3), least, lambda n: [r(2, 16, 5 + n, 6)], kernels=4, **HALF)
folded("float16_huge", nn.Conv2d, (16, 24, 3), gate, lambda n: [r(2, 16, 5 + n, 6) * 1e5], kernels=4, **HALF)
folded(
    "float16_pairs", nn.ConvTranspose2d, (16, 20, 4, 2, 1, 1), gate, lambda n: [r(2, 16, 4 + n, 5)], kernels=4, **HALF
)
folded(
    "float16_few_pairs",
    nn.ConvTranspose3d,
    (3, 10, 3, 2, 1),
    smooth_most,
    lambda n: [r(2, 3, 3, 4 + n, 3)],
    kernels=4,
    **HALF,
)
folded("planes_softmax", nn.Conv2d, (16, 24, 3), gate, lambda n: [r(2, 16, 6 + n, 7)], kernels=4, **PLANES)
folded(
    "planes_pairs", nn.ConvTranspose2d, (16, 20, 3, 2, 1, 1), least, lambda n: [r(2, 16, 4 + n, 5)], kernels=4, **PLANES
)
folded("pointwise", nn.Conv2d, (100, 24, 1), gate, lambda n: [r(2, 100, 5 + n, 6)], kernels=3, **HALF)


folded(
    "patches",
    nn.Conv2d,
    (3, 24, 2, 2),
    lambda self, y: F.layer_norm(y.flatten(2).transpose(1, 2), (24,)),
    lambda n: [r(2, 3, 8 + 2 * n, 6)],
    kernels=1,
)
folded(
    "channels_first",
    nn.Conv2d,
    (3, 24, 2, 2),
    lambda self, y: F.layer_norm(y.permute(0, 2, 3, 1), (24,)).permute(0, 3, 1, 2) * self.bias,
    lambda n: [r(2, 3, 8 + 2 * n, 6)],
    kernels=1,
)


class NotFolded(nn.Module):
    """What is reduced is returned, too, or read by another product, or has more columns than a tile: the product is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.wide = nn.Linear(8, 6), nn.Linear(6, 5), nn.Linear(8, 300)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.first(x)
        return y, torch.softmax(y, -1), self.second(torch.softmax(y * 2.0, -1)), torch.softmax(self.wide(x), -1)


CASES["folded_not"] = Case(NotFolded, lambda n: [r(9 + n, 8)])


class FoldedResidual(nn.Module):
    """What is added before the norm lies in memory; the reduced number is read by another kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm = nn.Linear(12, 24), nn.LayerNorm(24)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = self.norm(self.up(x) + y)
        return torch.cumsum(z.amax(-1), 0)


CASES["folded_residual"] = Case(FoldedResidual, lambda n: [r(9 + n, 12), r(9 + n, 24)])


class FoldedHalf(nn.Module):
    """Sums are of float32; what is returned of them is rounded, also where only the dimension of size one goes."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.linear, self.convolution = nn.Linear(24, 20, dtype=dtype), nn.Conv2d(6, 10, 3, 1, 1, dtype=dtype)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = self.linear(x)
        return torch.relu(z).sum(1), z.mean(1, keepdim=True), self.convolution(y).sum(1)


for _name, _dtype in (("bfloat16", torch.bfloat16), ("half", torch.float16)):
    CASES[f"folded_sums_in_{_name}"] = Case(
        FoldedHalf, lambda n, d=_dtype: [r(9 + n, 24).to(d), r(2, 6, 5 + n, 4).to(d)], (_dtype,), tolerance=2e-2
    )
