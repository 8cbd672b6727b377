"""Modules as users write them, with example inputs: graphs, flows, scans, recurrences, interpolation by a grid, and half precision."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class EinsumZoo(nn.Module):
    def forward(self, a, b, c):
        x = torch.einsum("bij,bjk->bik", a, b)
        y = torch.einsum("bii->bi", x)
        z = torch.einsum("bij->ji", a)
        u = torch.einsum("...ij,...kj->...ik", a, c)
        w = torch.einsum("bij,bij->b", a, c)
        return y, z, u, w


def get_inputs_EinsumZoo():
    return [torch.randn(3, 6, 7), torch.randn(3, 7, 6), torch.randn(3, 6, 7)]


class Bilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Bilinear(8, 6, 5)

    def forward(self, x, y):
        return self.b(x, y)


def get_inputs_Bilinear():
    return [torch.randn(4, 8), torch.randn(4, 6)]


class GraphConv(nn.Module):
    """Message passing by index_add over edges, with degrees."""

    def __init__(self, d=12):
        super().__init__()
        self.l = nn.Linear(d, d)

    def forward(self, x, edges):
        src, dst = edges
        m = self.l(x)[src]
        out = torch.zeros_like(x).index_add_(0, dst, m)
        deg = torch.zeros(x.shape[0], device=x.device).scatter_add_(0, dst, torch.ones_like(dst, dtype=x.dtype))
        return F.relu(out / deg.clamp(min=1).unsqueeze(1))


def get_inputs_GraphConv():
    return [torch.randn(7, 12), torch.randint(0, 7, (2, 15))]


class GATDense(nn.Module):
    def __init__(self, d=10, h=8):
        super().__init__()
        self.W = nn.Linear(d, h, bias=False)
        self.a = nn.Parameter(torch.randn(2 * h))

    def forward(self, x, adj):
        h = self.W(x)
        n = h.shape[1]
        s = h @ self.a[:n]
        t = h @ self.a[n:]
        e = F.leaky_relu(s[:, None] + t[None, :], 0.2)
        e = torch.where(adj > 0, e, torch.full_like(e, -9e15))
        return F.elu(e.softmax(1) @ h)


def get_inputs_GATDense():
    return [torch.randn(9, 10), (torch.rand(9, 9) > 0.5).float()]


class SegmentMean(nn.Module):
    def forward(self, x, seg):
        n = 4
        s = x.new_zeros(n, x.shape[1]).scatter_reduce(0, seg[:, None].expand_as(x), x, "mean", include_self=False)
        return s


def get_inputs_SegmentMean():
    return [torch.randn(11, 6), torch.randint(0, 4, (11,))]


class VectorQuantizer(nn.Module):
    def __init__(self, n=12, d=8):
        super().__init__()
        self.codebook = nn.Embedding(n, d)

    def forward(self, z):
        b, c, h, w = z.shape
        f = z.permute(0, 2, 3, 1).reshape(-1, c)
        d = f.pow(2).sum(1, keepdim=True) - 2 * f @ self.codebook.weight.t() + self.codebook.weight.pow(2).sum(1)
        idx = d.argmin(1)
        q = self.codebook(idx).view(b, h, w, c).permute(0, 3, 1, 2)
        loss = F.mse_loss(q.detach(), z) + 0.25 * F.mse_loss(q, z.detach())
        return z + (q - z).detach(), loss, idx.view(b, h, w)


def get_inputs_VectorQuantizer():
    return [torch.randn(2, 8, 4, 4)]


class NeRFEncoding(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.register_buffer("f", 2.0 ** torch.arange(n))
        self.mlp = nn.Sequential(nn.Linear(3 + 6 * n, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        y = x[..., None] * self.f
        e = torch.cat([x, torch.sin(y).flatten(-2), torch.cos(y).flatten(-2)], -1)
        o = self.mlp(e)
        sigma, rgb = F.relu(o[..., :1]), torch.sigmoid(o[..., 1:])
        alpha = 1 - torch.exp(-sigma.squeeze(-1) * 0.1)
        trans = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        w = alpha * trans
        return (w[..., None] * rgb).sum(1)


def get_inputs_NeRFEncoding():
    return [torch.randn(5, 9, 3)]


class GridSampleWarp(nn.Module):
    def forward(self, x, flow):
        _b, _c, h, w = x.shape
        gy, gx = torch.meshgrid(
            torch.linspace(-1, 1, h, device=x.device), torch.linspace(-1, 1, w, device=x.device), indexing="ij"
        )
        grid = torch.stack([gx, gy], -1)[None] + flow.permute(0, 2, 3, 1)
        return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=True)


def get_inputs_GridSampleWarp():
    return [torch.randn(2, 3, 8, 7), torch.randn(2, 2, 8, 7) * 0.1]


class UnfoldLocalAttention(nn.Module):
    def __init__(self, c=6, k=3):
        super().__init__()
        self.k = k
        self.q = nn.Conv2d(c, c, 1)
        self.kv = nn.Conv2d(c, 2 * c, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q = self.q(x).view(b, c, 1, h * w)
        k, v = self.kv(x).chunk(2, 1)
        k = F.unfold(k, self.k, padding=1).view(b, c, self.k**2, h * w)
        v = F.unfold(v, self.k, padding=1).view(b, c, self.k**2, h * w)
        a = (q * k).sum(1, keepdim=True).softmax(2)
        return (a * v).sum(2).view(b, c, h, w)


def get_inputs_UnfoldLocalAttention():
    return [torch.randn(2, 6, 7, 7)]


class FoldOverlap(nn.Module):
    def forward(self, x):
        p = F.unfold(x, 4, stride=2)
        n = F.fold(F.unfold(torch.ones_like(x), 4, stride=2), x.shape[-2:], 4, stride=2)
        return F.fold(p * 2, x.shape[-2:], 4, stride=2) / n


def get_inputs_FoldOverlap():
    return [torch.randn(2, 3, 8, 8)]


class BlurPool(nn.Module):
    def __init__(self, c=6):
        super().__init__()
        f = torch.tensor([1.0, 2.0, 1.0])
        f = f[:, None] * f[None]
        self.register_buffer("k", (f / f.sum())[None, None].repeat(c, 1, 1, 1))
        self.pad = nn.ReflectionPad2d(1)
        self.c = c

    def forward(self, x):
        return F.conv2d(self.pad(x), self.k, stride=2, groups=self.c)


def get_inputs_BlurPool():
    return [torch.randn(2, 6, 9, 9)]


class TimeEmbedResBlock(nn.Module):
    """Diffusion U-Net's residual block with FiLM."""

    def __init__(self, c=16, t=12):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(4, c), nn.GroupNorm(4, c)
        self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.emb = nn.Linear(t, 2 * c)
        self.half = t // 2

    def forward(self, x, step):
        f = torch.exp(-math.log(10000) * torch.arange(self.half, device=x.device) / self.half)
        e = step[:, None].float() * f[None]
        e = torch.cat([e.sin(), e.cos()], -1)
        scale, shift = self.emb(F.silu(e))[:, :, None, None].chunk(2, 1)
        h = self.c1(F.silu(self.n1(x)))
        h = self.n2(h) * (1 + scale) + shift
        return x + self.c2(F.silu(h))


