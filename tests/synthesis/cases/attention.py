"""Attention: torch's own operator in its forms, and modules that write it out, with masks and a bias of positions."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .registry import CASES, Case, case, module, r


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


sdpa = F.scaled_dot_product_attention


def qkv(batch: tuple[int, ...], queries: int, keys: int, width: int, values: int | None = None) -> list[torch.Tensor]:
    return [r(*batch, queries, width), r(*batch, keys, width), r(*batch, keys, values or width)]


def halves(tensors: list[torch.Tensor], dtype: torch.dtype = torch.float16) -> list[torch.Tensor]:
    return [t.to(dtype) for t in tensors]


def mask_of(*shape: int, blind: int = 0) -> torch.Tensor:
    """A boolean mask; the first ``blind`` rows see nothing."""
    mask = torch.rand(*shape) > 0.4
    mask[..., :blind, :] = False
    return mask


case("attention", lambda self, q, k, v: sdpa(q, k, v), lambda n: qkv((2, 3), 17 + 30 * n, 19 + 41 * n, 16))
case("attention_wide", lambda self, q, k, v: sdpa(q, k, v), lambda n: qkv((2,), 18 + n, 33 + n, 320))
case("attention_matrix", lambda self, q, k, v: sdpa(q, k, v), lambda n: qkv((), 18 + n, 33 + n, 24, 40))
case("attention_ranks", lambda self, q, k, v: sdpa(q, k, v), lambda n: qkv((2, 3, 2), 9 + n, 12 + n, 16, 8))
case(
    "attention_shared_keys",
    lambda self, q, k, v: sdpa(q, k, v),
    lambda n: [r(3, 2, 18 + n, 16), r(1, 2, 21 + n, 16), r(3, 1, 21 + n, 16)],
)
case(
    "attention_causal",
    lambda self, q, k, v: sdpa(q, k, v, is_causal=True),
    lambda n: qkv((2, 2), 150 + n, 150 + n, 16),
)
case(
    "attention_causal_fewer_keys",
    lambda self, q, k, v: sdpa(q, k, v, is_causal=True),
    lambda n: qkv((2,), 21 + 70 * n, 13 + n, 16),
)
case(
    "attention_causal_more_keys",
    lambda self, q, k, v: sdpa(q, k, v, is_causal=True, scale=0.3),
    lambda n: qkv((2,), 13 + n, 90 + 70 * n, 16),
)
case(
    "attention_masked",
    lambda self, q, k, v, mask: sdpa(q, k, v, mask),
    lambda n: [*qkv((2, 3), 17 + n, 90 + n, 16), mask_of(2, 1, 17 + n, 90 + n, blind=2)],
)
case(
    "attention_masked_keys",
    lambda self, q, k, v, mask: sdpa(q, k, v, attn_mask=mask[:, None, None, :]),
    lambda n: [*qkv((2, 3), 17 + n, 21 + n, 16), mask_of(2, 21 + n)],
)
case(
    "attention_biased",
    lambda self, q, k, v, bias: sdpa(q, k, v, bias),
    lambda n: [*qkv((2, 3), 17 + n, 80 + n, 16), r(3, 17 + n, 80 + n).masked_fill(mask_of(17 + n, 80 + n), -math.inf)],
)
case(
    "attention_of_infinities",  # rows of which nothing is left to see are 0, others are NaN
    lambda self, q, k, v: torch.nan_to_num(sdpa(q, k.abs() + 0.1, v), nan=7.0),
    lambda n: [torch.full((2, 18 + n, 16), (-1.0) ** (n + 1) * math.inf), r(2, 20 + n, 16), r(2, 20 + n, 16)],
)
case(
    "attention_half",
    lambda self, q, k, v: sdpa(q, k, v, is_causal=True),
    lambda n: halves(qkv((2, 2), 70 + n, 70 + n, 32)),
    tolerance=2e-3,
)
case(
    "attention_bfloat",
    lambda self, q, k, v, mask: sdpa(q, k, v, mask),
    lambda n: [*halves(qkv((2, 2), 17 + n, 21 + n, 32), torch.bfloat16), mask_of(17 + n, 21 + n)],
    tolerance=2e-2,
)
case(
    "attention_grouped",
    lambda self, q, k, v: sdpa(q, k, v, enable_gqa=True),
    lambda n: [r(2, 4, 17 + n, 16), r(2, 2, 21 + n, 16), r(2, 2, 21 + n, 16)],
)
case(
    "attention_dropped", lambda self, q, k, v: sdpa(q, k, v, dropout_p=0.5) * 0.0, lambda n: qkv((2,), 5, 6, 8), kept=1
)


#: The same by float16 halves.
SPLIT = {"in_steps": True, "kernels": 1}


def large(v: torch.Tensor, *, at: int, by: float = 1e6) -> torch.Tensor:
    """``v`` with one large row, of each batch."""
    v[..., at, :] *= by
    return v


case(
    "split_attention", lambda self, q, k, v: sdpa(q, k, v), lambda n: qkv((2, 3), 17 + 70 * n, 19 + 90 * n, 16), **SPLIT
)
case(
    "split_attention_causal",
    lambda self, q, k, v: sdpa(q, k, v, is_causal=True),
    lambda n: qkv((2, 2), 150 + n, 150 + n, 32),
    **SPLIT,
)
case(
    "split_attention_masked",
    lambda self, q, k, v, mask: sdpa(q, k, v, mask),
    lambda n: [*qkv((2, 3), 17 + n, 90 + n, 16), mask_of(2, 1, 17 + n, 90 + n, blind=2)],
    **SPLIT,
)
case(
    "split_attention_huge_keys",  # of which the first rows see none
    lambda self, q, k, v: sdpa(q, k, v, is_causal=True),
    lambda n: [r(2, 90 + n, 16) * 1e-5, large(r(2, 90 + n, 16), at=70), r(2, 90 + n, 16)],
    **SPLIT,
)
case(
    "split_attention_huge_values",
    lambda self, q, k, v, mask: sdpa(q, k, v, mask),
    lambda n: [*qkv((2,), 18 + n, 33 + n, 16)[:2], large(r(2, 33 + n, 16), at=7), mask_of(18 + n, 33 + n)],
    **SPLIT,
)
case(
    "split_attention_huge_queries",
    lambda self, q, k, v: sdpa(q, k, v),
    lambda n: [large(r(2, 18 + n, 16), at=3), r(2, 33 + n, 16) * 1e-5, r(2, 33 + n, 16)],
    **SPLIT,
)
case(
    "split_attention_tiny_values",
    lambda self, q, k, v: sdpa(q, k, v) * 1e8,
    lambda n: [*qkv((2,), 18 + n, 33 + n, 16)[:2], r(2, 33 + n, 16) * 1e-8],
    **SPLIT,
)
case(
    "split_attention_of_infinities",
    lambda self, q, k, v: torch.nan_to_num(sdpa(q, k.abs() + 0.1, v), nan=7.0),
    lambda n: [torch.full((2, 18 + n, 16), (-1.0) ** (n + 1) * math.inf), r(2, 20 + n, 16), r(2, 20 + n, 16)],
    in_steps=True,
)


class OfOne(nn.Module):
    """Queries, keys and values in one tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = x.view(*x.shape[:2], 3, 2, 16).permute(2, 0, 3, 1, 4)
        return sdpa(q, k, v, is_causal=True)


