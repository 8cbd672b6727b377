"""The gate of a SwiGLU feed-forward layer: silu(gate) * up."""

import torch
import torch.nn.functional as F
from torch import nn


class SwiGLU(nn.Module):
    def forward(self, gate, up):
        return F.silu(gate) * up


def get_inputs():
    return [torch.randn(4, 2048, 4096), torch.randn(4, 2048, 4096)]
