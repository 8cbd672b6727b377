"""Copies of modules: what torch refuses to copy has them, too."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from kernel_lsp.validation.duplicates import duplicate
from kernel_lsp.validation.oracle import Oracle


@pytest.fixture
def normed() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 4)), nn.Tanh())


def test_a_weight_that_is_computed_before_each_call_is_copied(normed: nn.Module) -> None:
    x = torch.randn(2, 3)
    copied = duplicate(normed)
    assert torch.equal(copied(x), normed(x))
    with torch.no_grad():
        copied[0].weight_g.mul_(2)
    assert not torch.equal(copied(x), normed(x))


def test_float64_is_the_reference_of_a_module_with_such_a_weight(normed: nn.Module) -> None:
    oracle = Oracle(normed, [])
    found = oracle.answer(((torch.randn(2, 3),), {}))
    assert not oracle.limits and found.exact.dtype == torch.float64
