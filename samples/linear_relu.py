"""A linear layer with bias and ReLU in one pass."""

import torch
from torch import nn


class LinearReLU(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(8192, 512)]


def get_init_inputs():
    return [512, 512]
