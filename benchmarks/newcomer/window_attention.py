import torch
from torch import nn


def partition(x, size):
    b, h, w, c = x.shape
    return x.view(b, h // size, size, w // size, size, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, c)


class WindowAttention(nn.Module):
    """Swin's attention in windows with a bias by relative position."""

    def __init__(self, dim=96, size=7, heads=3):
        super().__init__()
        self.size, self.heads, self.scale = size, heads, (dim // heads) ** -0.5
        self.bias_table = nn.Parameter(torch.randn((2 * size - 1) ** 2, heads) * 0.02)
        at = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).flatten(1)
        relative = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0) + size - 1
        self.register_buffer("index", relative[..., 0] * (2 * size - 1) + relative[..., 1])
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, h, w, c = x.shape
        x = partition(x, self.size)
        n, t, _ = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q * self.scale @ k.transpose(-2, -1) + self.bias_table[self.index].permute(2, 0, 1)
        x = self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c))
        s = self.size
        return x.view(b, h // s, w // s, s, s, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)


def get_inputs():
    return [torch.randn(1, 14, 14, 96)]
