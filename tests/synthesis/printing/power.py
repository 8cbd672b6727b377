"""Modules whose kernels Triton's interpreter alone cannot run: one calls libdevice, one multiplies tiles of bfloat16."""

from __future__ import annotations

import torch
from torch import nn


class Power(nn.Module):
    """x to the power of 2.3, which Triton itself has no function for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``: positive float32."""
        return x**2.3


class Square(nn.Module):
    """x times its own transpose, in bfloat16."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``: [M, K] float32. Returns [M, M] bfloat16."""
        y = x.to(torch.bfloat16)
        return y @ y.T


def example() -> torch.Tensor:
    """(4, 19) float32 between 0.1 and 4."""
    return torch.linspace(0.1, 4.0, 76).reshape(4, 19)
