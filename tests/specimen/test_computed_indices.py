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
        (lambda self, x, ids: 6 // (ids + 1), False),
        # values of a pair, rather than the places that it chose
        (lambda self, x, ids: x.long().max(-1).values, True),
        (lambda self, x, ids: x.long().sort(-1).values[:, 0], True),
        (lambda self, x, ids: x.long().max(-1).values.clamp(0, 4), False),
        (lambda self, x, ids: x[:, :4].long().max(-1).indices, False),
        # bounds that the arithmetic after them loses
        (lambda self, x, ids: (1 / x[:, 0].clamp(0, 1)).long(), True),
        (lambda self, x, ids: (x[:, 0].clamp(0, 1) / x[:, 1].clamp(0, 1)).long(), True),
        (lambda self, x, ids: x[:, 0].clamp(0, 1).log().long(), True),
        (lambda self, x, ids: (x[:, 0].clamp(0, 1) ** -2).long(), True),
        (lambda self, x, ids: (x[:, 0].abs() * x[:, 1]).long().clamp(max=4), True),
        # which side is bounded
        (lambda self, x, ids: (-x[:, 0].relu()).clamp(max=4).long(), True),
        (lambda self, x, ids: (-x[:, 0].relu()).clamp(min=-4).long(), False),
        (lambda self, x, ids: (x[:, 0].relu() * -2).clamp(max=4).long(), True),
        (lambda self, x, ids: (x[:, 0].relu() * 2 / 3).clamp(max=4).long(), False),
        (lambda self, x, ids: (5 - x[:, 0].abs().long()).clamp(max=4), True),
        (lambda self, x, ids: (5 - x[:, 0].abs().long()).clamp(min=0), False),
        (lambda self, x, ids: (ids - x[:, 0].abs().long()).clamp(max=4), True),
        (lambda self, x, ids: (ids - x[:, 0].abs().long()).clamp(min=0), False),
        (lambda self, x, ids: x[:, 0].clamp(min=0).abs().clamp(max=4).long(), False),
        (lambda self, x, ids: torch.minimum(x[:, 0].relu(), x[:, 1]).long(), True),
        (lambda self, x, ids: torch.minimum(x[:, 0].relu(), self.places[1]).long(), False),
        # operators that bound by themselves
        (lambda self, x, ids: (x[:, 0].sigmoid() * 4).long(), False),
        (lambda self, x, ids: (x[:, 0].tanh() * 2 + 2).long(), False),
        (lambda self, x, ids: x[:, 0].long() & 3, False),
        (lambda self, x, ids: x[:, 0].long() & -2, True),
        (lambda self, x, ids: torch.fmod(x[:, 0], 4).long(), False),
        (lambda self, x, ids: torch.fmod(x[:, 0], x[:, 1]).long(), True),
        (lambda self, x, ids: torch.zeros_like(x[:, 0]).long(), False),
        (lambda self, x, ids: (x[:, 0] * 1j).real.long(), True),
    ],
)
def test_an_index_that_floats_decide_and_nothing_bounds_is_found(index, found):
    exported = capture(Reads(index), (torch.rand(4, 6), torch.tensor([0, 1, 2, 3])))
    assert computed_indices.unbounded(exported) == found


class Writes(torch.nn.Module):
    def __init__(self, write):
        super().__init__()
        self.write = write
        self.register_buffer("counts", torch.zeros(5, dtype=torch.int64))

    def forward(self, x, ids):
        return self.write(self.counts.clone(), x[:, 0].long(), ids) * 2


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (lambda counts, computed, ids: counts.index_put((ids,), computed), False),
        (lambda counts, computed, ids: counts.index_put((computed,), ids), True),
        (lambda counts, computed, ids: counts.scatter(0, ids, computed), False),
        (lambda counts, computed, ids: counts.scatter(0, computed, ids), True),
        (lambda counts, computed, ids: counts.scatter_add(0, ids, computed), False),
        (lambda counts, computed, ids: counts.index_add(0, ids, computed), False),
        (lambda counts, computed, ids: counts.index_add(0, computed, ids), True),
    ],
)
def test_integers_that_are_written_are_no_indices(write, found):
    exported = capture(Writes(write), (torch.rand(4, 6), torch.tensor([0, 1, 2, 3])))
    assert computed_indices.unbounded(exported) == found
