"""Modules as users write them, with example inputs: images: blocks of convolutional networks, vision transformers and decoders."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim=32, layer_scale=1e-6):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(layer_scale * torch.ones(dim))

    def forward(self, x):
        skip = x
        x = self.dwconv(x).permute(0, 2, 3, 1)
        x = self.pwconv2(self.act(self.pwconv1(self.norm(x))))
        x = self.gamma * x
        return skip + x.permute(0, 3, 1, 2)


def get_inputs_ConvNeXtBlock():
    return [torch.randn(2, 32, 12, 12)]


class GRN(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.gamma = nn.Parameter(torch.randn(1, 1, 1, dim))
        self.beta = nn.Parameter(torch.randn(1, 1, 1, dim))

    def forward(self, x):
        gx = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
        nx = gx / (gx.mean(dim=-1, keepdim=True) + 1e-6)
        return self.gamma * (x * nx) + self.beta + x


def get_inputs_GRN():
    return [torch.randn(3, 9, 11, 24)]


class DoubleConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.net(x)


class UpBlock(nn.Module):
    """U-Net's decoder step: bilinear upsampling, padding to the skip, concatenation, double convolution."""

    def __init__(self, cin=16, cout=8):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv = DoubleConv(cin, cout)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        dy = x2.size(2) - x1.size(2)
        dx = x2.size(3) - x1.size(3)
        x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


def get_inputs_UpBlock():
    return [torch.randn(2, 8, 6, 6), torch.randn(2, 8, 13, 13)]


class UNetDown(nn.Module):
    def __init__(self, cin=8, cout=16):
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.conv = DoubleConv(cin, cout)

    def forward(self, x):
        return self.conv(self.pool(x))


def get_inputs_UNetDown():
    return [torch.randn(2, 8, 12, 12)]


