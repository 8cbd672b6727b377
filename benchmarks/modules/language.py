"""Modules as users write them, with example inputs: text: attention in many forms, positions, recurrence, routing, sampling."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x):
        dt = x.dtype
        x = x.float()
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * x.to(dt)


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class LlamaAttnCache(nn.Module):
    """Grouped queries, rotary embedding, keys and values of before concatenated, returned with the result."""

    def __init__(self, dim=64, heads=4, kv=2):
        super().__init__()
        self.h, self.kv, self.d = heads, kv, dim // heads
        self.wq = nn.Linear(dim, heads * self.d, bias=False)
        self.wk = nn.Linear(dim, kv * self.d, bias=False)
        self.wv = nn.Linear(dim, kv * self.d, bias=False)
        self.wo = nn.Linear(heads * self.d, dim, bias=False)
        self.register_buffer(
            "inv_freq", 1.0 / (10000 ** (torch.arange(0, self.d, 2).float() / self.d)), persistent=False
        )

    def forward(self, x, past_k, past_v):
        b, t, _ = x.shape
        past = past_k.shape[2]
        q = self.wq(x).view(b, t, self.h, self.d).transpose(1, 2)
        k = self.wk(x).view(b, t, self.kv, self.d).transpose(1, 2)
        v = self.wv(x).view(b, t, self.kv, self.d).transpose(1, 2)
        pos = torch.arange(past, past + t, device=x.device)
        fr = torch.outer(pos.float(), self.inv_freq)
        emb = torch.cat((fr, fr), -1)
        cos, sin = emb.cos(), emb.sin()
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k = torch.cat([past_k, k], 2)
        v = torch.cat([past_v, v], 2)
        kk = k.repeat_interleave(self.h // self.kv, 1)
        vv = v.repeat_interleave(self.h // self.kv, 1)
        mask = torch.full((t, past + t), float("-inf"), device=x.device).triu(past + 1)
        s = q @ kk.transpose(-1, -2) / math.sqrt(self.d) + mask
        p = F.softmax(s.float(), -1).type_as(q)
        return self.wo((p @ vv).transpose(1, 2).reshape(b, t, -1)), k, v


def get_inputs_LlamaAttnCache():
    return [torch.randn(2, 5, 64), torch.randn(2, 2, 7, 16), torch.randn(2, 2, 7, 16)]


class DecodeStepCache(nn.Module):
    """One token into a static cache that lies in buffers."""

    def __init__(self, dim=32, heads=2, maxlen=16):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.o = nn.Linear(dim, dim)
        self.register_buffer("k_cache", torch.zeros(2, heads, maxlen, self.d))
        self.register_buffer("v_cache", torch.zeros(2, heads, maxlen, self.d))

    def forward(self, x, pos):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        self.k_cache.index_copy_(2, pos, k)
        self.v_cache.index_copy_(2, pos, v)
        mask = torch.arange(self.k_cache.shape[2], device=x.device) <= pos[:, None]
        y = F.scaled_dot_product_attention(q, self.k_cache, self.v_cache, attn_mask=mask)
        return self.o(y.transpose(1, 2).reshape(b, t, c))


def get_inputs_DecodeStepCache():
    return [torch.randn(2, 1, 32), torch.tensor([5])]


class GEGLU(nn.Module):
    def __init__(self, d=48, h=64):
        super().__init__()
        self.proj = nn.Linear(d, 2 * h)
        self.out = nn.Linear(h, d)

    def forward(self, x):
        a, g = self.proj(x).chunk(2, dim=-1)
        return self.out(a * F.gelu(g))


def get_inputs_GEGLU():
    return [torch.randn(2, 9, 48)]


class AlibiAttention(nn.Module):
    def __init__(self, d=32, h=4):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d)
        self.o = nn.Linear(d, d)
        self.register_buffer("slopes", torch.tensor([2 ** (-8 * (i + 1) / h) for i in range(h)]))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2) for y in self.qkv(x).split(c, dim=-1))
        i = torch.arange(t, device=x.device)
        bias = -(i[:, None] - i[None, :]).abs() * self.slopes[:, None, None]
        s = q @ k.mT * (c // self.h) ** -0.5 + bias
        s = s.masked_fill(i[None, :] > i[:, None], float("-inf"))
        return self.o((s.softmax(-1) @ v).transpose(1, 2).flatten(2))


def get_inputs_AlibiAttention():
    return [torch.randn(2, 10, 32)]


class T5RelBias(nn.Module):
    def __init__(self, buckets=8, maxd=16, heads=4):
        super().__init__()
        self.buckets, self.maxd = buckets, maxd
        self.emb = nn.Embedding(buckets, heads)

    def bucket(self, rel):
        n = self.buckets // 2
        ret = (rel > 0).long() * n
        rel = rel.abs()
        exact = n // 2
        small = rel < exact
        large = exact + (torch.log(rel.float() / exact) / math.log(self.maxd / exact) * (n - exact)).long()
        large = torch.min(large, torch.full_like(large, n - 1))
        return ret + torch.where(small, rel, large)

    def forward(self, scores):
        q, k = scores.shape[-2:]
        c = torch.arange(q, device=scores.device)[:, None]
        m = torch.arange(k, device=scores.device)[None, :]
        return scores + self.emb(self.bucket(m - c)).permute(2, 0, 1).unsqueeze(0)


def get_inputs_T5RelBias():
    return [torch.randn(2, 4, 12, 12)]


class CrossAttention(nn.Module):
    def __init__(self, d=32, ctx=24, h=4):
        super().__init__()
        self.h = h
        self.norm = nn.LayerNorm(d)
        self.q = nn.Linear(d, d, bias=False)
        self.kv = nn.Linear(ctx, 2 * d, bias=False)
        self.o = nn.Linear(d, d)

    def forward(self, x, context, key_padding: torch.Tensor | None = None):
        b, t, d = x.shape
        q = self.q(self.norm(x)).view(b, t, self.h, -1).transpose(1, 2)
        k, v = self.kv(context).view(b, context.shape[1], 2, self.h, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mask = None if key_padding is None else key_padding[:, None, None, :]
        return x + self.o(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, t, d))


def get_inputs_CrossAttention():
    m = torch.ones(2, 11, dtype=torch.bool)
    m[0, 7:] = False
    return [torch.randn(2, 6, 32), torch.randn(2, 11, 24), m]


class MHAEncoderLayer(nn.Module):
    """torch's own attention module, with a causal mask and padding."""

    def __init__(self, d=32, h=4):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, h, batch_first=True)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, d))

    def forward(self, x, pad):
        t = x.shape[1]
        causal = torch.triu(torch.ones(t, t, dtype=torch.bool, device=x.device), 1)
        a, w = self.attn(x, x, x, attn_mask=causal, key_padding_mask=pad, need_weights=True)
        x = self.n1(x + a)
        return self.n2(x + self.ff(x)), w


