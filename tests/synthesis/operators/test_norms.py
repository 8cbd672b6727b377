"""Norms of the input's own statistics: torch refuses a single element, and the class leaves such a call to it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.operators.lower import lower


@pytest.mark.parametrize(
    ("norm", "dims"),
    [
        (nn.InstanceNorm1d(4), [(2,)]),
        (nn.BatchNorm1d(4, track_running_stats=False), [(0, 2)]),
        (nn.BatchNorm1d(4), []),
        (nn.GroupNorm(4, 4), [(0, 2)]),
        (nn.GroupNorm(2, 4), []),
    ],
)
def test_sizes_that_leave_one_element_are_not_taken(norm, dims):
    graph = lower(capture(norm.eval(), (torch.randn(3, 4, 6),)))
    x = next(v for v in graph.inputs if len(v.shape) == 3)
    products = [x.shape[d[0]] if len(d) == 1 else x.shape[d[0]] * x.shape[d[1]] for d in dims]
    assert graph.not_one == products
    if dims:
        with pytest.raises(ValueError, match="more than 1"):
            norm(torch.randn(1, 4, 1))
    else:
        norm(torch.randn(1, 4, 1))
