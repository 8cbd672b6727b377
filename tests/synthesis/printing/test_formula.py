"""Formulas of what is too long to be shown whole."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch import nn

from kernel_lsp.synthesis.graph.value import Input, Pointwise, Value
from kernel_lsp.synthesis.printing.formula import LEFT_OUT, formula
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


@pytest.mark.timeout(5)
def test_values_that_are_shared_over_and_over_have_a_short_formula() -> None:
    """Its whole text would have 2 ** 60 terms: only parts of it may be printed."""
    shape = (sympy.Integer(4),)
    x, y = (Value(Input(name, "argument"), shape, torch.float32, name) for name in "xy")
    value, names = x, {x: "x", y: "y"}
    for _ in range(60):
        product = Value(Pointwise("mul", (value, y)), shape, torch.float32)
        value = Value(Pointwise("add", (product, value)), shape, torch.float32)
    text = formula(value, names)
    assert len(text) <= 480 and text.startswith("(") and LEFT_OUT in text