def get_inputs_MHAEncoderLayer():
    pad = torch.zeros(2, 9, dtype=torch.bool)
    pad[1, 6:] = True
    return [torch.randn(2, 9, 32), pad]


class TorchEncoder(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(d, 4, 64, activation="gelu", batch_first=True, norm_first=True)

    def forward(self, x):
        return self.layer(x)


def get_inputs_TorchEncoder():
    return [torch.randn(2, 8, 32)]


class LSTMTagger(nn.Module):
    def __init__(self, vocab=50, d=16, h=24, tags=7):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.lstm = nn.LSTM(d, h, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * h, tags)

    def forward(self, ids):
        y, (h, _c) = self.lstm(self.emb(ids))
        return F.log_softmax(self.out(y), -1), h[-1]


def get_inputs_LSTMTagger():
    return [torch.randint(0, 50, (3, 11))]


class BiGRUAttnPool(nn.Module):
    def __init__(self, d=12, h=16):
        super().__init__()
        self.gru = nn.GRU(d, h, bidirectional=True, batch_first=True)
        self.w = nn.Linear(2 * h, 1)

    def forward(self, x, lengths):
        y, _ = self.gru(x)
        mask = torch.arange(x.shape[1], device=x.device)[None] < lengths[:, None]
        s = self.w(torch.tanh(y)).squeeze(-1).masked_fill(~mask, -1e9)
        return torch.bmm(s.softmax(-1).unsqueeze(1), y).squeeze(1)


def get_inputs_BiGRUAttnPool():
    return [torch.randn(3, 9, 12), torch.tensor([9, 4, 6])]


class MoERouter(nn.Module):
    """Top-2 gates with renormalised weights and a load-balancing loss; experts dense."""

    def __init__(self, d=24, e=4, k=2):
        super().__init__()
        self.gate = nn.Linear(d, e, bias=False)
        self.w1 = nn.Parameter(torch.randn(e, d, 32) * 0.1)
        self.w2 = nn.Parameter(torch.randn(e, 32, d) * 0.1)
        self.k, self.e = k, e

    def forward(self, x):
        b, t, d = x.shape
        f = x.reshape(-1, d)
        logits = self.gate(f)
        probs = logits.softmax(-1)
        w, idx = torch.topk(probs, self.k, dim=-1)
        w = w / w.sum(-1, keepdim=True)
        onehot = F.one_hot(idx, self.e).to(x.dtype)
        comb = torch.einsum("nk,nke->ne", w, onehot)
        h = F.silu(torch.einsum("nd,edh->enh", f, self.w1))
        y = torch.einsum("enh,ehd,ne->nd", h, self.w2, comb)
        aux = self.e * (onehot.sum(1).mean(0) * probs.mean(0)).sum()
        return y.view(b, t, d), aux


def get_inputs_MoERouter():
    return [torch.randn(2, 7, 24)]


class LinearAttention(nn.Module):
    def __init__(self, d=32, h=4):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.o = nn.Linear(d, d)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.h, -1).unbind(2)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.einsum("bthd,bthe->bhde", k, v)
        z = 1 / (torch.einsum("bthd,bhd->bth", q, k.sum(1)) + 1e-6)
        y = torch.einsum("bthd,bhde,bth->bthe", q, kv, z)
        return self.o(y.reshape(b, t, c))


