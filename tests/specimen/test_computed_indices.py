"""Indices that forward computes from floats, and which of them may be out of range."""

from __future__ import annotations

import pytest
import torch

from kernel_lsp.specimen import computed_indices
from kernel_lsp.synthesis.capture import capture


class Reads(torch.nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
        self.register_buffer("table", torch.randn(5, 3))
        self.register_buffer("places", torch.tensor([0.0, 3.0]))

    def forward(self, x, ids):
        return self.table[self.index(self, x, ids)] * 2


@pytest.mark.parametrize(
    ("index", "found"),
    [
        (lambda self, x, ids: x[:, 0].long(), True),
        (lambda self, x, ids: (x[:, 0] * 3).floor().to(torch.int64) + ids, True),
        (lambda self, x, ids: x[:, 0].clamp(min=0).long(), True),
        (lambda self, x, ids: (x[:, 0].clamp(min=0) + 1).long().clamp(max=4), False),
        (lambda self, x, ids: x[:, 0].clamp(0, 3).floor().long() + 1, False),
        (lambda self, x, ids: x[:, :4].argmax(-1), False),
        (lambda self, x, ids: x[:, :4].topk(2, -1).indices[:, 0], False),
        (lambda self, x, ids: (x[:, 0] > 0).long(), False),
        (lambda self, x, ids: x[:, 0].long() % 5, False),
        (lambda self, x, ids: self.places.long(), False),
        (lambda self, x, ids: ids, False),
    ],
)
def test_an_index_that_floats_decide_and_nothing_bounds_is_found(index, found):
    exported = capture(Reads(index), (torch.rand(4, 6), torch.tensor([0, 1, 2, 3])))
    assert computed_indices.unbounded(exported) == found
