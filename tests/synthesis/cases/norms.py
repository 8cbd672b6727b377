"""Softmax and norms."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .registry import case, module, r

case(
    "softmax_vmapped",
    lambda self, x: torch.vmap(lambda row: torch.softmax(row, 0))(x),
    lambda n: [r(3 + n, 65)],
    kernels=1,
)
case("softmax_last", lambda self, x: torch.softmax(x * 3, -1), lambda n: [r(3, 5, 65 + n)], kernels=1)
case("log_softmax_last", lambda self, x: F.log_softmax(x, -1), lambda n: [r(3, 5, 65 + n)], kernels=1)
case("many_short_rows", lambda self, x: torch.softmax(x, -1), lambda n: [r(300 + n, 20)], kernels=1)
module("layer_norm", nn.LayerNorm, (48,), lambda n: [r(4 + n, 48)], kernels=1)
# A row of one number has no deviation: what is left of its mean would be 10^6 times as large. 192 is no power of two.
module("layer_norm_of_one_number", nn.LayerNorm, (192, 1e-12), lambda n: [torch.full((4 + n, 192), 1.5)], kernels=1)
module("layer_norm_two_dims", nn.LayerNorm, ((6, 8),), lambda n: [r(4 + n, 6, 8)], kernels=1)
module("rms_norm", nn.RMSNorm, (48,), lambda n: [r(4 + n, 48)], kernels=1)
module("group_norm", nn.GroupNorm, (3, 12), lambda n: [r(2, 12, 5 + n, 6)], kernels=1)
module("instance_norm", nn.InstanceNorm2d, (12, 1e-5, 0.1, True), lambda n: [r(2, 12, 5 + n, 6)], kernels=1)
module(
    "instance_norm_tracked", nn.InstanceNorm2d, (12, 1e-5, 0.1, True, True), lambda n: [r(2, 12, 5 + n, 6)], kernels=1
)
module("batch_norm_eval", nn.BatchNorm2d, (12,), lambda n: [r(3, 12, 5 + n, 6)], kernels=1)


class BatchNormInPlace(nn.BatchNorm2d):
    """A ReLU in place: torch.export then writes the norm as another operator."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.relu(super().forward(input), inplace=True)


module("batch_norm_in_place", BatchNormInPlace, (12,), lambda n: [r(3, 12, 5 + n, 6)], kernels=1)


class PatchesNormed(nn.Module):
    """The patches of an image as rows, as a vision transformer has them: the place in the image is made of parts of a row's number."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(48)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        b, c, h, w = image.shape
        x = image.reshape(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1)
        return self.norm(x.reshape(b, (h // 4) * (w // 4), 16 * c))


module("layer_norm_of_patches", PatchesNormed, (), lambda n: [r(2, 3, 16, 8 + 4 * n)])
