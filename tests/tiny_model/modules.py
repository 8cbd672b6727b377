"""Small modules to which the tiny model knows an answer that cannot be used, or several answers."""

import torch
from torch import nn


# Its answer is wrong: another slope.
class Leaky(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x, 0.2 * x)


# Its answer is valid Python that Triton cannot compile.
class Clip(nn.Module):
    def forward(self, x):
        return x.clamp(-2.0, 2.0)


# Its answer has a syntax error.
class SoftSign(nn.Module):
    def forward(self, x):
        return x / (1 + x.abs())


# Its answer is prose.
class Wave(nn.Module):
    def forward(self, x):
        return torch.sin(x) + torch.cos(x)


# It has four answers: two that are right and differ, a wrong one, and prose.
class SquaredReLU(nn.Module):
    def forward(self, x):
        return torch.relu(x).square()


def get_inputs():
    return [torch.randn(64, 96)]
