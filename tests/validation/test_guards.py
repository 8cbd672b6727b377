"""Poisoned memory shows what is not written, and changes nothing of what torch itself computes."""

from __future__ import annotations

import torch
from torch import nn

from kernel_lsp.validation.guards import Guards, Poisoned


class InPlaceOnAView(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 16)

    def forward(self, x):
        return torch.relu_(self.linear(x)[:, 1:]) * 2  # autograd cuts this gradient out of new memory by its offset


def gradients(guarding: bool) -> tuple[list[torch.Tensor], Guards]:
    torch.manual_seed(0)
    module, x, guards = InPlaceOnAView(), torch.randn(4, 3, 8, requires_grad=True), Guards()
    poisoned = Poisoned(guards)
    with torch.enable_grad(), poisoned:
        out = module(x)
        poisoned.guarding = guarding
        return list(torch.autograd.grad(out.sum(), [x, *module.parameters()])), guards


def test_a_backward_through_an_in_place_operation_on_a_view_is_torchs_own():
    torch.manual_seed(0)
    module, x = InPlaceOnAView(), torch.randn(4, 3, 8, requires_grad=True)
    expected = torch.autograd.grad(module(x).sum(), [x, *module.parameters()])
    found, guards = gradients(guarding=False)
    assert guards.damaged() == []
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_fresh_memory_of_a_backward_is_poisoned():
    class Unwritten(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return torch.empty_like(grad)

    x, poisoned = torch.ones(5, requires_grad=True), Poisoned(Guards())
    with torch.enable_grad(), poisoned:
        out = Unwritten.apply(x)
        poisoned.guarding = False
        (grad,) = torch.autograd.grad(out.sum(), x)
    assert bool(grad.isnan().all())


def test_fresh_memory_of_a_forward_is_poisoned_between_guards():
    guards = Guards()
    with Poisoned(guards):
        fresh, zeros = torch.empty(7), torch.zeros(3)
    assert bool(fresh.isnan().all()) and zeros.tolist() == [0.0] * 3
    assert len(guards.buffers) == 2 and guards.damaged() == []
    torch.as_strided(fresh, (1,), (1,), fresh.storage_offset() + 7).fill_(1.0)
    (said,) = guards.damaged()
    assert "past the end of a buffer of shape [7]" in said
