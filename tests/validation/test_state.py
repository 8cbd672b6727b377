"""Every call begins in one state: buffers, counters and tables are put back, whatever a forward does to them."""

from __future__ import annotations

import torch
from torch import nn

from kernel_lsp.validation import state
from kernel_lsp.validation.oracle import Oracle


class Changing(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("mean", torch.zeros(4), persistent=False)
        self.calls = 0
        self.seen: list[int] = []

    def forward(self, x):
        self.calls += 1
        self.seen.append(len(x))
        self.mean.mul_(0.9).add_(x.mean(0).to(self.mean), alpha=0.1)
        if not hasattr(self, "table"):
            self.table = torch.arange(4.0)
        return self.norm(x) * self.calls - self.mean + self.table


def test_a_module_is_put_back_and_what_it_changed_is_known():
    module, x = Changing(), torch.randn(5, 4)
    with state.unchanged(module) as before:
        module(x)
        after = state.changed(module, before)
    assert module.calls == 0 and module.seen == [] and not hasattr(module, "table")
    assert module.mean.tolist() == [0.0] * 4 and int(module.norm.num_batches_tracked) == 0
    assert after["calls"] == 1 and after["seen"] == [5] and not torch.equal(after["mean"], torch.zeros(4))
    assert {"norm.running_mean", "norm.num_batches_tracked", "table"} <= after.keys()


def test_the_oracle_answers_the_same_again_and_again():
    module, x = Changing().train(), torch.randn(5, 4)
    oracle = Oracle(module, [], training=True)
    first, second = (oracle.answer(((x,), {})) for _ in range(2))
    assert torch.equal(first.eager, second.eager) and torch.equal(first.exact, second.exact)
    torch.testing.assert_close(first.eager.double(), first.exact, rtol=1e-5, atol=1e-5)
    assert oracle.moving()["calls"] == 0 and first.after["calls"] == 1


def test_a_candidate_gets_back_only_what_it_has():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 7
            self.cache = torch.ones(2)

    other = Other()
    state.put_back(other, {"calls": 0, "norm.running_mean": torch.zeros(4)}, only_known=True)
    assert other.calls == 0 and other.cache.tolist() == [1.0, 1.0]


def test_a_kept_input_is_let_go_of_though_its_memory_holds_the_right_values():
    module, lent = nn.Module(), torch.zeros(4)
    module.before = lent
    state.put_back(module, {"before": torch.zeros(4)}, only_known=True, anew=True)
    lent.fill_(3.0)  # the next call's input in the same memory
    assert module.before.tolist() == [0.0] * 4


def test_a_buffer_that_was_written_to_where_gradients_are_required_can_be_copied_afterwards():
    module, x = Changing(), torch.randn(5, 4, requires_grad=True)
    with state.unchanged(module):
        module(x)
        assert module.mean.requires_grad
    assert module.mean.tolist() == [0.0] * 4
    assert Oracle(module, []).limits == []  # which has a copy of it in float64
