"""Attention: products with a softmax between them, masks and a bias of positions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .registry import CASES, Case, r


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


CASES["self_attention"] = Case(SelfAttention, lambda n: [r(2, 9 + n, 32)], (32, 4), tolerance=1e-4)


class GroupedQueries(nn.Module):
    """Two query heads share a key-value head; [:] and a padding mask, as the attention of language models has them."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.kv_proj = nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shape = (*x.shape[:-1], -1, 8)
        q = self.q_proj(x).view(shape).transpose(1, 2)
        k, v = self.kv_proj(x).chunk(2, dim=-1)
        k, v = (
            t.view(shape).transpose(1, 2)[:, :, None, :, :].expand(-1, -1, 2, -1, -1).reshape(q.shape) for t in (k, v)
        )
        weights = F.softmax(q @ k.transpose(2, 3) * 8**-0.5 + mask, dim=-1, dtype=torch.float32).to(q.dtype)
        return (weights @ v).transpose(1, 2).contiguous().reshape(x.shape), weights


CASES["grouped_queries"] = Case(
    GroupedQueries, lambda n: [r(2, 5 + n, 32), torch.zeros(2, 1, 1, 5 + n).masked_fill(r(2, 1, 1, 5 + n) > 1, -3e38)]
)


class PositionBias(nn.Module):
    """A bias that the product's kernel adds, and that is a later result, too."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Embedding(64, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        position = torch.arange(x.shape[2], device=x.device)
        bias = self.bias((position[None, :] - position[:, None]).abs()).permute(2, 0, 1)[None]
        return x @ x.transpose(2, 3) + bias, bias


CASES["position_bias"] = Case(PositionBias, lambda n: [r(3, 2, 17 + n, 16)])
