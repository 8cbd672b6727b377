"""What the wire says of the example's arguments."""

from __future__ import annotations

import torch

from kernel_lsp.specimen import specs
from kernel_lsp.specimen.examples import Example


class Attends(torch.nn.Module):
    def forward(self, x, pair, causal=False, *more, scale=None, mode="sum", **options):
        return x


X = torch.ones(2)


def arguments(*args, **kwargs):
    return specs.other_arguments(Attends, Example((), {}, args, kwargs, ""))


def test_arguments_that_are_no_tensors_are_named_with_their_values():
    assert arguments(X, (X, 2)) == ["causal=False", "scale=None", "mode='sum'"]
    assert arguments(X, [1, 2], True, X, scale=X, mode="mean") == ["pair=[1, 2]", "causal=True", "mode='mean'"]
    assert arguments(X, X, True, 3, eps=1e-5)[1:2] == ["more=(3,)"]
    assert arguments(X, X, eps=1e-5)[-1] == "options={'eps': 1e-05}"
