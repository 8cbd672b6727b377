"""Reductions over a few elements: where they are written out, and that what has another kernel anyway stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.value import Fold
from tests.synthesis.passes.test_products import planned

Forward = Callable[..., torch.Tensor]


class Module(nn.Module):
    """``function`` as a module."""

    def __init__(self, function: Forward) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def folds(function: Forward, *inputs: torch.Tensor) -> list[str]:
    """The reductions that are left, as kinds."""
    found = planned(Module(function), *inputs)
    return [v.op.kind for kernel in found.kernels for v in kernel.folds if isinstance(v.op, Fold)]


IMAGE = torch.empty(8, 12, 28, 28)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.unflatten(1, (3, 4)).sum(1),
        lambda x: x.unflatten(1, (3, 4)).mean(2),
        lambda x: x.unflatten(1, (4, 3)).amax(2),
        lambda x: x.unflatten(1, (3, 4)).prod(1),
        lambda x: torch.stack([x, x.sin()]).amin(0),
        lambda x: (torch.stack([x, x.exp()], 1) ** 2).sum(1).sqrt(),
    ],
)
def test_few_elements_are_combined_one_by_one(function: Forward) -> None:
    assert folds(function, IMAGE) == []


def test_factors_that_come_from_reductions_of_less_do_not_matter() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        branches = x.unflatten(1, (2, 6))
        return (branches * torch.softmax(branches.mean((3, 4), keepdim=True), 1)).sum(1)

    assert folds(forward, IMAGE) == ["sum", "max", "sum"]  # of the mean, and of the softmax


@pytest.mark.parametrize(
    "function, kind",
    [
        (lambda x: x.unflatten(1, (2, 6)).sum(2), "sum"),  # six of them
        (lambda x: torch.softmax(x.unflatten(1, (4, 3)), 2), "sum"),  # what is summed is needed with the sum
        (lambda x: F.max_pool1d(x.flatten(2), 3, 1), "amax"),  # windows share elements
        (lambda x: x.unflatten(1, (3, 4)).argmax(1), "argmax"),
        # Of one bit True and True would be False.
        (lambda x: (x > 0).unflatten(1, (3, 4)).sum(1, dtype=torch.bool), "sum"),
        (lambda x: F.avg_pool1d(F.avg_pool1d(x.flatten(2), 4), 4), "sum"),  # each element would be a sum itself
        (lambda x: F.avg_pool1d(x.flatten(2).transpose(1, 2) @ torch.ones(12, 64), 4), "sum"),  # in the product's tiles
    ],
)
def test_others_stay_reductions(function: Forward, kind: str) -> None:
    assert kind in folds(function, IMAGE)


def test_the_sum_of_branches_is_computed_in_the_kernel_that_reads_it() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.stack([x, y], 1).sum(1).mean((2, 3))

    exported = capture(Module(forward), (IMAGE, IMAGE.clone()))
    (first, *_) = synthesize(Module(forward), exported, class_name="Module", import_from="here", gpu="H100")
    assert first.source.count("@triton.jit") == 1
    assert "mean(sum(cat(" in first.source  # the formula says what it is
