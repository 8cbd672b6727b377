"""Pooling: reductions of windows."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .registry import case, r

case("max_pool1d", lambda self, x: F.max_pool1d(x, 3, 2, 1), lambda n: [r(2 + n, 3, 17)], kernels=1)
case("max_pool2d", lambda self, x: F.max_pool2d(x, 3, 2, 1), lambda n: [r(2, 3, 13 + n, 11)], kernels=1)
case(
    "max_pool2d_ceil", lambda self, x: F.max_pool2d(x, 3, 2, ceil_mode=True), lambda n: [r(2, 3, 12, 11 + n)], kernels=1
)
case("max_pool_large", lambda self, x: F.max_pool2d(x, 2, 2, 1), lambda n: [r(2, 3, 98 + n, 96)], kernels=1)
case("max_pool2d_dilated", lambda self, x: F.max_pool2d(x, 2, 1, 1, 2), lambda n: [r(2, 3, 9 + n, 8)], kernels=1)
case("max_pool2d_places", lambda self, x: F.max_pool2d(x, 3, 2, 1, return_indices=True), lambda n: [r(2, 3, 9 + n, 8)])
case(
    "max_pool2d_places_of_nothing",  # windows of -inf and padding alone
    lambda self, x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1],
    lambda n: [torch.full((2, 3, 9 + n, 8), -torch.inf)],
)
case(
    "max_pool1d_places_of_nothing_dilated",
    lambda self, x: F.max_pool1d(x, 2, 1, 1, 3, return_indices=True)[1],
    lambda n: [torch.full((2, 3, 9 + n), -torch.inf)],
)


def _with_nan(n: int) -> list[torch.Tensor]:
    """An image with no, one, two or more NaN in its windows."""
    x = r(2, 3, 9 + n, 8)
    x[0, 0, 2:4, 2:5], x[1, 1, 5, 5], x[1, 2] = torch.nan, torch.nan, torch.nan
    return [x]


case("max_pool2d_places_of_nan", lambda self, x: F.max_pool2d(x, 3, 2, 1, return_indices=True), _with_nan)
case("max_pool3d", lambda self, x: F.max_pool3d(x, 2), lambda n: [r(2, 3, 4 + n, 6, 8)], kernels=1)
case("avg_pool1d", lambda self, x: F.avg_pool1d(x, 4, 2, 1), lambda n: [r(2, 3, 17 + n)], kernels=1)
case("avg_pool2d", lambda self, x: F.avg_pool2d(x, 3, 2, 1), lambda n: [r(2, 3, 13 + n, 11)], kernels=1)
case(
    "avg_pool2d_ceil",
    lambda self, x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    lambda n: [r(2, 3, 14 + n, 11)],
    kernels=1,
)
case("avg_pool2d_divided", lambda self, x: F.avg_pool2d(x, 2, divisor_override=3), lambda n: [r(2, 3, 8 + n, 6)])
case("avg_pool_large_depths", lambda self, x: F.avg_pool3d(x, 2), lambda n: [r(1, 2, 4 + n, 100, 98)], kernels=1)
case("avg_pool3d", lambda self, x: F.avg_pool3d(x, 2, 1, 1), lambda n: [r(2, 3, 4 + n, 5, 6)], kernels=1)
case("adaptive_pool1d", lambda self, x: F.adaptive_avg_pool1d(x, 4), lambda n: [r(2, 3, 10 + n)], kernels=1)
case("adaptive_pool2d", lambda self, x: F.adaptive_avg_pool2d(x, (3, 5)), lambda n: [r(2, 3, 8 + n, 7)], kernels=1)
case("adaptive_pool2d_one", lambda self, x: F.adaptive_avg_pool2d(x, 1), lambda n: [r(2, 3, 8 + n, 7)], kernels=1)


def _folded(*settings: int, size: int = 3) -> Any:
    """Windows taken from an image, and put back into it."""
    dilation, padding, stride = settings

    def forward(self: object, x: torch.Tensor) -> torch.Tensor:
        windows = F.unfold(x, size, dilation, padding, stride)
        return F.fold(
            windows * torch.arange(size * size, device=x.device).repeat(3)[:, None], x.shape[-2:], size, *settings
        )

    return forward


for _name, _settings in (
    ("each", (1, 1, 1)),
    ("every_second", (1, 0, 2)),
    ("dilated", (2, 2, 2)),
    ("apart", (1, 1, 4)),
):
    case(f"folded_windows_{_name}", _folded(*_settings), lambda n: [r(2, 3, 6 + n, 5 + n)], kernels=1)
case(
    "folded_halves",
    lambda self, x: F.fold(F.unfold(x, 4, stride=2) * 2, x.shape[-2:], 4, stride=2),
    lambda n: [r(2, 3, 6 + 2 * n, 6 + 2 * n)],
    kernels=1,
)
case("folded_blocks", _folded(1, 0, 2, size=2), lambda n: [r(2, 3, 8 + 2 * n, 6)], kernels=1)
case(
    "folded_given",
    lambda self, x, y: F.fold(x, y.shape[-2:], (2, 3), padding=(0, 1), stride=(2, 1)) + y,
    lambda n: [r(24, 4 * (5 + n)), r(4, 8, 5 + n)],
    kernels=1,
)