def get_inputs_LinearAttention():
    return [torch.randn(2, 9, 32)]


class CausalLinearAttention(nn.Module):
    def forward(self, q, k, v):
        q, k = q.softmax(-1), k.exp()
        kv = torch.einsum("bhtd,bhte->bhtde", k, v).cumsum(2)
        z = k.cumsum(2)
        num = torch.einsum("bhtd,bhtde->bhte", q, kv)
        den = (q * z).sum(-1, keepdim=True).clamp(min=1e-6)
        return num / den


def get_inputs_CausalLinearAttention():
    return [torch.randn(2, 2, 9, 8), torch.randn(2, 2, 9, 8), torch.randn(2, 2, 9, 6)]


class SelectiveScan(nn.Module):
    """Mamba's scan, written as a loop."""

    def __init__(self, d=8, n=4):
        super().__init__()
        self.A_log = nn.Parameter(torch.randn(d, n))
        self.D = nn.Parameter(torch.randn(d))
        self.x_proj = nn.Linear(d, 2 * n + 1, bias=False)
        self.dt_proj = nn.Linear(1, d)
        self.n = n

    def forward(self, x):
        b, length, d = x.shape
        A = -torch.exp(self.A_log)
        dt, B, C = self.x_proj(x).split([1, self.n, self.n], -1)
        dt = F.softplus(self.dt_proj(dt))
        dA = torch.exp(dt.unsqueeze(-1) * A)
        dBx = dt.unsqueeze(-1) * B.unsqueeze(2) * x.unsqueeze(-1)
        h = x.new_zeros(b, d, self.n)
        ys = []
        for i in range(length):
            h = dA[:, i] * h + dBx[:, i]
            ys.append((h * C[:, i].unsqueeze(1)).sum(-1))
        return torch.stack(ys, 1) + x * self.D


def get_inputs_SelectiveScan():
    return [torch.randn(2, 10, 8)]


class Rotary2D(nn.Module):
    """Interleaved pairs, as in GPT-J, with a table from the constructor."""

    def __init__(self, d=16, maxlen=32):
        super().__init__()
        f = 1.0 / 10000 ** (torch.arange(0, d, 2) / d)
        a = torch.arange(maxlen)[:, None] * f
        self.register_buffer("cos", a.cos())
        self.register_buffer("sin", a.sin())

    def forward(self, x, offset: int = 3):
        t = x.shape[-2]
        c, s = self.cos[offset : offset + t], self.sin[offset : offset + t]
        x1, x2 = x[..., ::2], x[..., 1::2]
        return torch.stack([x1 * c - x2 * s, x1 * s + x2 * c], -1).flatten(-2)


