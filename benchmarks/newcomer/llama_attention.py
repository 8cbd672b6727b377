from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    hidden: int = 256
    heads: int = 8
    kv_heads: int = 2
    max_len: int = 128
    theta: float = 10000.0


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class LlamaAttention(nn.Module):
    """Attention with grouped queries, rotary embedding and a cache of keys and values."""

    def __init__(self, config: Config):
        super().__init__()
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.head_dim = config.hidden // config.heads
        self.q_proj = nn.Linear(config.hidden, config.hidden, bias=False)
        self.k_proj = nn.Linear(config.hidden, self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden, self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(config.hidden, config.hidden, bias=False)
        inverse = 1.0 / config.theta ** (torch.arange(0, self.head_dim, 2).float() / self.head_dim)
        self.register_buffer("inv_freq", inverse, persistent=False)

    def forward(self, x, past_k, past_v):
        b, t, _ = x.shape
        q = self.q_proj(x).view(b, t, self.heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.kv_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.kv_heads, self.head_dim).transpose(1, 2)
        start = past_k.shape[2]
        angles = torch.outer(torch.arange(start, start + t, device=x.device).float(), self.inv_freq)
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos(), angles.sin()
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        k, v = torch.cat((past_k, k), 2), torch.cat((past_v, v), 2)
        groups = self.heads // self.kv_heads
        mask = torch.ones(t, start + t, dtype=torch.bool, device=x.device).tril(start)
        out = F.scaled_dot_product_attention(
            q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1), attn_mask=mask
        )
        return self.o_proj(out.transpose(1, 2).reshape(b, t, -1)), k, v


def get_init_inputs():
    return [Config()]


def get_inputs():
    return [torch.randn(2, 4, 256), torch.randn(2, 2, 16, 32), torch.randn(2, 2, 16, 32)]
