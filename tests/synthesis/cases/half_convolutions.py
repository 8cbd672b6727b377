"""Convolutions of modules in half precision, whose operands are laid out anew: their channels last, their padding written out."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .registry import CASES, Case, r

BFLOAT16, FLOAT16 = {"halves": True, "tolerance": 1e-2}, {"halves": True, "tolerance": 2e-3}


class Half(nn.Module):
    """Layers in ``dtype``, one after another."""

    def __init__(self, dtype: torch.dtype, *layers: tuple[Any, ...]) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(kind(*given) for kind, *given in layers)).to(dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def _case(name: str, dtype: torch.dtype, shape: tuple[int, ...], *layers: tuple[Any, ...], **more: Any) -> None:
    own = type("".join(part.capitalize() for part in name.split("_")), (Half,), {"__module__": __name__})
    how = BFLOAT16 if dtype == torch.bfloat16 else FLOAT16
    first, channels, height, *rest = shape
    CASES[name] = Case(
        own, lambda n: [r(first, channels, height + n, *rest).to(dtype)], init=(dtype, *layers), **how, **more
    )


_case("half_conv2d", torch.bfloat16, (2, 16, 8, 9), (nn.Conv2d, 16, 8, 3, 1, 1), (nn.ReLU,), kernels=3)
_case("half_conv2d_padded", torch.bfloat16, (2, 16, 7, 6), (nn.Conv2d, 16, 16, 3, 1, 1), (nn.ReLU,), kernels=3)
_case("half_strided_conv2d", torch.float16, (2, 20, 9, 8), (nn.Conv2d, 20, 8, 3, 2, 1), (nn.SiLU,), kernels=3)
_case("half_dilated_conv1d", torch.float16, (2, 16, 17), (nn.Conv1d, 16, 9, 5, 2, 3, 2), kernels=3)
_case("half_conv3d", torch.bfloat16, (2, 16, 5, 6, 5), (nn.Conv3d, 16, 8, 3), (nn.GELU,), kernels=3)
_case("half_few_conv2d", torch.bfloat16, (2, 3, 9, 8), (nn.Conv2d, 3, 8, 3, 2, 1), kernels=3)
_case("half_grouped", torch.float16, (2, 32, 5, 4), (nn.Conv2d, 32, 12, 3, 1, 1, 1, 2), kernels=3)
_case(
    "half_transposed",
    torch.bfloat16,
    (2, 16, 5, 4),
    (nn.ConvTranspose2d, 16, 8, 4, 2, 1),
    (nn.ReLU,),
    kernels=3,
)
_case("half_phases_of_other_lengths", torch.float16, (2, 16, 5, 4), (nn.ConvTranspose2d, 16, 7, 3, 2, 1, 1), kernels=3)
_case(
    "half_pooled",
    torch.bfloat16,
    (2, 16, 8, 8),
    (nn.Conv2d, 16, 16, 3, 1, 1),
    (nn.BatchNorm2d, 16),
    (nn.ReLU,),
    (nn.MaxPool2d, 2),
    (nn.Conv2d, 16, 8, 3, 1, 1),
)
_case(
    "half_normed", torch.bfloat16, (2, 16, 8, 8), (nn.Conv2d, 16, 16, 3), (nn.GroupNorm, 4, 16), (nn.Conv2d, 16, 8, 1)
)
