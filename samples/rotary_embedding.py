"""Rotary position embedding applied to a query tensor."""

import torch
from torch import nn


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class RotaryEmbedding(nn.Module):
    def forward(self, q, cos, sin):
        return q * cos + rotate_half(q) * sin


def get_inputs():
    angle = torch.rand(2048, 128) * 6.28
    return [torch.randn(4, 32, 2048, 128), angle.cos(), angle.sin()]
