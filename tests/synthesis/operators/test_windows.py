"""Windows and margins of images whose size varies: torch refuses some that are too small, and the class leaves them to it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.assumptions import assumed
from kernel_lsp.synthesis.operators.lower import lower


@pytest.mark.parametrize(
    "windows",
    [
        lambda x: F.avg_pool3d(x[:, None, None], (1, 1, 3), 2),
        lambda x: F.avg_pool3d(x[:, None, None], (1, 1, 3), 2, padding=(0, 0, 1)),
        lambda x: F.avg_pool3d(x[:, None, None], (1, 1, 3), 2, ceil_mode=True),
        lambda x: F.avg_pool3d(x[:, None, None], (1, 1, 2), 2, ceil_mode=True),
        lambda x: F.avg_pool2d(x[:, None], (1, 3), 2, padding=(0, 1)),
        lambda x: x.unfold(1, 3, 2),
        lambda x: F.pad(x, (0, 2), mode="circular"),
        lambda x: F.pad(x[:, :, None], (0, 0, 3, 2), mode="circular"),
        lambda x: x.unfold(-1, 3, 1),
        lambda x: x.unfold(-1, 2, 2),
    ],
)
def test_torch_has_windows_for_sizes_that_are_taken(windows):
    class Windows(torch.nn.Module):
        def forward(self, x):
            return windows(x) * 2

    exported = capture(Windows(), (torch.randn(5, 9),))
    graph = lower(exported)
    conditions = assumed(exported, graph)
    symbol = graph.inputs[0].shape[1]
    least, _ = graph.ranges.get(symbol, (2, None))
    for size in range(
        1 if least == 2 else least, 10
    ):  # the class takes a size of one, too, unless something forbids it
        if all(bool(relation.subs(symbol, size)) for relation in conditions):
            assert windows(torch.randn(5, size)).numel() > 0, size
