"""Modules as users write them, with example inputs: sound and video, and losses."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class WaveNetBlock(nn.Module):
    def __init__(self, c=12, skip=10, dilation=2):
        super().__init__()
        self.d = dilation
        self.conv = nn.Conv1d(c, 2 * c, 2, dilation=dilation)
        self.res = nn.Conv1d(c, c, 1)
        self.skip = nn.Conv1d(c, skip, 1)

    def forward(self, x):
        y = self.conv(F.pad(x, (self.d, 0)))
        a, b = y.chunk(2, 1)
        z = torch.tanh(a) * torch.sigmoid(b)
        return self.res(z) + x, self.skip(z)


def get_inputs_WaveNetBlock():
    return [torch.randn(2, 12, 20)]


class WeightNormConv(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.c = weight_norm(nn.Conv1d(c, c, 3, padding=1))
        self.l = weight_norm(nn.Linear(c, 6))

    def forward(self, x):
        return self.l(F.leaky_relu(self.c(x), 0.1).transpose(1, 2))


def get_inputs_WeightNormConv():
    return [torch.randn(2, 8, 10)]


class OldWeightNorm(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.g = nn.Parameter(torch.rand(c, 1, 1))
        self.v = nn.Parameter(torch.randn(c, c, 3))

    def forward(self, x):
        w = torch._weight_norm(self.v, self.g, 0)
        return F.conv1d(x, w, padding=1)


def get_inputs_OldWeightNorm():
    return [torch.randn(2, 8, 10)]


class SnakeResBlock(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.alpha = nn.Parameter(torch.rand(1, c, 1) + 0.5)
        self.c1 = nn.Conv1d(c, c, 7, dilation=3, padding=9)
        self.c2 = nn.Conv1d(c, c, 1)

    def snake(self, x):
        return x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2)

    def forward(self, x):
        return x + self.c2(self.snake(self.c1(self.snake(x))))


def get_inputs_SnakeResBlock():
    return [torch.randn(2, 8, 24)]


class HiFiUpsample(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.up = nn.ConvTranspose1d(c, c // 2, 4, stride=2, padding=1)
        self.c = nn.Conv1d(c // 2, 1, 7, padding=3)

    def forward(self, x):
        return torch.tanh(self.c(F.leaky_relu(self.up(x), 0.1)))


def get_inputs_HiFiUpsample():
    return [torch.randn(2, 8, 12)]


class GatedConv2d(nn.Module):
    def __init__(self, cin=6, cout=8):
        super().__init__()
        self.f = nn.Conv2d(cin, cout, 3, padding=2, dilation=2)
        self.g = nn.Conv2d(cin, cout, 3, padding=2, dilation=2)
        self.n = nn.BatchNorm2d(cout)

    def forward(self, x, mask):
        x = x * (1 - mask)
        return self.n(F.elu(self.f(x)) * torch.sigmoid(self.g(x)))


def get_inputs_GatedConv2d():
    return [torch.randn(2, 6, 9, 9), (torch.rand(2, 1, 9, 9) > 0.7).float()]


class DeconvGenerator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(10, 8, 4, 1, 0, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(True),
            nn.ConvTranspose2d(8, 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(True),
            nn.ConvTranspose2d(4, 3, 3, 2, 1, output_padding=1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z[:, :, None, None])


def get_inputs_DeconvGenerator():
    return [torch.randn(3, 10)]


class VideoBlock(nn.Module):
    def __init__(self, c=4):
        super().__init__()
        self.s = nn.Conv3d(c, 8, (1, 3, 3), padding=(0, 1, 1))
        self.t = nn.Conv3d(8, 8, (3, 1, 1), padding=(1, 0, 0), padding_mode="circular")
        self.n = nn.GroupNorm(2, 8)
        self.p = nn.AvgPool3d((1, 2, 2))

    def forward(self, x):
        return self.p(F.silu(self.n(self.t(self.s(x)))))


def get_inputs_VideoBlock():
    return [torch.randn(1, 4, 5, 8, 8)]


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, logits, target):
        ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        p = torch.sigmoid(logits)
        pt = p * target + (1 - p) * (1 - target)
        a = self.alpha * target + (1 - self.alpha) * (1 - target)
        return (a * (1 - pt) ** self.gamma * ce).mean()


def get_inputs_FocalLoss():
    return [torch.randn(6, 17), (torch.rand(6, 17) > 0.5).float()]


class MultiFocalLoss(nn.Module):
    def __init__(self, c=5, gamma=2.0):
        super().__init__()
        self.gamma = gamma
        self.register_buffer("w", torch.rand(c) + 0.5)

    def forward(self, logits, target):
        ce = F.cross_entropy(logits, target, weight=self.w, reduction="none")
        pt = torch.exp(-F.cross_entropy(logits, target, reduction="none"))
        return ((1 - pt) ** self.gamma * ce).mean()


def get_inputs_MultiFocalLoss():
    return [torch.randn(12, 5), torch.randint(0, 5, (12,))]


class LabelSmoothingCE(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=0.1, ignore_index=-100)


def get_inputs_LabelSmoothingCE():
    t = torch.randint(0, 9, (3, 6))
    t[0, 2] = -100
    return [torch.randn(3, 6, 9), t]


class DiceLoss(nn.Module):
    def forward(self, logits, target):
        p = logits.softmax(1)
        t = F.one_hot(target, p.shape[1]).permute(0, 3, 1, 2).float()
        inter = (p * t).sum((0, 2, 3))
        card = (p + t).sum((0, 2, 3))
        return (1 - (2 * inter + 1) / (card + 1)).mean()


def get_inputs_DiceLoss():
    return [torch.randn(2, 4, 8, 8), torch.randint(0, 4, (2, 8, 8))]


class InfoNCE(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(2.3))

    def forward(self, a, b):
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        logits = self.logit_scale.exp().clamp(max=100) * a @ b.t()
        labels = torch.arange(a.shape[0], device=a.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


def get_inputs_InfoNCE():
    return [torch.randn(10, 16), torch.randn(10, 16)]


class NTXent(nn.Module):
    def forward(self, z1, z2):
        n = z1.shape[0]
        z = F.normalize(torch.cat([z1, z2]), dim=1)
        sim = z @ z.T / 0.5
        sim.fill_diagonal_(float("-inf"))
        target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
        return F.cross_entropy(sim, target)


def get_inputs_NTXent():
    return [torch.randn(6, 16), torch.randn(6, 16)]


class TripletHard(nn.Module):
    def forward(self, x, y):
        d = torch.cdist(x, x)
        same = y[:, None] == y[None]
        pos = d.masked_fill(~same, 0).max(1).values
        neg = d.masked_fill(same, float("inf")).min(1)[0]
        return F.relu(pos - neg + 0.3).mean()


def get_inputs_TripletHard():
    return [torch.randn(9, 12), torch.arange(9) % 3]


class DistillKL(nn.Module):
    def forward(self, s, t):
        T = 4.0
        return F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T


def get_inputs_DistillKL():
    return [torch.randn(7, 11), torch.randn(7, 11)]


class GIoULoss(nn.Module):
    def forward(self, a, b):
        lt = torch.max(a[:, None, :2], b[None, :, :2])
        rb = torch.min(a[:, None, 2:], b[None, :, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[..., 0] * wh[..., 1]

        def area(x):
            return (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])

        union = area(a)[:, None] + area(b)[None] - inter
        lt2 = torch.min(a[:, None, :2], b[None, :, :2])
        rb2 = torch.max(a[:, None, 2:], b[None, :, 2:])
        c = (rb2 - lt2).prod(-1)
        return inter / union - (c - union) / c


def get_inputs_GIoULoss():
    def box(n):
        x = torch.rand(n, 2)
        return torch.cat([x, x + torch.rand(n, 2) + 0.1], 1)

    return [box(7), box(5)]


class GANHinge(nn.Module):
    def forward(self, real, fake):
        return F.relu(1.0 - real).mean() + F.relu(1.0 + fake).mean()


def get_inputs_GANHinge():
    return [torch.randn(9, 1, 5, 5), torch.randn(9, 1, 5, 5)]


class SSIM(nn.Module):
    def __init__(self, size=5, c=3):
        super().__init__()
        g = torch.exp(-((torch.arange(size).float() - size // 2) ** 2) / 4.5)
        g = g / g.sum()
        self.register_buffer("win", torch.outer(g, g).expand(c, 1, size, size).contiguous())
        self.c = c

    def forward(self, x, y):
        def conv(z):
            return F.conv2d(z, self.win, padding=2, groups=self.c)

        mx, my = conv(x), conv(y)
        sx, sy, sxy = conv(x * x) - mx**2, conv(y * y) - my**2, conv(x * y) - mx * my
        c1, c2 = 0.01**2, 0.03**2
        return (((2 * mx * my + c1) * (2 * sxy + c2)) / ((mx**2 + my**2 + c1) * (sx + sy + c2))).mean((1, 2, 3))


def get_inputs_SSIM():
    return [torch.rand(2, 3, 10, 10), torch.rand(2, 3, 10, 10)]


class TVLoss(nn.Module):
    def forward(self, x):
        return (x[..., 1:, :] - x[..., :-1, :]).abs().sum() + (x[..., :, 1:] - x[..., :, :-1]).pow(2).sum()


def get_inputs_TVLoss():
    return [torch.randn(2, 3, 9, 9)]


class WingHuber(nn.Module):
    def forward(self, p, t):
        return F.smooth_l1_loss(p, t, beta=0.5) + F.huber_loss(p, t, delta=2.0, reduction="sum")


def get_inputs_WingHuber():
    return [torch.randn(8, 14), torch.randn(8, 14)]


class SpecNormMel(nn.Module):
    """Power spectrum to log-mel, by a product with a filter bank; framed by unfold."""

    def __init__(self, n=16, hop=8, mels=6):
        super().__init__()
        self.n, self.hop = n, hop
        t = torch.arange(n).float()
        k = torch.arange(n // 2 + 1).float()
        a = 2 * math.pi * torch.outer(k, t) / n
        self.register_buffer("re", a.cos())
        self.register_buffer("im", a.sin())
        self.register_buffer("window", torch.hann_window(n))
        self.fb = nn.Parameter(torch.rand(n // 2 + 1, mels))

    def forward(self, wav):
        x = F.pad(wav.unsqueeze(1), (self.n // 2, self.n // 2), mode="reflect").squeeze(1)
        fr = x.unfold(-1, self.n, self.hop) * self.window
        p = (fr @ self.re.T).square() + (fr @ self.im.T).square()
        m = torch.log10(torch.clamp(p @ self.fb, min=1e-10))
        return torch.maximum(m, m.amax(dim=(-1, -2), keepdim=True) - 8.0)


def get_inputs_SpecNormMel():
    return [torch.randn(2, 64)]


class CTCGreedy(nn.Module):
    def forward(self, logits):
        lp = logits.log_softmax(-1)
        v, i = lp.max(-1)
        change = torch.cat([torch.ones_like(i[:, :1], dtype=torch.bool), i[:, 1:] != i[:, :-1]], 1)
        keep = change & (i != 0)
        return torch.where(keep, i, torch.full_like(i, -1)), (v * keep).sum(1)


def get_inputs_CTCGreedy():
    return [torch.randn(2, 12, 7)]
