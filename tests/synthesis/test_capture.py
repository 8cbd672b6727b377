"""torch.export is asked with fewer dynamic sizes where it fails with all of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import Assigned, capture


class Pooled(nn.Module):
    """A view whose width depends on the pooled size: torch.export has to solve an equation, and cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)
        self.pool = nn.AvgPool2d(7)
        self.head = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.down(x))
        return self.head(x.view(x.size(0), -1))


def test_the_batch_stays_dynamic_where_the_other_sizes_cannot() -> None:
    exported = capture(Pooled(), (torch.randn(2, 3, 14, 14),))
    assert len(exported.range_constraints) == 1
    x = next(n for n in exported.graph.nodes if n.op == "placeholder" and n.name == "x").meta["val"]
    assert not isinstance(x.shape[0], int) and x.shape[2:] == (14, 14)


class Choosing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x


def test_what_depends_on_the_data_stays_an_error() -> None:
    with pytest.raises(Exception, match=r"(?i)data-dependent"):
        capture(Choosing(), (torch.randn(3, 4),))


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = torch.zeros(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.copy_(x)
        return self.seen + 1


def test_a_tensor_attribute_changed_in_place_is_named() -> None:
    module = Remembering()
    with pytest.raises(Assigned, match=r"self\.seen"):
        capture(module, (torch.ones(3),))
    assert module.seen.tolist() == [0, 0, 0]
