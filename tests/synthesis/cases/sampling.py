"""Interpolation, elements at places of a grid, and numbers in a row."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .registry import case, r

for _mode, _dims in (("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2)):
    for _corners in (False, True):
        if _corners and _dims == 3:
            continue
        case(
            f"interpolated_{_mode}{'_corners' if _corners else ''}",
            lambda self, x, mode=_mode, corners=_corners: F.interpolate(
                x, scale_factor=2.0, mode=mode, align_corners=corners
            ),
            lambda n, dims=_dims: [r(2, 3, *(4 + n, 5, 3)[:dims])],
            kernels=1,
        )
case(
    "interpolated_to_another",  # down along one dim, up along the other, with a product after it
    lambda self, x, y: F.interpolate(torch.relu(x), size=y.shape[2:], mode="bilinear") * y,
    lambda n: [r(2, 3, 9, 4), r(2, 3, 5 + n, 7)],
)
case(
    "nearest_to_another",
    lambda self, x, y: F.interpolate(x, size=y.shape[2:], mode="nearest") + y,
    lambda n: [r(2, 3, 9 + n, 4), r(2, 3, 5, 7 + n)],
    kernels=1,
)
case(
    "nearest_by_a_fraction",
    lambda self, x: F.interpolate(x, scale_factor=1.5, mode="nearest") * 2.0,
    lambda n: [r(2, 3, 4 + n, 6)],
    kernels=1,
)


def _grid(n: int) -> torch.Tensor:
    """Some places are outside, one is no number, and one is infinite."""
    grid = torch.rand(2, 4 + n, 3, 2) * 2.6 - 1.3
    grid[0, 1, 2, 0], grid[1, 2, 1, 1] = torch.nan, torch.inf
    return grid


for _padding in ("zeros", "border"):
    for _mode in ("bilinear", "nearest"):
        case(
            f"grid_sample_{_mode}_{_padding}",
            lambda self, x, grid, mode=_mode, padding=_padding: F.grid_sample(x, grid, mode, padding, False).nan_to_num(
                9
            ),
            lambda n: [r(2, 3, 5, 6), _grid(n)],
            kernels=1,
        )


case(
    "grid_sample_corners",  # of up to 1024 channels torch lets cuDNN compute it on a GPU
    lambda self, x, grid: F.grid_sample(x, grid, align_corners=True).nan_to_num(9),
    lambda n: [r(2, 3 if n < 3 else 1025, 5, 6), _grid(n)],
    kernels=1,
)


def _warped(self: Any, x: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    rows = torch.linspace(-1, 1, x.shape[2], device=x.device)
    columns = torch.linspace(-1, 1, x.shape[3], device=x.device)
    y, x_ = torch.meshgrid(rows, columns, indexing="ij")
    return F.grid_sample(x, torch.stack([x_, y], -1) + flow, align_corners=True)


case("warped", _warped, lambda n: [r(2, 3, 4 + n, 6 + n), r(2, 4 + n, 6 + n, 2) * 0.1])
case(
    "meshgrid_xy",
    lambda self, x, y: sum(torch.meshgrid(x, y, indexing="xy")) * 2.0,
    lambda n: [r(4 + n), r(5)],
    kernels=1,
)
case(
    "linspace_of_sizes",
    lambda self, x: (
        x * torch.linspace(0.5, -2, x.shape[1], device=x.device)
        + torch.linspace(1, 3, steps=x.shape[0] - 6, device=x.device)[:, None].relu().amax(0)
    ),
    lambda n: [r(8 + n, 5 + 8 * n)],
)
case("linspace_of_one", lambda self, x: x + torch.linspace(3, 5, 1, device=x.device), lambda n: [r(4 + n)], kernels=1)
case(
    "arange_from_a_size",
    lambda self, x, y: x + torch.arange(y.shape[0], y.shape[0] + x.shape[0], device=x.device),
    lambda n: [r(4 + n), r(3 + n)],
    kernels=1,
)
case(
    "arange_in_fractions",
    lambda self, x: x + torch.arange(0.5, 3.0, 0.25, device=x.device),
    lambda n: [r(4 + n, 10)],
    kernels=1,
)
