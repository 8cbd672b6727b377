"""Numbers and flags in attributes: which of them a forward reads, what is tried in their place, and that they are put back."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.validation import changed_numbers
from kernel_lsp.validation.changed_numbers import Number


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.eps, self.unread, self.calls = 1e-5, 2.0, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x / (x.abs() + self.eps)


class Outer(nn.Module):
    offset = 3

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.flag, self.name, self.limit = Inner(), True, "outer", float("inf")

    @property
    def doubled(self) -> int:
        return 2 * self.offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x) + self.doubled
        return x.clamp(max=self.limit) if self.flag and self.name else x


def test_what_a_call_reads_that_can_be_assigned() -> None:
    module = Outer()
    with changed_numbers.reads(module) as found:
        module(torch.ones(2))
    assert set(found.values()) == {
        Number("inner", "eps", 1e-5, False),
        Number("inner", "calls", 0, False),
        Number("", "offset", 3, True),
        Number("", "flag", True, False),
    }
    assert "__getattribute__" not in vars(nn.Module)
    with changed_numbers.reads(module) as found:
        pass
    assert not found


@pytest.mark.parametrize(
    ("value", "others"),
    [(True, [False]), (4, [5, 8, 3]), (0, [1, -1]), (-1, [0, -2]), (2.0, [3.0, 2.25]), (0.5, [0.75]), (0.0, [0.25])],
)
def test_other_values_are_of_the_same_type(value: float, others: list[float]) -> None:
    found = changed_numbers.others(value)
    assert found == others and {type(one) for one in found} == {type(value)}


def test_a_value_is_assigned_and_that_of_the_class_comes_back() -> None:
    module = Outer()
    assert changed_numbers.assign(module, "inner", "eps", 0.5) and module.inner.eps == 0.5
    assert changed_numbers.assign(module, "", "offset", 7) and module.offset == 7
    assert changed_numbers.assign(module, "", "offset", None) and module.offset == 3
    assert "offset" not in vars(module)
    assert not changed_numbers.assign(module, "missing", "eps", 0.5)
