"""LayerNorm followed by GELU."""

import torch
from torch import nn


class LayerNormGELU(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.act = nn.GELU()

    def forward(self, x):
        return self.act(self.norm(x))


def get_inputs():
    return [torch.randn(8, 1024, 2048)]


def get_init_inputs():
    return [2048]
