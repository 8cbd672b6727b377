"""What is computed of elements that a mask selects is computed of all, and equal to eager's, whatever the mask selects."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture

Forward = Callable[..., Any]


class Module(nn.Module):
    def __init__(self, of: Forward) -> None:
        super().__init__()
        self.of = of
        self.register_buffer("seen", torch.ones(6))

    def forward(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> Any:
        return self.of(self, x, y, mask)


def assigning(change: Callable[..., Any]) -> Forward:
    """A forward that returns a copy of ``x`` after ``change``."""

    def forward(self: Any, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        copied = x.clone()
        change(copied, y, mask)
        return copied

    return forward


def _selected(x: Any, y: Any, mask: Any) -> None:
    x[mask] = y[mask]


def _function(x: Any, y: Any, mask: Any) -> None:
    x[mask] = torch.where(y[mask] > 0, y[mask].sqrt(), 1.0 / y[mask]).clamp(max=3.0)


def _added(x: Any, y: Any, mask: Any) -> None:
    x[mask] += y[mask]
    x[mask] *= 3
    x[mask] -= torch.tensor(0.5)


def _row(x: Any, y: Any, mask: Any) -> None:
    rows = mask[:, 0]
    x[rows] = y[0]
    x[rows] += y[1:2]
    x[rows] += y[rows]


def _columns(x: Any, y: Any, mask: Any) -> None:
    x[:, mask[0]] = y[:, mask[0]].exp() + y[:, :1]


def _parts(x: Any, y: Any, mask: Any) -> None:
    rows = mask[:, 0]
    x[:, 0][rows] = y[rows][:, 1] - y[rows][:, -1]
    x[:, 1:3][rows] = y[rows][:, 2:4] * y[rows][:, 2].unsqueeze(-1)


def _accumulated(x: Any, y: Any, mask: Any) -> None:
    x.index_put_((mask,), y[mask], accumulate=True)


def _written_twice(x: Any, y: Any, mask: Any) -> None:
    x[y > 0] += y[y > 0]


WHOLE = [_selected, _function, _added, _row, _columns, _parts, _accumulated, _written_twice]


def masks() -> list[torch.Tensor]:
    """For x [5, 6]: some elements, none, all."""
    torch.manual_seed(0)
    return [torch.rand(5, 6) > 0.5, torch.zeros(5, 6, dtype=torch.bool), torch.ones(5, 6, dtype=torch.bool)]


def operators(exported: Any) -> list[str]:
    return [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("change", WHOLE, ids=lambda change: change.__name__.strip("_"))
def test_it_is_right_for_every_mask(change: Callable[..., Any]) -> None:
    module = Module(assigning(change))
    x, y = torch.randn(5, 6), torch.randn(5, 6)
    exported = capture(module, (x, y, masks()[0]))
    assert "aten.index.Tensor" not in operators(exported) and "aten.where.self" in operators(exported)
    assert not any("assert" in name or "sym_" in name for name in operators(exported))
    assert not any(str(symbol).startswith("u") for symbol in exported.range_constraints)
    for mask in masks():
        assert torch.equal(exported.module()(x, y, mask), module(x, y, mask))


def test_what_is_not_selected_goes_nowhere() -> None:
    module = Module(assigning(_function))
    x, y = torch.randn(5, 6), torch.randn(5, 6)
    exported = capture(module, (x, y, masks()[0])).module()
    for mask in masks():
        for number in (float("nan"), float("inf"), 0.0):
            y_there, x_there = torch.where(mask, y, number), torch.where(mask, number, x)
            assert torch.equal(exported(x, y_there, mask), module(x, y_there, mask))
            assert torch.equal(exported(x_there, y, mask), module(x_there, y, mask))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.float16, torch.float64])
def test_the_dtype_of_what_is_changed_stays(dtype: torch.dtype) -> None:
    def forward(self: Any, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        there = (x > 0).to(dtype)
        there[mask] = (y[mask] * 3).to(dtype)
        there[mask] *= True
        return there

    module = Module(forward)
    x, y = torch.randn(5, 6), torch.randn(5, 6)
    exported = capture(module, (x, y, masks()[0]))
    for mask in masks():
        expected, found = module(x, y, mask), exported.module()(x, y, mask)
        assert found.dtype == dtype and torch.equal(found, expected)


def test_whole_numbers_are_not_divided_where_the_mask_leaves_zeros_out() -> None:
    def divided(self: Any, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        there, by = (x * 8).int(), mask.int()
        there[mask] //= by[mask]
        return there

    def halved(self: Any, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        there = (x * 8).int()
        there[mask] //= 2
        return there

    given = torch.randn(5, 6), torch.randn(5, 6), masks()[0]
    for forward, stays in ((divided, True), (halved, False)):
        module = Module(forward)
        exported = capture(module, given)
        assert ("aten.index.Tensor" in operators(exported)) == stays
        assert torch.equal(exported.module()(*given), module(*given))


def test_a_buffer_of_a_fixed_size_is_changed() -> None:
    def forward(self: Any, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        columns = mask.any(0)
        self.seen[columns] += x.sum(0)[columns]
        return x * self.seen

    module, given = Module(forward), (torch.randn(5, 6), torch.randn(5, 6), masks()[0])
    exported = capture(module, given)
    assert "aten.index.Tensor" not in operators(exported)
    assert not any("assert" in name for name in operators(exported))
    eager, mine = copy.deepcopy(module), exported.module()  # which changes the module's own buffer
    for _ in range(2):
        assert torch.equal(mine(*given), eager(*given)) and torch.equal(mine.seen, eager.seen)
    assert not torch.equal(eager.seen, torch.ones(6))


REFUSED: dict[str, Forward] = {
    "returned": lambda self, x, y, mask: x[mask] * 2,
    "reduced": lambda self, x, y, mask: (x[mask] ** 2).mean(),
    "counted": lambda self, x, y, mask: x / x[mask].shape[0],
    "another order": assigning(lambda x, y, mask: x.__setitem__(mask, y[mask].cumsum(0))),
    "another mask": assigning(lambda x, y, mask: x.__setitem__(mask, y[~mask])),
    "random": assigning(lambda x, y, mask: x.__setitem__(mask, torch.rand_like(y[mask]))),
    "selected again": assigning(lambda x, y, mask: x.__setitem__(mask, y[mask] + y[mask][y[mask] > 0].sum())),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_used_in_another_way_stays(name: str) -> None:
    given = torch.randn(5, 6), torch.randn(5, 6), torch.arange(30).view(5, 6) % 2 == 0
    module = Module(REFUSED[name])
    exported = capture(module, given)
    assert "aten.index.Tensor" in operators(exported)
    if name != "random":
        assert torch.equal(exported.module()(*given), module(*given))


def test_what_stays_does_not_keep_the_rest() -> None:
    def forward(self: Any, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> Any:
        there = x.clone()
        there[y > 0] += y[y > 0]
        return there, x[mask].mean()

    module, given = Module(forward), (torch.randn(5, 6), torch.randn(5, 6), masks()[0])
    exported = capture(module, given)
    assert operators(exported).count("aten.index.Tensor") == 1 and "aten.index_put.default" not in operators(exported)
    assert all(map(torch.equal, exported.module()(*given), module(*given)))


def test_elements_of_one_mask_stay_together_where_some_are_returned() -> None:
    def forward(self: Any, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> Any:
        there = x.clone()
        there[mask] = y[mask] * 2
        return there, x[mask] * 3

    module, given = Module(forward), (torch.randn(5, 6), torch.randn(5, 6), masks()[0])
    exported = capture(module, given)
    kept = {str(s) for s in exported.range_constraints}
    assert operators(exported).count("aten.index.Tensor") == 2 and any(name.startswith("u") for name in kept)
    assert all(map(torch.equal, exported.module()(*given), module(*given)))