CASES["split_attention_of_one"] = Case(OfOne, lambda n: [r(2, 40 + n, 96)], **SPLIT)


class SoftCapped(nn.Module):
    """Scores that a tanh bounds, as Gemma 2 has them."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = 50.0 * torch.tanh(q @ k.mT * 0.25 / 50.0)
        return torch.softmax(scores, -1) @ v


CASES["split_attention_capped"] = Case(SoftCapped, lambda n: qkv((2, 3), 40 + n, 70 + n, 16), in_steps=True)


class _Grouped(nn.Module):
    """Heads whose numbers are known, as a language model has them."""

    def __init__(self, heads: int, shared: int, width: int) -> None:
        super().__init__()
        self.heads, self.shared, self.width = heads, shared, width
        self.q_proj = nn.Linear(32, heads * width, bias=False)
        self.kv_proj = nn.Linear(32, 2 * shared * width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length = x.shape[:2]
        q = self.q_proj(x).view(batch, length, self.heads, self.width).transpose(1, 2)
        k, v = (t.view(batch, length, self.shared, self.width).transpose(1, 2) for t in self.kv_proj(x).chunk(2, -1))
        return sdpa(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2)


module("attention_grouped_heads", _Grouped, (6, 2, 16), lambda n: [r(2, 19 + n, 32)], kernels=3)


class _ByHand(nn.Module):
    """As minGPT writes it: a mask in a buffer, a softmax or a relu of the scores."""

    def __init__(self, weights: str, bound: int = 160) -> None:
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(bound, bound)).view(1, 1, bound, bound))
        self.weights = getattr(F, weights)
        self.options: dict[str, Any] = {"dim": -1} if weights == "softmax" else {}

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        length = q.shape[2]
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, -math.inf)
        mixed = self.weights(scores, **self.options) @ v
        return mixed.transpose(1, 2).contiguous().view(q.shape[0], length, -1)


module("attention_by_hand", _ByHand, ("softmax",), lambda n: qkv((2, 2), 83 + n, 83 + n, 16))
module("attention_by_relu", _ByHand, ("relu",), lambda n: qkv((2, 2), 83 + n, 83 + n, 16))


class _Layer(nn.MultiheadAttention):
    """torch's own layer, which merges the batch and the heads before its attention."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x, x, x, need_weights=False)[0]


