"""Attention weights: scaled scores, masked, softmax over the keys."""

import torch
from torch import nn


class MaskedSoftmax(nn.Module):
    def __init__(self, head_dim: int):
        super().__init__()
        self.scale = head_dim**-0.5

    def forward(self, scores, mask):
        return torch.softmax((scores * self.scale).masked_fill(mask, float("-inf")), dim=-1)


def get_inputs():
    causal = torch.ones(1024, 1024, dtype=torch.bool).triu(1)
    return [torch.randn(2, 16, 1024, 1024), causal]


def get_init_inputs():
    return [64]
