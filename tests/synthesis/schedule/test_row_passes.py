"""Which reductions of a long row share a pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.row_passes import passes
from kernel_lsp.synthesis.schedule.schedules import Passes
from kernel_lsp.synthesis.schedule.target import NAMED

from .test_space import kernels_of, meta

ROWS, LENGTH = 4096, 50_000


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        (lambda self, x: torch.softmax(x, -1), [["highest", "sum"]]),
        (lambda self, x: torch.logsumexp(x, -1), [["highest", "sum"]]),
        (lambda self, x: F.layer_norm(x, (LENGTH,)), [["result", "squares"]]),
        (lambda self, x: x.var(-1), [["result", "squares"]]),
        (lambda self, x: (x - x.amax(-1, keepdim=True)).exp().sum(-1), [["highest", "sum"]]),
        (lambda self, x: F.normalize(x, dim=-1), [["result"]]),
        (lambda self, x: x.amax(-1) + x.sum(-1), [["result", "result"]]),
        # What is folded itself waits: for the greatest, and then for the mean of that.
        (lambda self, x: torch.softmax(x, -1).var(-1), [["highest", "sum"], ["result", "squares"]]),
        (lambda self, x: (x - x.mean(-1, keepdim=True)).abs().sum(-1), [["result"], ["result"]]),
        # Not one number for the row.
        (lambda self, x: (x - x.flip(-1)).square().sum(-1), [["result"]]),
    ],
)
def test_passes(forward: Callable[..., Any], expected: list[list[str]]) -> None:
    (kernel,), hints = kernels_of(forward, meta(ROWS, LENGTH))
    found = passes(kernel)
    assert [[name for one in level for name in one.results] for level in found] == expected
    stored = any(len(v.shape) == 2 and v.shape[-1] != 1 for v in kernel.outputs)
    read = cost(kernel, Passes(8192, 16), NAMED["H100"], hints).bytes
    once = ROWS * LENGTH * 4
    written = once if stored else ROWS * 4 * len(kernel.outputs)
    assert read - written == once * (len(expected) + stored)


def test_one_of_two_sums_carries_the_greatest() -> None:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        highest = x.amax(-1, keepdim=True)
        return (x - highest).exp().sum(-1) + (x - highest.relu()).exp().sum(-1)

    (kernel,), _ = kernels_of(forward, meta(ROWS, LENGTH))
    (found,) = passes(kernel)
    assert [list(one.results) for one in found] == [["highest", "sum"], ["sum"]]