def get_inputs_TimeEmbedResBlock():
    return [torch.randn(2, 16, 8, 8), torch.tensor([3, 70])]


class AdaLNZero(nn.Module):
    def __init__(self, d=32, h=4):
        super().__init__()
        self.norm1 = nn.LayerNorm(d, elementwise_affine=False, eps=1e-6)
        self.attn = nn.MultiheadAttention(d, h, batch_first=True)
        self.norm2 = nn.LayerNorm(d, elementwise_affine=False, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(d, 64), nn.GELU(approximate="tanh"), nn.Linear(64, d))
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))

    def forward(self, x, c):
        s1, b1, g1, s2, b2, g2 = self.ada(c).unsqueeze(1).chunk(6, -1)
        y = self.norm1(x) * (1 + s1) + b1
        x = x + g1 * self.attn(y, y, y, need_weights=False)[0]
        return x + g2 * self.mlp(self.norm2(x) * (1 + s2) + b2)


def get_inputs_AdaLNZero():
    return [torch.randn(2, 9, 32), torch.randn(2, 32)]


class DeepFM(nn.Module):
    def __init__(self, fields=5, vocab=20, d=6):
        super().__init__()
        self.lin = nn.Embedding(fields * vocab, 1)
        self.emb = nn.Embedding(fields * vocab, d)
        self.register_buffer("offset", torch.arange(fields) * vocab)
        self.mlp = nn.Sequential(nn.Linear(fields * d, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))

    def forward(self, ids):
        ids = ids + self.offset
        e = self.emb(ids)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.lin(ids).sum(1) + fm + self.mlp(e.flatten(1))).squeeze(1)