def get_inputs_Rotary2D():
    return [torch.randn(2, 3, 9, 16)]


class ComplexRope(nn.Module):
    def __init__(self, d=16, n=32):
        super().__init__()
        f = 1.0 / 10000 ** (torch.arange(0, d, 2) / d)
        a = torch.outer(torch.arange(n).float(), f)
        self.register_buffer("freqs", torch.polar(torch.ones_like(a), a))

    def forward(self, x):
        xc = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        fc = self.freqs[: x.shape[1]].view(1, x.shape[1], 1, -1)
        return torch.view_as_real(xc * fc).flatten(3).type_as(x)


def get_inputs_ComplexRope():
    return [torch.randn(2, 7, 3, 16)]


class QKNormAttention(nn.Module):
    def __init__(self, d=32, h=4):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.qn, self.kn = RMSNorm(d // h), RMSNorm(d // h)
        self.temp = nn.Parameter(torch.tensor(0.7))
        self.o = nn.Linear(d, d, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.qn(q) * self.temp, self.kn(k), v, is_causal=True)
        return self.o(y.transpose(1, 2).contiguous().view(b, t, c))


def get_inputs_QKNormAttention():
    return [torch.randn(2, 8, 32)]


class SinusoidalEmbedding(nn.Module):
    def __init__(self, vocab=40, d=16):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.d = d

    def forward(self, ids):
        t = ids.shape[1]
        pos = torch.arange(t, dtype=torch.float32, device=ids.device).unsqueeze(1)
        div = torch.exp(torch.arange(0, self.d, 2, device=ids.device).float() * (-math.log(10000.0) / self.d))
        pe = torch.zeros(t, self.d, device=ids.device)
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        return self.tok(ids) * math.sqrt(self.d) + pe


def get_inputs_SinusoidalEmbedding():
    return [torch.randint(0, 40, (2, 9))]


class Output(NamedTuple):
    logits: torch.Tensor
    hidden: torch.Tensor


class NamedOutput(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.l = nn.Linear(d, d)
        self.h = nn.Linear(d, 5)

    def forward(self, x):
        h = torch.tanh(self.l(x))
        return Output(self.h(h), h)


def get_inputs_NamedOutput():
    return [torch.randn(3, 16)]


class PerceiverPool(nn.Module):
    def __init__(self, d=24, n=5):
        super().__init__()
        self.q = nn.Parameter(torch.randn(n, d))
        self.k = nn.Linear(d, d)
        self.v = nn.Linear(d, d)

    def forward(self, x):
        s = torch.einsum("nd,btd->bnt", self.q, self.k(x)) / x.shape[-1] ** 0.5
        return torch.einsum("bnt,btd->bnd", s.softmax(-1), self.v(x))


def get_inputs_PerceiverPool():
    return [torch.randn(2, 13, 24)]


class LoRALinear(nn.Module):
    def __init__(self, d=24, r=4):
        super().__init__()
        self.base = nn.Linear(d, 32)
        self.a = nn.Parameter(torch.randn(r, d) * 0.1)
        self.b = nn.Parameter(torch.randn(32, r) * 0.1)

    def forward(self, x):
        return self.base(x) + 2.0 * (x @ self.a.T @ self.b.T)


def get_inputs_LoRALinear():
    return [torch.randn(2, 6, 24)]


class TopKSampling(nn.Module):
    """Logits below the k-th are removed, then nucleus filtering."""

    def forward(self, logits):
        kth = logits.topk(5, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < kth, float("-inf"))
        return (logits / 0.8).softmax(-1)


def get_inputs_TopKSampling():
    return [torch.randn(3, 40)]


class NucleusFilter(nn.Module):
    def forward(self, logits):
        s, i = torch.sort(logits, descending=True, dim=-1)
        p = s.softmax(-1).cumsum(-1)
        remove = p > 0.9
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = False
        mask = torch.zeros_like(remove).scatter(-1, i, remove)
        return logits.masked_fill(mask, float("-inf")).softmax(-1)


def get_inputs_NucleusFilter():
    return [torch.randn(3, 30)]
