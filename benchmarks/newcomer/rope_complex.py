import torch
from torch import nn


class ComplexRope(nn.Module):
    def __init__(self, dim=64, length=128):
        super().__init__()
        freqs = 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer(
            "cis", torch.polar(torch.ones(length, dim // 2), torch.outer(torch.arange(length).float(), freqs))
        )

    def forward(self, x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.cis[: x.shape[1], None]).flatten(3).type_as(x)


def get_inputs():
    return [torch.randn(2, 32, 4, 64)]
