"""Bias and tanh-GELU in bfloat16."""

import torch
import torch.nn.functional as F
from torch import nn


class BiasGELU(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(dim, dtype=torch.bfloat16))

    def forward(self, x):
        return F.gelu(x + self.bias, approximate="tanh")


def get_inputs():
    return [torch.randn(8192, 4096, dtype=torch.bfloat16)]


def get_init_inputs():
    return [4096]
