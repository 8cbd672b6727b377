"""GroupNorm and SiLU, the pair in front of every convolution of a diffusion UNet."""

import torch
import torch.nn.functional as F
from torch import nn


class GroupNormSiLU(nn.Module):
    def __init__(self, groups: int, channels: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return F.silu(self.norm(x))


def get_inputs():
    return [torch.randn(16, 256, 64, 64)]


def get_init_inputs():
    return [32, 256]