module(
    "attention_layer",
    _Layer,
    (32, 4, 0.0, True, False, False, None, None, True),
    lambda n: [r(2, 17 + n, 32)],
    tolerance=1e-4,
)

# Scores stay on chip: what comes before the two products and after them has kernels of its own, and nothing else.
for _name in CASES:
    if _name.startswith("attention") and _name not in (
        "attention_dropped",
        "attention_layer",
        "attention_grouped_heads",
    ):
        CASES[_name].kernels = 1
CASES["self_attention"].kernels = CASES["attention_layer"].kernels = 3


def _biased(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """A bias by how far a key is from its query, which is a result, too."""
    place = torch.arange(q.shape[-2], device=q.device)
    bias = F.embedding((place[None] - place[:, None]).abs().clamp(max=7), table).permute(2, 0, 1)
    return torch.softmax(q @ k.transpose(-1, -2) + bias, -1) @ v, bias


case(
    "attention_with_returned_bias",
    lambda self, q, k, v, table: _biased(q, k, v, table),
    lambda n: [r(2, 4, 20 + n, 16), r(2, 4, 20 + n, 16), r(2, 4, 20 + n, 16), r(8, 4)],
    steps=(0, 1),
)

# What a row of scores has added is no number of a key beyond the last one.
case(
    "attention_with_bias_of_rows",
    lambda self, q, k, v, bias: torch.softmax(q @ k.transpose(-1, -2) + bias, -1) @ v,
    lambda n: [r(2, 3, 40 + n, 16), r(2, 3, 40 + n, 16), r(2, 3, 40 + n, 16), r(2, 3, 40 + n, 1)],
)


class RelativePositions(nn.Module):
    """Scores that are two products, either of which could be the one that attention is chained to."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(16, 48))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax((q @ self.positions + q @ k.transpose(-1, -2)) / 4, -1) @ v


CASES["attention_with_relative_positions"] = Case(
    RelativePositions, lambda n: [r(2, 3, 40 + n, 16), r(2, 3, 48, 16), r(2, 3, 48, 16)], kernels=2
)

# The host transposes what is returned so.
case(
    "attention_returned_transposed",
    lambda self, q, k, v: (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).transpose(1, 2),
    lambda n: qkv((2, 3), 20 + n, 23 + n, 16),
    kernels=1,
)
# torch's operator reads it so, too.
case(
    "attention_transposed_before_torch",
    lambda self, q, k, v: (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).transpose(1, 2).sort(-1)[0],
    lambda n: qkv((2, 3), 20 + n, 23 + n, 16),
    kernels=1,
    kept=1,
)
