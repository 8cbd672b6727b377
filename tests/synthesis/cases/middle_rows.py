"""Norms and softmax over a dimension that is not the last: tiles of all rows of some columns, and walks where a call has more than fit."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .registry import case, module, r

#: rows of each step: of the example, one alone, more than the example's, neither a power of two, the most that a tile of 32 columns and four
#: warps holds, and one more than that
ROWS = {0: 6, 1: 1, 3: 37, 4: 1024, 5: 1025}
BOTH: dict[str, Any] = {"kernels": 2, "steps": (0, 1, 3, 4, 5)}


def image(n: int) -> torch.Tensor:
    """Columns that are no multiple of a tile's."""
    return r(2 + n % 4, ROWS[n], 5, 7 + n)


case(
    "rows_whole_rms_norm",
    lambda self, x: x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5),
    lambda n: [image(n)],
    **BOTH,
)
case(
    "rows_whole_layer_norm",
    lambda self, x: (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, unbiased=False, keepdim=True) + 1e-6),
    lambda n: [image(n)],
    **BOTH,
)
case("rows_whole_softmax", lambda self, x: torch.softmax(x, 1), lambda n: [image(n)], **BOTH)
case("rows_whole_log_softmax", lambda self, x: F.log_softmax(x, 1), lambda n: [image(n)], **BOTH)
case("rows_whole_normalize", lambda self, x: F.normalize(x, dim=1), lambda n: [image(n)], **BOTH)
case(
    "rows_whole_l1_norm",
    lambda self, x: x / x.abs().sum(1, keepdim=True).clamp_min(1e-3),
    lambda n: [image(n)],
    **BOTH,
)
case("rows_whole_softmax_first", lambda self, x: torch.softmax(x * 0.5, 0), lambda n: [r(ROWS[n], 70 + n)], **BOTH)
case(
    "rows_whole_two_dims",
    lambda self, x: F.gelu(x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True)),
    lambda n: [r(2, 3 + n if n < 4 else 252 + n, 4, 19 + n)],
    **BOTH,
)
case(
    "rows_whole_gated",
    lambda self, x, y: torch.softmax(x + y, 1) * torch.sigmoid(y) + x,
    lambda n: [image(n), image(n)],
    **BOTH,
)
case(
    "rows_whole_half",
    lambda self, x: torch.softmax(x * 2, 1),
    lambda n: [image(n).half()],
    **BOTH,
    tolerance=2e-3,
)
case(
    "rows_whole_bfloat16",
    lambda self, x: x * torch.rsqrt(x.float().pow(2).mean(1, keepdim=True) + 1e-5).to(x.dtype),
    lambda n: [image(n).bfloat16()],
    **BOTH,
    tolerance=2e-2,
)
# Buffers that each of the two kernels updates where they lie, and a kernel beside them that counts.
module(
    "rows_whole_batch_norm",
    nn.BatchNorm1d,
    (20,),
    lambda n: [r(ROWS[n], 20)],
    kernels=3,
    steps=(0, 3, 4, 5),
    training=True,
)
# More rows than registers hold: the loop.
case("rows_walked_softmax", lambda self, x: torch.softmax(x, 1), lambda n: [r(2, 2100 + n, 17)], kernels=1)


class LayerNorm2d(nn.Module):
    """ConvNeXt's: over the channels of an image, whose number the weight gives."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 2.0, channels))
        self.bias = nn.Parameter(torch.linspace(-1.0, 1.0, channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(1, keepdim=True)
        squares = (x - mean).pow(2).mean(1, keepdim=True)
        x = (x - mean) / torch.sqrt(squares + 1e-6)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


module("rows_whole_layer_norm_2d", LayerNorm2d, (12,), lambda n: [r(2, 12, 5, 7 + n)], kernels=1)
module("rows_whole_layer_norm_2d_many", LayerNorm2d, (200,), lambda n: [r(2 + n, 200, 3, 7)], kernels=1, steps=(0, 1))
