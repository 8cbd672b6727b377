"""Texts of what kernels and the host make of numbers alone, of views without dimensions, and of sizes of what nothing else reads."""

from __future__ import annotations

import pytest
import torch

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


def zeroed(x, y):
    first = y.long()[:1] * 2
    first.select(0, 0).zero_()
    return torch.bitwise_left_shift(first, 2).double()


@pytest.mark.parametrize(
    ("forward", "texts"),
    [
        (zeroed, ["tl.full((), 0 << 2, tl.float64)"]),
        (lambda x, y: (x * 2, -y.shape[0] % 3), ["def module(x, y)", "-y.shape[0]"]),
        (lambda x, y: (x * 2).sum().expand_as(y.sum()), [".expand(())"]),
    ],
)
def test_the_text_names_what_there_is(forward, texts):
    class Module(torch.nn.Module):
        def forward(self, x, y):
            return forward(x, y)

    module = Module()
    exported = capture(module, (torch.randn(3, 4), torch.randn(5, 2)))
    source = synthesize(module, exported, class_name="Module", import_from="modules")[0].source
    assert all(text in source for text in texts), source