def get_inputs_DeepFM():
    return [torch.randint(0, 20, (6, 5))]


class EmbBag(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.EmbeddingBag(30, 8, mode="mean")
        self.l = nn.Linear(8, 3)

    def forward(self, ids):
        return self.l(self.e(ids))


def get_inputs_EmbBag():
    return [torch.randint(0, 30, (4, 6))]


class CRFForward(nn.Module):
    """Forward algorithm of a linear-chain CRF."""

    def __init__(self, k=5):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(k, k))
        self.start = nn.Parameter(torch.randn(k))
        self.end = nn.Parameter(torch.randn(k))

    def forward(self, em, mask):
        s = self.start + em[:, 0]
        for t in range(1, em.shape[1]):
            n = torch.logsumexp(s.unsqueeze(2) + self.trans + em[:, t].unsqueeze(1), dim=1)
            s = torch.where(mask[:, t].unsqueeze(1), n, s)
        return torch.logsumexp(s + self.end, 1)


def get_inputs_CRFForward():
    m = torch.ones(3, 8, dtype=torch.bool)
    m[1, 5:] = False
    return [torch.randn(3, 8, 5), m]


class SoftDTW(nn.Module):
    def forward(self, x):
        y = torch.cummax(x, 1).values
        z = torch.cummin(x, 1)[0]
        return y - z, torch.logcumsumexp(x, 1), x.diff(dim=1), torch.flip(x.flip(1).cumsum(1), [1])


def get_inputs_SoftDTW():
    return [torch.randn(4, 13)]


class MixtureDensity(nn.Module):
    def __init__(self, d=8, k=3):
        super().__init__()
        self.pi, self.mu, self.sg = nn.Linear(d, k), nn.Linear(d, k), nn.Linear(d, k)

    def forward(self, x, y):
        lp = F.log_softmax(self.pi(x), -1)
        m, s = self.mu(x), F.softplus(self.sg(x)) + 1e-4
        ll = -0.5 * ((y[:, None] - m) / s) ** 2 - s.log() - 0.5 * math.log(2 * math.pi)
        return -torch.logsumexp(lp + ll, -1).mean()


def get_inputs_MixtureDensity():
    return [torch.randn(9, 8), torch.randn(9)]


