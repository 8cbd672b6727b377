from __future__ import annotations

import copy

import torch
from torch import nn

from kernel_lsp.validation import copies


def test_a_copy_has_tensors_of_its_own_that_are_as_often_changed() -> None:
    first = nn.BatchNorm1d(3)
    first.load_state_dict(first.state_dict())
    other = copy.deepcopy(first)
    copies.give(other, first, {"weight": torch.full((3,), 7.0)})
    assert other.weight.tolist() == [7.0] * 3 and first.weight.tolist() == [1.0] * 3
    for (_, mine), (_, theirs) in zip(other.state_dict().items(), first.state_dict().items(), strict=True):
        assert mine.data_ptr() != theirs.data_ptr()
    assert other.weight._version == first.weight._version > 0


def test_a_copy_keeps_what_is_shared() -> None:
    first = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    first[1].weight = first[0].weight
    other = copy.deepcopy(first)
    copies.give(other, first, first.state_dict())
    assert other[1].weight is other[0].weight is not first[0].weight
