"""Small modules to which the tiny model knows an answer that cannot be used, or several answers.

Leaky: wrong, it has another slope. Clip: valid Python that Triton cannot compile. SoftSign: a syntax error. Wave: prose.
SquaredReLU: four answers, two that are right and differ, a wrong one, and prose.
"""

import torch
from torch import nn


class Leaky(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x, 0.2 * x)


class Clip(nn.Module):
    def forward(self, x):
        return x.clamp(-2.0, 2.0)


class SoftSign(nn.Module):
    def forward(self, x):
        return x / (1 + x.abs())


class Wave(nn.Module):
    def forward(self, x):
        return torch.sin(x) + torch.cos(x)


class SquaredReLU(nn.Module):
    def forward(self, x):
        return torch.relu(x).square()


def get_inputs():
    return [torch.randn(64, 96)]
