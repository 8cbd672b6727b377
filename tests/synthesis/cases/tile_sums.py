"""Reductions over all pixels of a convolution whose kernel stores what each of its tiles comes to: global pooling, and norms behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .float16_convolutions import PLANES
from .halves import HALF
from .registry import CASES, Case, r


class Then(nn.Module):
    """A convolution, and what follows it."""

    def __init__(self, conv: nn.Module, norm: nn.Module, after: Callable[[nn.Module, torch.Tensor], Any]) -> None:
        super().__init__()
        self.conv, self.norm, self.after = conv, norm, after

    def forward(self, x: torch.Tensor) -> Any:
        return self.after(self.norm, self.conv(x))


class ThenInTraining(Then):
    """The same in training mode."""


def in_tiles(
    name: str,
    conv: Callable[[], nn.Module],
    after: Callable[[nn.Module, torch.Tensor], Any],
    inputs: Callable[[int], list[torch.Tensor]],
    norm: Callable[[], nn.Module] = nn.Identity,
    kind: type[nn.Module] = Then,
    **more: Any,
) -> None:
    made = type(f"In{''.join(part.capitalize() for part in name.split('_'))}Tiles", (kind,), {"__module__": __name__})
    made.__init__ = lambda self: kind.__init__(self, conv(), norm(), after)  # type: ignore[method-assign,misc]
    CASES[f"in_tiles_{name}"] = Case(made, inputs, tile_sums=True, **more)


def normed(norm: nn.Module, y: torch.Tensor) -> torch.Tensor:
    return norm(y)


def pooled(_: nn.Module, y: torch.Tensor) -> torch.Tensor:
    return F.adaptive_avg_pool2d(F.gelu(y), 1).flatten(1)


def residual(norm: nn.Module, y: torch.Tensor) -> torch.Tensor:
    return torch.logsumexp(y + F.hardswish(torch.tanh(norm(y))), dim=1, keepdim=True)


def image(channels: int, *sizes: int) -> Callable[[int], list[torch.Tensor]]:
    return lambda n: [r(2 + n % 2, channels, sizes[0] + n, *sizes[1:])]


in_tiles("pool", lambda: nn.Conv2d(3, 20, 3), pooled, image(3, 14, 15), kernels=2)
in_tiles("group_norm", lambda: nn.Conv2d(3, 12, 3), residual, image(3, 14, 15), lambda: nn.GroupNorm(4, 12), kernels=4)
in_tiles(
    "offset",  # variance about a mean that is much larger than it
    lambda: nn.Conv2d(3, 4, 3),
    lambda norm, y: norm(y * 0.01 + 30.0),
    image(3, 18, 17),
    lambda: nn.InstanceNorm2d(4),
    tolerance=2e-3,
)
in_tiles(
    "length", lambda: nn.Conv1d(3, 6, 4), normed, image(3, 300), lambda: nn.InstanceNorm1d(6, affine=True), kernels=4
)
in_tiles(
    "volume",
    lambda: nn.Conv3d(2, 5, 2),
    lambda norm, y: norm(y).amax((2, 3, 4)),
    image(2, 5, 7, 8),
    lambda: nn.GroupNorm(1, 5),
)
in_tiles(
    "batch_norm",
    lambda: nn.Conv2d(3, 6, 3, bias=False),
    normed,
    image(3, 14, 15),
    lambda: nn.BatchNorm2d(6),
    ThenInTraining,
    training=True,
)
in_tiles(
    "grouped", lambda: nn.Conv2d(4, 8, 3, groups=2), lambda _, y: (y.amax((2, 3)), y.mean((1, 2, 3))), image(4, 14, 15)
)
in_tiles("stored", lambda: nn.Conv2d(3, 6, 3), lambda _, y: (y, y.sum((2, 3)), y.amin((2, 3))), image(3, 14, 15))
in_tiles(
    "transposed",
    lambda: nn.ConvTranspose2d(3, 6, 3),
    lambda _, y: torch.relu(y).mean((2, 3)),
    image(3, 12, 13),
    kernels=2,
)
in_tiles(
    "transposed_norm",  # of float16, whose product has phases, of one each
    lambda: nn.ConvTranspose2d(16, 24, 3, 1, 1),
    lambda norm, y: norm(F.gelu(y)),
    image(16, 14, 15),
    lambda: nn.GroupNorm(4, 24),
    kernels=7,
    **HALF,
)
in_tiles("float16_pool", lambda: nn.Conv2d(16, 20, 3), pooled, image(16, 14, 15), **HALF)
in_tiles("float16_norm", lambda: nn.Conv2d(16, 24, 3), residual, image(16, 14, 15), lambda: nn.GroupNorm(4, 24), **HALF)
in_tiles(
    "float16_huge",  # what float16 does not hold
    lambda: nn.Conv2d(16, 8, 3),
    normed,
    lambda n: [r(2, 16, 14 + n, 15) * 1e5],
    lambda: nn.InstanceNorm2d(8),
    **HALF,
)
in_tiles("planes_pool", lambda: nn.Conv2d(16, 20, 3), pooled, image(16, 14, 15), **PLANES)
in_tiles("planes_few", lambda: nn.Conv2d(3, 8, 3), normed, image(3, 14, 15), lambda: nn.InstanceNorm2d(8), **PLANES)
in_tiles("pointwise", lambda: nn.Conv2d(100, 24, 1), normed, image(100, 12, 13), lambda: nn.InstanceNorm2d(24), **HALF)
in_tiles("small", lambda: nn.Conv2d(3, 6, 3), normed, image(3, 5, 6), lambda: nn.GroupNorm(2, 6))
in_tiles(
    "full",
    lambda: nn.Conv1d(3, 6, 3, padding=1),
    normed,
    lambda n: [r(2, 3, 128 + 128 * n)],
    lambda: nn.InstanceNorm1d(6),
)
#: transposed convolutions with a stride, whose pixels alternate from phase to phase
in_tiles(
    "phases",  # of even sizes, so that each phase has all of its pixels
    lambda: nn.ConvTranspose2d(3, 8, 4, 2, 1),
    normed,
    lambda n: [r(2 + n % 2, 3, 12 + n, 11)],
    lambda: nn.GroupNorm(2, 8),
)
in_tiles(
    "phases_cut",  # of odd sizes
    lambda: nn.ConvTranspose2d(3, 6, 3, 2, 1),
    lambda norm, y: (F.silu(norm(y)), y),
    lambda n: [r(2, 3, 13 + n, 12)],
    lambda: nn.InstanceNorm2d(6, affine=True),
)
in_tiles(
    "phases_offset",  # variance about a mean that is much larger than it
    lambda: nn.ConvTranspose2d(3, 4, 3, 2, 1),
    lambda norm, y: norm(y * 0.01 + 30.0),
    lambda n: [r(2, 3, 12 + n, 11)],
    lambda: nn.GroupNorm(2, 4),
    tolerance=2e-3,
)
in_tiles(
    "phases_dilated",  # one axis of three phases, taps that are apart, and a last result that no tap reaches
    lambda: nn.ConvTranspose1d(3, 6, 4, 3, 2, 2, dilation=2),
    normed,
    lambda n: [r(2, 3, 150 + 10 * n)],
    lambda: nn.InstanceNorm1d(6),
)
in_tiles(
    "phases_volume",
    lambda: nn.ConvTranspose3d(2, 4, 3, (1, 2, 2), 1, bias=False),
    normed,
    lambda n: [r(2, 2, 3, 5 + n, 6)],
    lambda: nn.BatchNorm3d(4),
    ThenInTraining,
    training=True,
)
in_tiles(
    "phases_grouped",  # stored without what is cut off
    lambda: nn.ConvTranspose2d(8, 6, 4, (3, 2), 1, groups=2),
    lambda _, y: (y, y.amax((2, 3)), y.mean((1, 2, 3)), y.amin((2, 3), keepdim=True)),
    lambda n: [r(2, 8, 9 + n, 10)],
)
in_tiles(
    "phases_few",  # phases that have no pixel
    lambda: nn.ConvTranspose2d(3, 4, 1, 3),
    normed,
    lambda n: [r(2, 3, (6, 1, 1, 2)[n], (5, 2, 1, 1)[n])],
    lambda: nn.GroupNorm(1, 4),
)


def _with_nan(n: int) -> torch.Tensor:
    x = r(3, 3, 20 + n)
    x[0, 0, 5], x[1, 1, 7] = torch.nan, torch.inf
    return x


in_tiles(
    "phases_with_nan",
    lambda: nn.ConvTranspose1d(3, 4, 3, 2, 1),
    lambda norm, y: (norm(y), y.amax(2), y.sum(2)),
    lambda n: [_with_nan(n)],
    lambda: nn.GroupNorm(2, 4),
)
in_tiles(
    "float16_phases",
    lambda: nn.ConvTranspose2d(16, 8, 3, 2, 1),
    lambda norm, y: F.hardswish(norm(F.silu(y))),
    lambda n: [r(2, 16, 12 + n, 13)],
    lambda: nn.GroupNorm(2, 8),
    **HALF,
)
in_tiles(
    "float16_phases_huge",  # what float16 does not hold
    lambda: nn.ConvTranspose2d(16, 8, 3, 2, 1),
    normed,
    lambda n: [r(2, 16, 12 + n, 13) * 1e5],
    lambda: nn.InstanceNorm2d(8),
    **HALF,
)
in_tiles(
    "float16_phases_pool",  # never stored, so that phases need no pairs
    lambda: nn.ConvTranspose2d(16, 8, 3, 2, 1, bias=False),
    lambda _, y: (F.gelu(y).mean((2, 3)), F.gelu(y).amax((2, 3))),
    lambda n: [r(2, 16, 12 + n, 13)],
    **HALF,
)
in_tiles(
    "planes_phases",
    lambda: nn.ConvTranspose2d(16, 8, 3, 2, 1),
    normed,
    lambda n: [r(2, 16, 12 + n, 13)],
    lambda: nn.InstanceNorm2d(8),
    **PLANES,
)
in_tiles("no_batch", lambda: nn.Conv2d(3, 6, 3), lambda _, y: torch.relu(y).mean((1, 2)), lambda n: [r(3, 14 + n, 15)])
in_tiles("kept_dims", lambda: nn.Conv2d(3, 6, 3), lambda _, y: y.amax((2, 3), keepdim=True), image(3, 14, 15))
in_tiles(
    "bfloat16",  # it is rounded before the norm: the convolution is stored
    lambda: nn.Conv2d(4, 6, 3).to(torch.bfloat16),
    normed,
    lambda n: [r(2, 4, 14 + n, 15).to(torch.bfloat16)],
    lambda: nn.GroupNorm(2, 6).to(torch.bfloat16),
    tolerance=3e-2,
)
in_tiles(
    "not_all",  # a part of the pixels, or values that the kernel does not give: the convolution is stored
    lambda: nn.Conv2d(3, 6, 3),
    lambda _, y: (y.mean(3), torch.relu(y).mean((2, 3)), torch.tanh(y)),
    image(3, 14, 15),
)
