"""A plan that does not hold together is refused, with the value where that shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.kernel.execution_plan import Kernel, Planned
from kernel_lsp.synthesis.kernel.verify import Malformed, verify
from kernel_lsp.synthesis.stages import lowered, planned


class Two(nn.Module):
    """A product that a softmax over its columns reads: two kernels, the second reads what the first stores."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(12, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).softmax(0)


def two() -> Planned:
    return planned(lowered(capture(Two().eval(), (torch.randn(6, 12),))))


def second(found: Planned) -> Kernel:
    assert len(found.kernels) == 2
    return found.kernels[1]


def test_what_is_planned_holds_together() -> None:
    found = two()
    verify(found.graph, found.plan)


def swapped(found: Planned) -> None:
    found.plan.steps.reverse()


def twice(found: Planned) -> None:
    found.plan.steps.append(found.plan.steps[0])


def missing(found: Planned) -> None:
    found.plan.steps.pop()


def of_fewer_dimensions(found: Planned) -> None:
    (value, index), *_ = second(found).stores
    second(found).stores = [(value, index[:-1])]


def by_an_unknown_atom(found: Planned) -> None:
    (value, index), *_ = second(found).stores
    second(found).stores = [(value, (sympy.Symbol("elsewhere"), *index[1:]))]


def beyond_the_end(found: Planned) -> None:
    (value, index), *_ = second(found).stores
    second(found).stores = [(value, (index[0] + 1, *index[1:]))]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (swapped, "read before it is stored"),
        (twice, "stored twice"),
        (missing, "no step stores it"),
        (of_fewer_dimensions, "1 indices for 2 dimensions"),
        (by_an_unknown_atom, "elsewhere is no atom"),
        (beyond_the_end, "outside of its"),
    ],
)
def test_a_spoilt_plan_is_refused(spoil: Callable[[Planned], None], why: str) -> None:
    found = two()
    spoil(found)
    with pytest.raises(Malformed, match=why):
        verify(found.graph, found.plan)


def test_what_a_product_multiplies_is_stored_before() -> None:
    layers = nn.Sequential(nn.Linear(12, 20), nn.LayerNorm(20), nn.Linear(20, 8)).eval()
    found = planned(lowered(capture(layers, (torch.randn(6, 12),))))
    verify(found.graph, found.plan)
    multiplied = [step for step in found.plan.steps if isinstance(step, Kernel) and step.contract is not None][-1]
    found.plan.steps.remove(multiplied)
    found.plan.steps.insert(0, multiplied)
    with pytest.raises(Malformed, match="read before it is stored"):
        verify(found.graph, found.plan)
