"""Sums and means over what products and convolutions give, which are taken before these."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .halves import HALF
from .registry import CASES, Case, case, r


class MeanOver(nn.Module):
    """A layer, its result less a parameter times a number, and the mean of that over ``dims``."""

    def __init__(self, layer: Callable[[], nn.Module], dims: tuple[int, ...], beside: tuple[int, ...]) -> None:
        super().__init__()
        self.layer, self.dims, self.shift = layer(), dims, nn.Parameter(torch.randn(beside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.gelu(((self.layer(x) * 0.5 - self.shift) / 3).mean(dim=self.dims, keepdim=True))


class Pooled(nn.Module):
    """A layer with normalisation by running statistics, and what pools it."""

    def __init__(self, layer: Callable[[], nn.Module], norm: type[nn.Module], *pools: nn.Module) -> None:
        super().__init__()
        self.layer, self.norm, self.pools = layer(), norm(8), nn.Sequential(*pools)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.silu(self.pools(self.norm(self.layer(x))))


def mean(
    name: str, layer: Callable[[], nn.Module], dims: tuple[int, ...], beside: tuple[int, ...], inputs: Any, **more: Any
) -> None:
    CASES[f"collapsed_{name}"] = Case(MeanOver, inputs, (layer, dims, beside), **more)


def pooled(name: str, layer: Callable[[], nn.Module], pools: list[nn.Module], inputs: Any, **more: Any) -> None:
    norm = nn.BatchNorm3d if name == "pools" else nn.BatchNorm2d
    CASES[f"collapsed_{name}"] = Case(Pooled, inputs, (layer, norm, *pools), **more)


mean("linear", partial(nn.Linear, 40, 56), (1,), (56,), lambda n: [r(9 + n, 40)])
mean("linear_rows", partial(nn.Linear, 40, 56), (0,), (56,), lambda n: [r(9 + n, 40)])
mean("linear_of_3d", partial(nn.Linear, 40, 24), (1, 2), (7, 24), lambda n: [r(3 + n, 7, 40)])
case("collapsed_batched", lambda self, x, y: (x @ y).sum(-1), lambda n: [r(3, 20 + n, 17), r(3, 17, 33)])
case("collapsed_both", lambda self, x, y: (x @ y).sum((-2, -1)), lambda n: [r(3, 20 + n, 17), r(3, 17, 33)])
case(
    "collapsed_residual", lambda self, x, y, z: (x @ y + z).mean(1), lambda n: [r(20 + n, 17), r(17, 33), r(20 + n, 33)]
)
# A product that is returned, too, is computed as a whole.
case(
    "collapsed_not_what_is_returned", lambda self, x, y: ((z := x @ y).sum(-1), z), lambda n: [r(20 + n, 17), r(17, 33)]
)

CONVOLUTIONS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "transposed": (partial(nn.ConvTranspose2d, 6, 8, 3), (2, 3)),
    "transposed_strided": (partial(nn.ConvTranspose2d, 6, 8, 3, 2, 1, 1), (2, 3)),
    "transposed_dilated": (partial(nn.ConvTranspose2d, 6, 8, (2, 3), (3, 2), (2, 1), 0, 1, True, (1, 3)), (2, 3)),
    "transposed_columns": (partial(nn.ConvTranspose2d, 6, 8, 3, 2, 1), (3,)),
    "conv2d": (partial(nn.Conv2d, 6, 8, 3, 2, 1), (2, 3)),
    "conv2d_columns": (partial(nn.Conv2d, 6, 8, (3, 5), 1, (0, 2), (2, 1)), (3,)),
    "conv2d_rows": (partial(nn.Conv2d, 6, 8, (3, 5), (2, 1), 1), (2,)),
    "conv2d_one_element": (partial(nn.Conv2d, 6, 8, 1, bias=False), (2, 3)),
}
for _name, (_layer, _dims) in CONVOLUTIONS.items():
    mean(_name, _layer, _dims, (8, 1, 1), lambda n: [r(2, 6, 9 + n, 7)])
mean(
    "transposed3d_depth",
    partial(nn.ConvTranspose3d, 4, 8, 3, 1, 1),
    (2,),
    (8, 1, 1, 1),
    lambda n: [r(2, 4, 5, 6 + n, 7)],
)
mean("conv1d", partial(nn.Conv1d, 6, 8, 4, 3), (2,), (8, 1), lambda n: [r(2, 6, 23 + n)])
mean(
    "not_in_groups", partial(nn.Conv2d, 6, 8, 3, groups=2), (2, 3), (8, 1, 1), lambda n: [r(2, 6, 9 + n, 7)]
)  # as it is

pooled("pool", partial(nn.Conv2d, 6, 8, 3), [nn.AvgPool2d(4)], lambda n: [r(2, 6, 19 + n, 18)])
pooled("pool_padded", partial(nn.Conv2d, 6, 8, 3, 2, 1), [nn.AvgPool2d((2, 3))], lambda n: [r(2, 6, 19 + n, 18)])
pooled("pool_of_one_element", partial(nn.Conv2d, 6, 8, 1), [nn.AvgPool2d(2)], lambda n: [r(2, 6, 19 + n, 18)])
pooled("pool_transposed", partial(nn.ConvTranspose2d, 6, 8, 3, 2, 1), [nn.AvgPool2d(2)], lambda n: [r(2, 6, 9 + n, 8)])
pooled(
    "pool_transposed_large",
    partial(nn.ConvTranspose2d, 6, 8, 5, 2, 1, 1),
    [nn.AvgPool2d(4)],
    lambda n: [r(2, 6, 9 + n, 8)],
)
pooled("pools", partial(nn.ConvTranspose3d, 3, 8, 3, 2, 1), [nn.AvgPool3d(2)] * 2, lambda n: [r(2, 3, 4, 5 + n, 6)])
pooled("pool_in_halves", partial(nn.Conv2d, 16, 8, 3), [nn.AvgPool2d(4)], lambda n: [r(2, 16, 19 + n, 18)], **HALF)
# Windows that overlap by so much that each product would be made more often.
pooled(
    "not_of_windows_that_overlap", partial(nn.Conv2d, 6, 8, 3), [nn.AvgPool2d(3, 1)], lambda n: [r(2, 6, 12 + n, 11)]
)
case(
    "collapsed_not_of_a_given_weight",
    lambda self, x, weight: functional.conv2d(x, weight, padding=1).mean((2, 3)),
    lambda n: [r(2, 6, 9 + n, 7), r(8, 6, 3, 3)],
)


class RoundedMean(nn.Module):
    """A mean that is computed in float32 and returned in float16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(6, 8, 3, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).mean((2, 3), dtype=torch.float16)


CASES["collapsed_and_rounded"] = Case(RoundedMean, lambda n: [r(2, 6, 9 + n, 7)], tolerance=2e-3)
