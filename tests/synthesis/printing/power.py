"""A module whose kernel calls libdevice."""

from __future__ import annotations

import torch
from torch import nn


class Power(nn.Module):
    """x to the power of 2.3, which Triton itself has no function for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``: positive float32."""
        return x**2.3


def example() -> torch.Tensor:
    """(4, 19) float32 between 0.1 and 4."""
    return torch.linspace(0.1, 4.0, 76).reshape(4, 19)