class CouplingFlow(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d // 2, 16), nn.Tanh(), nn.Linear(16, d))
        self.register_buffer("perm", torch.randperm(d))

    def forward(self, x):
        x = x[:, self.perm]
        a, b = x.split(x.shape[1] // 2, 1)
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        return torch.cat([a, b * s.exp() + t], 1), s.sum(1)


def get_inputs_CouplingFlow():
    return [torch.randn(6, 8)]


class ReparamVAE(nn.Module):
    def __init__(self, d=10, z=4):
        super().__init__()
        self.e = nn.Linear(d, 2 * z)
        self.d = nn.Linear(z, d)

    def forward(self, x, eps):
        mu, lv = self.e(x).chunk(2, -1)
        z = mu + eps * torch.exp(0.5 * lv)
        r = self.d(z)
        kl = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp(), dim=-1)
        return {"recon": F.mse_loss(r, x, reduction="none").sum(-1) + kl, "z": z}


def get_inputs_ReparamVAE():
    return [torch.randn(6, 10), torch.randn(6, 4)]


class DuelingDQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(2, 8, 4, stride=2), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten())
        self.v = nn.Linear(8 * 9, 1)
        self.a = nn.Linear(8 * 9, 4)

    def forward(self, x, action):
        h = self.f(x / 255.0)
        a = self.a(h)
        q = self.v(h) + a - a.mean(1, keepdim=True)
        return q.gather(1, action[:, None]).squeeze(1), q.max(1)[0]


def get_inputs_DuelingDQN():
    return [torch.rand(3, 2, 12, 12) * 255, torch.randint(0, 4, (3,))]


class GAE(nn.Module):
    def forward(self, r, v, done):
        adv = torch.zeros_like(r)
        last = torch.zeros_like(r[0])
        for t in reversed(range(r.shape[0])):
            nd = 1.0 - done[t]
            delta = r[t] + 0.99 * v[t + 1] * nd - v[t]
            last = delta + 0.99 * 0.95 * nd * last
            adv[t] = last
        return adv, adv + v[:-1]


def get_inputs_GAE():
    return [torch.randn(9, 4), torch.randn(10, 4), (torch.rand(9, 4) > 0.8).float()]


