"""Indices that are counted from sizes: that they are inside of what they index is a condition of the kernel's class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


class Positions(nn.Module):
    """A table of 16 rows, indexed by ``how``."""

    def __init__(self, how: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.how = how
        self.table = nn.Parameter(torch.randn(16, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.how(self.table, torch.arange(x.shape[1], device=x.device))


HOWS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "embedding": (lambda table, at: F.embedding(at, table), ["x.shape[1] <= 16"]),
    "embedding of rows": (lambda table, at: F.embedding(at[None], table), ["x.shape[1] <= 16"]),
    "index": (lambda table, at: table[at], ["x.shape[1] <= 16"]),
    "from the second": (lambda table, at: table[at + 2], ["x.shape[1] <= 14"]),
    "from behind the start": (lambda table, at: table[at - 3], ["x.shape[1] <= 19"]),
    "from the end": (lambda table, at: table[-1 - at], ["x.shape[1] <= 16"]),
    "from the end, negated": (lambda table, at: table[-at], ["x.shape[1] <= 17"]),
    "one of them": (lambda table, at: table[torch.full((2, 1), at.shape[0] - 1)], ["x.shape[1] <= 16"]),
    "index_select": (lambda table, at: table.index_select(0, at), ["x.shape[1] <= 16"]),
    "gather": (lambda table, at: table.gather(0, at[:, None].expand(-1, 8)), ["x.shape[1] <= 16"]),
    "no more than there are": (lambda table, at: table[at.clamp(max=15)], []),
}


@pytest.mark.parametrize("name", HOWS)
def test_positions_beyond_a_table_are_outside_of_the_envelope(name: str) -> None:
    how, wanted = HOWS[name]
    module, x = Positions(how).eval(), torch.randn(2, 12, 8)
    text = synthesize(module, capture(module, (x,)), class_name="Positions", import_from=__name__)[0].source
    found = [line.strip().removeprefix("and ") for line in text.splitlines() if "x.shape[1] <=" in line]
    assert found == wanted


class Pair(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y[:, torch.arange(x.shape[1], device=x.device)] * x


def test_positions_of_one_tensor_in_another_are_compared() -> None:
    pair = torch.randn(2, 12), torch.randn(2, 13)
    text = synthesize(Pair(), capture(Pair(), pair), class_name="Pair", import_from=__name__)[0].source
    assert "x.shape[1] <= y.shape[1]" in text


class Listed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[[1, 3, 5]] + 1


def test_places_that_are_listed_are_inside() -> None:
    text = synthesize(Listed(), capture(Listed(), (torch.randn(7, 8),)), class_name="Listed", import_from=__name__)
    assert "x.shape[0] > 5" in text[0].source


PLACES: dict[str, Callable[..., torch.Tensor]] = {
    "argsort": lambda d: d.argsort(-1)[:, :4],
    "stable": lambda d: d.argsort(dim=-1, stable=True),
    "sort": lambda d: d.sort(dim=1, descending=True)[1],
    "topk": lambda d: d.topk(3)[1],
    "argmax": lambda d: d.argmax(-1, keepdim=True),
    "max": lambda d: d.max(1, keepdim=True)[1].int().long(),
}


class Chosen(nn.Module):
    """Rows of ``x`` at places that ``how`` finds in ``d``, which may have more."""

    def __init__(self, how: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.how = how

    def forward(self, d: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.gather(x, 1, self.how(d)) * 2.0


@pytest.mark.parametrize("name", PLACES)
def test_places_in_one_tensor_are_places_in_another_that_is_no_shorter(name: str) -> None:
    module, given = Chosen(PLACES[name]).eval(), (torch.randn(3, 10), torch.randn(3, 12))
    text = synthesize(module, capture(module, given), class_name="Chosen", import_from=__name__)[0].source
    assert "and d.shape[1] <= x.shape[1]" in text


def test_places_bound_the_dimension_by_the_rows_of_a_table() -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(8, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.table(x.argmax(-1)) * 2.0

    module, x = Small().eval(), torch.zeros(3, 9)
    found = synthesize(module, capture(module, (x[:, :7],)), class_name="Small", import_from=__name__)[0]
    assert "x.shape[1] <= 8" in found.source


def test_places_in_a_narrow_dtype_may_be_negative_and_are_not_bounded() -> None:
    how = lambda d: d.argmax(-1, keepdim=True).to(torch.int8).long()  # noqa: E731
    module, given = Picked(how).eval(), (torch.randn(3, 10), torch.randn(12, 5))
    text = synthesize(module, capture(module, given), class_name="Picked", import_from=__name__)[0].source
    assert "d.shape[1] <= x.shape[0]" not in text and "where(" in text.split("@triton.jit")[0]
    wide = Picked(lambda d: d.argmax(-1, keepdim=True)).eval()
    text = synthesize(wide, capture(wide, given), class_name="Picked", import_from=__name__)[0].source
    assert "d.shape[1] <= x.shape[0]" in text and "out = x[position] * 2.0" in text


class Picked(Chosen):
    """Whole rows, counted from the end where a place is negative."""

    def forward(self, d: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return x[self.how(d)] * 2.0