class SEBlock(nn.Module):
    def __init__(self, channels=32, reduction=4):
        super().__init__()
        self.fc = nn.Sequential(
            nn.Linear(channels, channels // reduction),
            nn.ReLU(),
            nn.Linear(channels // reduction, channels),
            nn.Sigmoid(),
        )

    def forward(self, x):
        b, c, _, _ = x.shape
        y = F.adaptive_avg_pool2d(x, 1).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        return x * y.expand_as(x)


def get_inputs_SEBlock():
    return [torch.randn(2, 32, 10, 10)]


class ECA(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, k, padding=(k - 1) // 2, bias=False)

    def forward(self, x):
        y = x.mean((2, 3))
        y = self.conv(y.unsqueeze(1)).squeeze(1)
        return x * torch.sigmoid(y)[:, :, None, None]


def get_inputs_ECA():
    return [torch.randn(2, 24, 8, 8)]


class CBAM(nn.Module):
    def __init__(self, c=16, r=4):
        super().__init__()
        self.mlp = nn.Sequential(nn.Conv2d(c, c // r, 1, bias=False), nn.ReLU(), nn.Conv2d(c // r, c, 1, bias=False))
        self.spatial = nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, x):
        ca = torch.sigmoid(self.mlp(F.adaptive_avg_pool2d(x, 1)) + self.mlp(F.adaptive_max_pool2d(x, 1)))
        x = x * ca
        s = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True).values], dim=1)
        return x * torch.sigmoid(self.spatial(s))


def get_inputs_CBAM():
    return [torch.randn(2, 16, 10, 10)]


class WindowAttention(nn.Module):
    """Swin: shifted windows with a relative position bias and the mask of the shift."""

    def __init__(self, dim=32, heads=4, ws=4, shift=2, size=8):
        super().__init__()
        self.dim, self.heads, self.ws, self.shift = dim, heads, ws, shift
        self.scale = (dim // heads) ** -0.5
        self.table = nn.Parameter(torch.randn((2 * ws - 1) ** 2, heads) * 0.02)
        coords = torch.stack(torch.meshgrid(torch.arange(ws), torch.arange(ws), indexing="ij")).flatten(1)
        rel = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous()
        rel[:, :, 0] += ws - 1
        rel[:, :, 1] += ws - 1
        rel[:, :, 0] *= 2 * ws - 1
        self.register_buffer("index", rel.sum(-1))
        img = torch.zeros(1, size, size, 1)
        cnt = 0
        for h in (slice(0, -ws), slice(-ws, -shift), slice(-shift, None)):
            for w in (slice(0, -ws), slice(-ws, -shift), slice(-shift, None)):
                img[:, h, w, :] = cnt
                cnt += 1
        win = self.partition(img).squeeze(-1)
        mask = win.unsqueeze(1) - win.unsqueeze(2)
        self.register_buffer("attn_mask", mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0))
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def partition(self, x):
        b, h, w, c = x.shape
        ws = self.ws
        return x.view(b, h // ws, ws, w // ws, ws, c).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, ws * ws, c)

    def forward(self, x):
        b, h, w, c = x.shape
        shortcut = x
        x = torch.roll(self.norm(x), shifts=(-self.shift, -self.shift), dims=(1, 2))
        win = self.partition(x)
        bw, n, _ = win.shape
        q, k, v = self.qkv(win).reshape(bw, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.table[self.index.view(-1)].view(n, n, -1).permute(2, 0, 1)
        attn = attn + bias.unsqueeze(0)
        nw = self.attn_mask.shape[0]
        attn = attn.view(bw // nw, nw, self.heads, n, n) + self.attn_mask.unsqueeze(1).unsqueeze(0)
        attn = attn.view(-1, self.heads, n, n).softmax(-1)
        x = (attn @ v).transpose(1, 2).reshape(bw, n, c)
        x = self.proj(x).view(b, h // self.ws, w // self.ws, self.ws, self.ws, c)
        x = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(b, h, w, c)
        return shortcut + torch.roll(x, (self.shift, self.shift), (1, 2))


def get_inputs_WindowAttention():
    return [torch.randn(2, 8, 8, 32)]


class PatchEmbed(nn.Module):
    def __init__(self, img=32, patch=8, dim=48):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, patch, stride=patch)
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, (img // patch) ** 2 + 1, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.norm(x)


def get_inputs_PatchEmbed():
    return [torch.randn(2, 3, 32, 32)]


class PatchMerging(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        x0 = x[:, 0::2, 0::2, :]
        x1 = x[:, 1::2, 0::2, :]
        x2 = x[:, 0::2, 1::2, :]
        x3 = x[:, 1::2, 1::2, :]
        x = torch.cat([x0, x1, x2, x3], -1)
        return self.reduction(self.norm(x.view(x.shape[0], -1, x.shape[-1])))


def get_inputs_PatchMerging():
    return [torch.randn(2, 8, 8, 16)]


class SubPixelDecoder(nn.Module):
    def __init__(self, c=16, scale=2):
        super().__init__()
        self.conv1 = nn.Conv2d(c, c * scale * scale, 3, padding=1, padding_mode="reflect")
        self.shuffle = nn.PixelShuffle(scale)
        self.act = nn.PReLU(c)
        self.out = nn.Conv2d(c, 3, 3, padding=1, padding_mode="replicate")

    def forward(self, x):
        return torch.tanh(self.out(self.act(self.shuffle(self.conv1(x)))))


def get_inputs_SubPixelDecoder():
    return [torch.randn(2, 16, 7, 9)]


class BicubicHead(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.conv = nn.Conv2d(c, 4, 1)

    def forward(self, x):
        x = self.conv(x)
        return F.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False)


def get_inputs_BicubicHead():
    return [torch.randn(1, 8, 6, 5)]


class FPN(nn.Module):
    def __init__(self, chans=(8, 16, 32), out=12):
        super().__init__()
        self.lateral = nn.ModuleList([nn.Conv2d(c, out, 1) for c in chans])
        self.smooth = nn.ModuleList([nn.Conv2d(out, out, 3, padding=1) for _ in chans])

    def forward(self, feats: list[torch.Tensor]):
        lat = [conv(f) for conv, f in zip(self.lateral, feats, strict=False)]
        for i in range(len(lat) - 1, 0, -1):
            lat[i - 1] = lat[i - 1] + F.interpolate(lat[i], size=lat[i - 1].shape[-2:], mode="nearest")
        return [s(x) for s, x in zip(self.smooth, lat, strict=False)]


def get_inputs_FPN():
    return [[torch.randn(2, 8, 16, 16), torch.randn(2, 16, 8, 8), torch.randn(2, 32, 4, 4)]]


class ASPP(nn.Module):
    def __init__(self, cin=12, cout=8, rates=(1, 2, 4)):
        super().__init__()
        self.branches = nn.ModuleList(
            [
                nn.Sequential(
                    nn.Conv2d(cin, cout, 3, padding=r, dilation=r, bias=False), nn.BatchNorm2d(cout), nn.ReLU()
                )
                for r in rates
            ]
        )
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(cin, cout, 1), nn.ReLU())
        self.project = nn.Conv2d(cout * (len(rates) + 1), cout, 1)

    def forward(self, x):
        size = x.shape[-2:]
        res = [b(x) for b in self.branches]
        res.append(F.interpolate(self.pool(x), size=size, mode="bilinear", align_corners=False))
        return self.project(torch.cat(res, 1))


def get_inputs_ASPP():
    return [torch.randn(2, 12, 10, 10)]


class MBConv(nn.Module):
    def __init__(self, c=16, expand=4):
        super().__init__()
        h = c * expand
        self.conv = nn.Sequential(
            nn.Conv2d(c, h, 1, bias=False),
            nn.BatchNorm2d(h),
            nn.SiLU(),
            nn.Conv2d(h, h, 3, padding=1, groups=h, bias=False),
            nn.BatchNorm2d(h),
            nn.SiLU(),
        )
        self.se_r = nn.Conv2d(h, c // 4, 1)
        self.se_e = nn.Conv2d(c // 4, h, 1)
        self.out = nn.Sequential(nn.Conv2d(h, c, 1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        y = self.conv(x)
        s = self.se_e(F.silu(self.se_r(y.mean((2, 3), keepdim=True)))).sigmoid()
        return x + self.out(y * s)


def get_inputs_MBConv():
    return [torch.randn(2, 16, 8, 8)]


class ShuffleUnit(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        h = c // 2
        self.b = nn.Sequential(
            nn.Conv2d(h, h, 1, bias=False),
            nn.BatchNorm2d(h),
            nn.ReLU(),
            nn.Conv2d(h, h, 3, 1, 1, groups=h, bias=False),
            nn.BatchNorm2d(h),
            nn.Conv2d(h, h, 1, bias=False),
            nn.BatchNorm2d(h),
            nn.ReLU(),
        )

    def forward(self, x):
        x1, x2 = x.chunk(2, dim=1)
        out = torch.cat((x1, self.b(x2)), 1)
        b, c, h, w = out.size()
        return out.view(b, 2, c // 2, h, w).transpose(1, 2).contiguous().view(b, c, h, w)


def get_inputs_ShuffleUnit():
    return [torch.randn(2, 16, 8, 8)]


class WeightStandardizedConv(nn.Conv2d):
    def __init__(self, cin=8, cout=16):
        super().__init__(cin, cout, 3, padding=1)
        self.gn = nn.GroupNorm(4, cout)

    def forward(self, x):
        w = self.weight
        mean = w.mean(dim=(1, 2, 3), keepdim=True)
        var = w.var(dim=(1, 2, 3), keepdim=True, unbiased=False)
        w = (w - mean) * (var + 1e-5).rsqrt()
        return F.mish(self.gn(F.conv2d(x, w, self.bias, self.stride, self.padding)))


def get_init_inputs_WeightStandardizedConv():
    return [8, 16]


def get_inputs_WeightStandardizedConv():
    return [torch.randn(2, 8, 9, 9)]


class AdaIN(nn.Module):
    def forward(self, content, style):
        def stats(x):
            b, c = x.shape[:2]
            f = x.view(b, c, -1)
            return f.mean(2).view(b, c, 1, 1), (f.var(2) + 1e-5).sqrt().view(b, c, 1, 1)

        cm, cs = stats(content)
        sm, ss = stats(style)
        return (content - cm) / cs * ss + sm


def get_inputs_AdaIN():
    return [torch.randn(2, 6, 9, 9), torch.randn(2, 6, 7, 7)]


class SPADE(nn.Module):
    def __init__(self, c=8, label=4):
        super().__init__()
        self.norm = nn.InstanceNorm2d(c)
        self.shared = nn.Sequential(nn.Conv2d(label, 12, 3, padding=1), nn.ReLU())
        self.gamma = nn.Conv2d(12, c, 3, padding=1)
        self.beta = nn.Conv2d(12, c, 3, padding=1)

    def forward(self, x, seg):
        n = self.norm(x)
        seg = F.interpolate(seg, size=x.size()[2:], mode="nearest")
        a = self.shared(seg)
        return n * (1 + self.gamma(a)) + self.beta(a)


def get_inputs_SPADE():
    return [torch.randn(2, 8, 8, 8), torch.randn(2, 4, 12, 12)]


class StyleModConv(nn.Module):
    """StyleGAN2's modulated convolution, as a grouped convolution."""

    def __init__(self, cin=6, cout=8, k=3, sdim=10):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, cout, cin, k, k))
        self.mod = nn.Linear(sdim, cin)
        self.scale = 1 / math.sqrt(cin * k * k)

    def forward(self, x, s):
        b, c, h, w = x.shape
        s = self.mod(s).view(b, 1, c, 1, 1)
        wt = self.scale * self.weight * s
        demod = torch.rsqrt(wt.pow(2).sum([2, 3, 4]) + 1e-8)
        wt = wt * demod.view(b, -1, 1, 1, 1)
        out_c = wt.shape[1]
        wt = wt.view(b * out_c, c, 3, 3)
        y = F.conv2d(x.reshape(1, b * c, h, w), wt, padding=1, groups=b)
        return F.leaky_relu(y.view(b, out_c, h, w), 0.2) * math.sqrt(2)


def get_inputs_StyleModConv():
    return [torch.randn(3, 6, 8, 8), torch.randn(3, 10)]