class ConvLSTMCell(nn.Module):
    def __init__(self, cin=3, h=6):
        super().__init__()
        self.g = nn.Conv2d(cin + h, 4 * h, 3, padding=1)

    def forward(self, x, state):
        h, c = state
        i, f, o, g = self.g(torch.cat([x, h], 1)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (h, c)


def get_inputs_ConvLSTMCell():
    return [torch.randn(2, 3, 8, 8), (torch.randn(2, 6, 8, 8), torch.randn(2, 6, 8, 8))]


class ConvLSTM(nn.Module):
    def __init__(self, cin=2, h=4):
        super().__init__()
        self.h = h
        self.g = nn.Conv2d(cin + h, 4 * h, 3, padding=1)

    def forward(self, x):
        b, t, _, hh, ww = x.shape
        h = x.new_zeros(b, self.h, hh, ww)
        c = torch.zeros_like(h)
        out = []
        for s in range(t):
            i, f, o, g = self.g(torch.cat([x[:, s], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            out.append(h)
        return torch.stack(out, 1)


def get_inputs_ConvLSTM():
    return [torch.randn(2, 5, 2, 6, 6)]


class Seq2SeqAttn(nn.Module):
    """A decoder that attends at each step; its output feeds back."""

    def __init__(self, d=12):
        super().__init__()
        self.cell = nn.GRUCell(2 * d, d)
        self.out = nn.Linear(2 * d, d)

    def forward(self, enc, h):
        y = torch.zeros_like(h)
        ys = []
        for _ in range(5):
            a = torch.bmm(enc, h.unsqueeze(2)).squeeze(2).softmax(1)
            ctx = torch.bmm(a.unsqueeze(1), enc).squeeze(1)
            h = self.cell(torch.cat([y, ctx], 1), h)
            y = torch.tanh(self.out(torch.cat([h, ctx], 1)))
            ys.append(y)
        return torch.stack(ys, 1)


def get_inputs_Seq2SeqAttn():
    return [torch.randn(3, 7, 12), torch.randn(3, 12)]


class HighwayCharCNN(nn.Module):
    def __init__(self, v=30, d=6):
        super().__init__()
        self.e = nn.Embedding(v, d)
        self.convs = nn.ModuleList([nn.Conv1d(d, 8, k) for k in (2, 3, 4)])
        self.t = nn.Linear(24, 24)
        self.g = nn.Linear(24, 24)

    def forward(self, ids):
        x = self.e(ids).transpose(1, 2)
        x = torch.cat([F.relu(c(x)).max(2)[0] for c in self.convs], 1)
        g = torch.sigmoid(self.g(x))
        return g * F.relu(self.t(x)) + (1 - g) * x


def get_inputs_HighwayCharCNN():
    return [torch.randint(0, 30, (4, 12))]


class SpatialSoftArgmax(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        p = x.flatten(2).softmax(-1).view(b, c, h, w)
        ys = torch.linspace(-1, 1, h, device=x.device)
        xs = torch.linspace(-1, 1, w, device=x.device)
        return torch.stack([(p.sum(3) * ys).sum(2), (p.sum(2) * xs).sum(2)], -1)


def get_inputs_SpatialSoftArgmax():
    return [torch.randn(2, 5, 7, 8)]


class BatchHardNorms(nn.Module):
    """Instance, layer, group and local response norms one after the other."""

    def __init__(self, c=8):
        super().__init__()
        self.i = nn.InstanceNorm1d(c, affine=True)
        self.l = nn.LayerNorm([c, 10])
        self.b = nn.BatchNorm1d(c)
        self.lrn = nn.LocalResponseNorm(3)

    def forward(self, x):
        return self.lrn(self.b(self.l(self.i(x))))


def get_inputs_BatchHardNorms():
    return [torch.randn(3, 8, 10)]


class KMeansAssign(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", torch.randn(5, 6))

    def forward(self, x):
        d = torch.cdist(x, self.c)
        d2 = (x[:, None] - self.c[None]).norm(dim=-1)
        return (
            d.argmin(-1),
            d2.min(-1).values,
            F.pairwise_distance(x, x.flip(0)),
            F.cosine_similarity(x, x.roll(1, 0), dim=1),
        )


def get_inputs_KMeansAssign():
    return [torch.randn(8, 6)]


class MaskedMean(nn.Module):
    def forward(self, x, mask):
        m = mask.unsqueeze(-1).expand(x.size()).float()
        return torch.sum(x * m, 1) / torch.clamp(m.sum(1), min=1e-9)


def get_inputs_MaskedMean():
    return [torch.randn(3, 7, 8), (torch.rand(3, 7) > 0.3).long()]


class BoolIndexing(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[y < 0] = 0.0
        y[:, 0] = 1.0
        y[:, -1] += x[:, 0]
        return y


def get_inputs_BoolIndexing():
    return [torch.randn(5, 6)]


class HalfMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.LayerNorm(32)
        self.a, self.b = nn.Linear(32, 64), nn.Linear(64, 32)
        self.to(torch.bfloat16)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.n(x))))


def get_inputs_HalfMLP():
    return [torch.randn(4, 9, 32, dtype=torch.bfloat16)]


class HalfAttention(nn.Module):
    def __init__(self, d=32, h=2):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d)
        self.o = nn.Linear(d, d)
        self.half()

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        w = (q @ k.transpose(-2, -1)) / math.sqrt(c // self.h)
        w = w.masked_fill(torch.ones(t, t, device=x.device).tril() == 0, torch.finfo(w.dtype).min)
        return self.o((w.float().softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(b, t, c))


def get_inputs_HalfAttention():
    return [torch.randn(2, 9, 32, dtype=torch.float16)]


class HalfConvBN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.n = nn.BatchNorm2d(16)
        self.to(torch.bfloat16)

    def forward(self, x):
        return F.hardswish(self.n(self.c(x)))


def get_inputs_HalfConvBN():
    return [torch.randn(2, 8, 9, 9, dtype=torch.bfloat16)]
