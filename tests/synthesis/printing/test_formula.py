"""Formulas of what is too long to be shown whole."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.printing.formula import LEFT_OUT
from tests.synthesis.schedule.test_tile_order import written


class Stacked(nn.Module):
    """Its pieces are too long for a formula together. The first four, which a formula shows, are not, however deep it goes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pieces = [
            torch.exp(-x) * torch.sigmoid(x + t) + torch.tanh(x * 0.25) / (1.5 + t) - torch.sin(x) for t in range(8)
        ]
        return torch.cat(pieces, 1)


@pytest.mark.timeout(60)
def test_a_long_concatenation_ends_with_dots() -> None:
    docstring = written(Stacked(), torch.randn(2, 5, 16)).split('"""')[1]
    assert LEFT_OUT in docstring and "exp" in docstring
