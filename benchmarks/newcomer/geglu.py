import torch
import torch.nn.functional as F
from torch import nn


class GEGLU(nn.Module):
    def __init__(self, dim=256, inner=512):
        super().__init__()
        self.proj = nn.Linear(dim, inner * 2, dtype=torch.bfloat16)
        self.out = nn.Linear(inner, dim, dtype=torch.bfloat16)

    def forward(self, x):
        x, gate = self.proj(x).chunk(2, dim=-1)
        return self.out(x * F.gelu(gate))


def get_inputs():
    return [torch.randn(4, 64, 256, dtype=torch.bfloat16)]
