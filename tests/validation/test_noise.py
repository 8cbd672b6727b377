"""What rounding alone may do to an answer: enough for a true zero, nothing for a wrong kernel."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.validation import noise, rounding_bounds
from kernel_lsp.validation.compare import compare
from kernel_lsp.validation.oracle import Oracle


class MeanOfNorm(nn.Module):
    """KernelBench level 2 #23: the mean of normalised numbers is zero as long as the weights are equal."""

    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, x):
        return self.norm(x).mean((1, 2))


def verdicts(module: nn.Module, x: torch.Tensor, answer: torch.Tensor) -> tuple[bool, bool]:
    """Whether an answer passes without, and with what rounding may do."""
    oracle, tree = Oracle(module, []), ((x,), {})
    reference = oracle.answer(tree)
    floors, worst = rounding_bounds.bounds(oracle, tree, reference, False)
    plain = compare(answer, reference.eager, reference.exact)
    return plain.passed, compare(answer, reference.eager, reference.exact, floors=floors, eager_error=worst).passed


def test_a_true_zero_may_be_off_by_the_rounding_of_what_was_summed_and_no_more():
    torch.manual_seed(0)
    module, x = MeanOfNorm(), torch.randn(4, 8, 64)
    eager = module(x).detach()
    assert verdicts(module, x, eager + 2e-7) == (False, True)
    assert verdicts(module, x, eager + 1e-5) == (False, False)


def test_once_the_weights_differ_zeros_are_wrong():
    torch.manual_seed(0)
    module, x = MeanOfNorm(), torch.randn(4, 8, 64)
    with torch.no_grad():
        module.norm.weight.mul_(1 + 0.2 * torch.randn(8))
        module.norm.bias.add_(0.3 * torch.randn(8))
    assert verdicts(module, x, torch.zeros(4)) == (False, False)


def test_an_answer_without_cancellation_gains_next_to_nothing():
    class Softmax(nn.Module):
        def forward(self, x):
            return torch.softmax(x, -1)

    torch.manual_seed(0)
    x = torch.randn(6, 100)
    assert verdicts(Softmax(), x, torch.softmax(x, -1) * (1 + 5e-5)) == (False, False)


@pytest.mark.parametrize("function", [torch.round, torch.sign, lambda x: (x > 0.5).to(x.dtype)])
def test_where_a_module_jumps_nothing_is_allowed(function):
    class Jump(nn.Module):
        def forward(self, x):
            return function(x)

    x = torch.tensor([[0.5, 1.5, 0.25, 2.5]], dtype=torch.float64)
    module = Jump()
    (floor,) = noise.floors(module, ((x,), {}), [module(x)], [torch.float32])
    assert floor < 1e-5
