"""Triton kernels of a decode step: attention of one query token over a filled part of a KV cache, and RMSNorm.

Attention is split along the cache, as in Flash-Decoding (Dao et al., 2023): with one query token and few heads there are
too few programs otherwise to load the cache at the memory's speed. How much of the cache is filled is read from device
memory, so a CUDA graph captured once serves every length.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 64  # cache positions a program handles at a time
MAX_SPLITS = 32
PROGRAMS = 512  # about four a multiprocessor on the GPUs of today, so that enough loads are in flight


@triton.jit
def _attend_part(
    q_ptr, k_ptr, v_ptr, filled_ptr, part_ptr, weight_ptr,
    scale, length, heads,
    GROUP: tl.constexpr, ROWS: tl.constexpr, DIM: tl.constexpr, SPLITS: tl.constexpr, BLOCK_L: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """One (sample, KV head, split): softmax-weighted values and log-sum-exp for each query head of the group."""
    sample, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    filled = tl.load(filled_ptr).to(tl.int32)
    share = tl.cdiv(tl.cdiv(filled, SPLITS), BLOCK_L) * BLOCK_L
    begin = split * share
    end = tl.minimum(begin + share, filled)
    row, col, pos = tl.arange(0, ROWS), tl.arange(0, DIM), tl.arange(0, BLOCK_L)
    query = (sample * heads + head) * GROUP + row  # the first KV head's queries come first
    q = tl.load(q_ptr + query[:, None] * DIM + col[None, :], mask=row[:, None] < GROUP, other=0.0)
    base = (sample * heads + head).to(tl.int64) * length * DIM
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, DIM], tl.float32)
    for start in range(begin, end, BLOCK_L):
        at = start + pos
        offsets = base + at[:, None] * DIM + col[None, :]
        k = tl.load(k_ptr + offsets, mask=at[:, None] < end, other=0.0)
        v = tl.load(v_ptr + offsets, mask=at[:, None] < end, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        scores = tl.where(at[None, :] < end, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - new_top)
        weights = tl.exp(scores - new_top[:, None])
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        top = new_top
    some = total > 0.0  # a split beyond the filled part has nothing
    total = tl.where(some, total, 1.0)
    top = tl.where(some, top + tl.log(total), float("-inf"))
    out = query * SPLITS + split
    tl.store(part_ptr + out[:, None] * DIM + col[None, :], acc / total[:, None], mask=row[:, None] < GROUP)
    tl.store(weight_ptr + out, top, mask=row < GROUP)


@triton.jit
def _combine_parts(part_ptr, weight_ptr, out_ptr, DIM: tl.constexpr, SPLITS: tl.constexpr):
    """One query head: the splits' values weighted by the exponentials of their log-sum-exp."""
    query = tl.program_id(0)
    split, col = tl.arange(0, SPLITS), tl.arange(0, DIM)
    weights = tl.load(weight_ptr + query * SPLITS + split)
    weights = tl.exp(weights - tl.max(weights, 0))
    parts = tl.load(part_ptr + (query * SPLITS + split)[:, None] * DIM + col[None, :])
    out = tl.sum(parts * weights[:, None], 0) / tl.sum(weights, 0)
    tl.store(out_ptr + query * DIM + col, out.to(out_ptr.dtype.element_ty))


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, filled: torch.Tensor, scale: float
) -> torch.Tensor:  # fmt: skip
    """Attention of one query token a sample over the first ``filled`` positions of a cache.

    Args:
        q: [samples, heads, 1, dim], where consecutive groups of heads share a KV head.
        k, v: [samples, KV heads, length, dim], contiguous; dim a power of two from 16.
        filled: integer tensor with one element, on the same device; at least 1.

    Returns:
        [samples, heads, 1, dim] in q's dtype; products in fp32 (fp32 inputs without TF32).
    """
    samples, heads, _, dim = q.shape
    kv_heads, length = k.shape[1], k.shape[2]
    assert k.is_contiguous() and v.is_contiguous() and k.shape == v.shape
    group = heads // kv_heads
    splits = 1
    while splits < MAX_SPLITS and samples * kv_heads * splits < PROGRAMS:
        splits *= 2
    q = q.contiguous()
    out = torch.empty_like(q)
    parts = torch.empty((samples * heads, splits, dim), dtype=torch.float32, device=q.device)
    weights = torch.empty((samples * heads, splits), dtype=torch.float32, device=q.device)
    _attend_part[(samples, kv_heads, splits)](
        q, k, v, filled, parts, weights, scale, length, kv_heads,
        GROUP=group, ROWS=max(16, triton.next_power_of_2(group)), DIM=dim, SPLITS=splits, BLOCK_L=BLOCK,
        PRECISION="ieee", num_warps=4,
    )  # fmt: skip
    _combine_parts[(samples * heads,)](parts, weights, out, DIM=dim, SPLITS=splits, num_warps=2)
    return out


@triton.jit
def _rms_norm_row(x_ptr, weight_ptr, out_ptr, eps, width, BLOCK_W: tl.constexpr):
    """One row: weight · round(x / sqrt(mean(x²) + eps)), rounded to x's dtype before the weight as in transformers."""
    row, col = tl.program_id(0), tl.arange(0, BLOCK_W)
    x = tl.load(x_ptr + row * width + col, mask=col < width, other=0.0).to(tl.float32)
    normed = x * tl.rsqrt(tl.sum(x * x, 0) / width + eps)
    weight = tl.load(weight_ptr + col, mask=col < width, other=0.0)
    out = weight * normed.to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * width + col, out.to(out_ptr.dtype.element_ty), mask=col < width)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMSNorm of ``x`` [..., N] over the last dimension, times ``weight`` [N], in one launch instead of eight.

    The result has the dtype of ``x``; it is computed in float32.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    """
    x = x.contiguous()
    out = torch.empty_like(x)
    width = x.shape[-1]
    _rms_norm_row[(x.numel() // width,)](
        x, weight, out, eps, width, BLOCK_W=triton.next_power_of_2(width), num_warps=8 if width > 1024 else 4
    )
    return out
