"""Modules that change their buffers: running statistics, moving averages."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .registry import CASES, Case, module, r


def _trained(name: str, kind: type[nn.Module], channels: int, *sizes: int) -> None:
    module(name, kind, (channels,), lambda n: [r(2 + n, channels, *sizes) * 2 + 0.5], training=True)


_trained("batch_norm_training", nn.BatchNorm2d, 6, 5, 7)
_trained("batch_norm_training_1d", nn.BatchNorm1d, 20)
_trained("batch_norm_training_long", nn.BatchNorm2d, 3, 220, 220)


class BatchNormTwice(nn.Module):
    """One norm, applied twice: the second time its running statistics move on from where the first left them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6, momentum=0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(F.relu(self.norm(x), inplace=True) * 2)


class BatchNormBetweenLayers(nn.Module):
    """Two norms around products, in half of which nothing is affine."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(10, 12),
            nn.BatchNorm1d(12),
            nn.ReLU(inplace=True),
            nn.Linear(12, 6),
            nn.BatchNorm1d(6, affine=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class OwnStatistics(nn.Module):
    """Buffers that are named as batch norm's are, which count as changed where anything else changes them."""

    running_mean: torch.Tensor
    seen_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(12))
        self.register_buffer("seen_mean", torch.zeros(12))
        self.register_buffer("running_var", torch.ones(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.running_mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        y = F.batch_norm(x, self.seen_mean, self.running_var, training=True)
        self.running_var.mul_(0.5)
        return y - self.running_mean


class MovingAverage(nn.Module):
    """A buffer that is read before and after it changes, and another that counts."""

    average: torch.Tensor
    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(12))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centered = x - self.average
        self.average.mul_(0.75).add_(x.mean(0), alpha=0.25)
        self.calls += 1
        return torch.exp(centered) * self.average


class Remembered(nn.Module):
    """The last batch's sums, in a buffer that is no view of memory in order; they are a result, too."""

    last: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(4, 8).t())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        change = x.sum(0) - self.last
        self.last.copy_(x.sum(0))
        return change


class Exchanged(nn.Module):
    """Two buffers swap what they hold, a third keeps what a fourth held before. What a fifth held, transposed, is a result."""

    first: torch.Tensor
    second: torch.Tensor
    previous: torch.Tensor
    current: torch.Tensor
    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("first", "second", "previous", "current"):
            self.register_buffer(name, torch.randn(12))
        self.register_buffer("table", torch.randn(12, 5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = self.first.clone()
        self.first.copy_(self.second)
        self.second.copy_(kept)
        self.previous.copy_(self.current)
        self.current.mul_(0.5).add_(x.mean(0))
        before = self.table.t().clone()
        self.table.mul_(0.5)
        return x + self.first, before


class Squared(nn.Module):
    """A buffer that becomes a product of itself: other programs read what one of them stores. Another is a product's operand, then changes."""

    table: torch.Tensor
    weight: torch.Tensor
    turned: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(136, 136) * 0.08)
        self.register_buffer("weight", torch.randn(136, 8) * 0.08)
        self.register_buffer("turned", torch.randn(136, 136))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = x @ self.weight
        self.weight.mul_(0.5)
        self.table.copy_(self.table @ self.table + self.table)
        self.turned.copy_(x.t() @ x * 0.01 + self.turned.t())
        return result


for name, kind, shape in (
    ("batch_norm_twice", BatchNormTwice, (6,)),
    ("batch_norm_between_layers", BatchNormBetweenLayers, (10,)),
    ("own_statistics", OwnStatistics, (12,)),
    ("moving_average", MovingAverage, (12,)),
    ("remembered", Remembered, (8, 4)),
    ("exchanged", Exchanged, (12,)),
    ("squared", Squared, (136,)),
):
    CASES[name] = Case(kind, lambda n, shape=shape: [r(5 + n, *shape)], training=True)


class ConstantsKept(nn.Module):
    """A tensor of one number is a result, another one becomes a buffer."""

    bandwidth: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bandwidth", torch.zeros(()))
        self.frames = 75

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.bandwidth.copy_(torch.tensor(self.frames * 0.5))
        return torch.exp(x), torch.tensor(self.frames * 2.5).to(x), torch.tensor(self.frames, device=x.device)


module("constants_kept", ConstantsKept, (), lambda n: [r(3 + n, 5)])
