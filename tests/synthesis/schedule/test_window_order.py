"""Windows of what lies with its channels last: results are in the order of that memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from kernel_lsp.synthesis.schedule.extents import main_access, rows_that_share
from kernel_lsp.synthesis.schedule.window_order import go_along_memory
from tests.synthesis.schedule.test_space import kernels_of, meta


def pooled(x: torch.Tensor) -> torch.Tensor:
    return F.max_pool2d(x, 3, 1, 1)


@pytest.mark.parametrize(
    ("forward", "shape", "weight", "ordered"),
    [
        (lambda self, x: pooled(x.permute(0, 3, 1, 2)), (4, 28, 28, 64), None, True),
        (lambda self, x: pooled(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1), (4, 28, 28, 64), None, True),
        (lambda self, x: F.avg_pool1d(x.mT, 5, 1, 2), (4, 100, 32), None, True),
        (
            lambda self, x: F.conv2d(x.permute(0, 3, 1, 2), self.weight, None, 1, 3, 1, 96),
            (4, 28, 28, 96),
            (96, 1, 7, 7),
            True,
        ),
        (lambda self, x: pooled(x), (4, 64, 28, 28), None, False),
        (lambda self, x: pooled(x).permute(0, 2, 3, 1), (4, 64, 28, 28), None, False),  # what is read counts
        (lambda self, x: pooled(x.permute(0, 3, 1, 2)), (4, 28, 28, 8), None, False),  # a line of eight is short
        (lambda self, x: torch.sum(x, 1), (4, 28, 64), None, False),  # no windows
    ],
)
def test_lanes_go_along_the_memory_of_what_windows_read(
    forward: Callable[..., Any], shape: tuple[int, ...], weight: tuple[int, ...] | None, ordered: bool
) -> None:
    given = {"weight": meta(*weight)} if weight else {}
    kernels, hints = kernels_of(forward, meta(*shape), **given)
    (kernel,) = (one for one in kernels if one.folds)
    before = set(kernel.domain.kept)
    assert go_along_memory(kernel, hints) == ordered
    assert set(kernel.domain.kept) == before
    if ordered:
        assert main_access(kernel, hints)[kernel.domain.kept[-1]] == 1
        assert rows_that_share(kernel, hints) > 1, "results along a line of pixels share what they load"
        assert not go_along_memory(kernel, hints), "it is in order by now"
