"""What schedules make of packed weights that are kept: planes that cost nothing, and graphs that save fewer launches."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import stages
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.targets import H100


class Both(nn.Module):
    """Both operands are given to forward."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x @ weight.mT


def rounded(module: nn.Module, *shapes: tuple[int, ...], keep: bool) -> list[str]:
    exported = capture(module.eval(), tuple(torch.empty(shape) for shape in shapes))
    return stages.lowered(exported, on=H100, halves=True, keep_packed_weights=keep).rounded


@pytest.mark.parametrize("keep", [False, True])
def test_planes_of_a_weight_that_are_kept_pay_for_smaller_products(keep: bool) -> None:
    assert rounded(nn.Linear(1536, 1536), (1024, 1536), keep=keep) == (["float16 planes"] if keep else [])
    assert rounded(nn.Linear(4096, 4096), (2048, 4096), keep=keep) == ["float16 planes"]
    assert rounded(nn.Linear(1024, 1024), (1024, 1024), keep=keep) == []
    assert rounded(Both(), (1024, 1024), (1024, 1024), keep=keep) == [], "nothing of it is kept"
