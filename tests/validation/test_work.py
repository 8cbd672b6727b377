"""What a call costs by its operators, and a budget of such seconds."""

from __future__ import annotations

import time

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.validation import work


class _Noting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.work = work.Work()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.work.note(func, args, kwargs or {}, out)
        return out


def test_products_count_by_their_operations_and_views_not_by_their_elements() -> None:
    x, y = torch.ones(4, 8), torch.ones(8, 16)
    with _Noting() as noting:
        (x @ y).t() * 2
    assert noting.work == work.Work(operators=3, elements=128, operations=2 * 4 * 8 * 16, largest=64)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_more_work_takes_longer(device: str) -> None:
    less = work.Work(operators=10, elements=1 << 20, operations=1 << 30).seconds(device)
    assert less < work.Work(operators=11, elements=1 << 20, operations=1 << 30).seconds(device)
    assert less < work.Work(operators=10, elements=1 << 24, operations=1 << 30).seconds(device)
    assert less < work.Work(operators=10, elements=1 << 20, operations=1 << 34).seconds(device)


def test_a_budget_is_spent_by_work_and_not_by_the_clock() -> None:
    budget = work.Budget(0.1)
    with budget.spending(0.06):
        time.sleep(0.2)
    assert budget.has(0.04) and not budget.has(0.05) and not budget.has(0.02, 0.7)
    assert not budget.cut_short


def test_the_clock_ends_a_budget_only_far_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(work.time, "monotonic", lambda: now[0])
    budget = work.Budget(0.5)
    with budget.spending():
        now[0] += 10.0
    assert budget.has(0.1) and not budget.cut_short
    with budget.spending():
        now[0] += 10.0
    assert not budget.has(0.1) and budget.cut_short
