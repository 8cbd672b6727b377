import torch
from torch import nn


class MBConv(nn.Module):
    def __init__(self, ch=24, expand=4, se=0.25):
        super().__init__()
        mid, squeezed = ch * expand, int(ch * se)
        self.expand = nn.Sequential(nn.Conv2d(ch, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.SiLU())
        self.depthwise = nn.Sequential(
            nn.Conv2d(mid, mid, 3, padding=1, groups=mid, bias=False), nn.BatchNorm2d(mid), nn.SiLU()
        )
        self.se = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(mid, squeezed, 1), nn.SiLU(), nn.Conv2d(squeezed, mid, 1), nn.Sigmoid()
        )
        self.project = nn.Sequential(nn.Conv2d(mid, ch, 1, bias=False), nn.BatchNorm2d(ch))

    def forward(self, x):
        y = self.depthwise(self.expand(x))
        return x + self.project(y * self.se(y))


def get_inputs():
    return [torch.randn(2, 24, 28, 28)]
