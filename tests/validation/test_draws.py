"""Modules that draw random numbers are held against float64 with the numbers that eager drew."""

from __future__ import annotations

import numpy
import pytest
import torch
from torch import nn

from kernel_lsp.validation import oracle, rounding_bounds


class FromADrawnState(nn.Module):
    """As in KernelBench level 3: the first state of a recurrence is drawn."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, 2, batch_first=True)

    def forward(self, x):
        first = torch.randn(2, x.shape[0], 16), torch.randn(2, x.shape[0], 16)
        return self.lstm(x, first)[0]


class Calls(nn.Module):
    """A forward that is a function."""

    def __init__(self, function):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))
        self.function = function

    def forward(self, x):
        return self.function(x * self.weight)


def answer(module, x, training=False):
    torch.manual_seed(0)
    held = oracle.Oracle(module.train(training), [], training=training)
    return held, held.answer(((x,), {}))


REPLAYED = {
    "randn": lambda x: x + torch.randn(8),
    "rand_like": lambda x: torch.where(torch.rand_like(x) < 0.3, x, -x),
    "uniform_": lambda x: x * torch.empty_like(x).uniform_(1, 2),
    "bernoulli": lambda x: x * torch.bernoulli(torch.sigmoid(x)),
    "randperm": lambda x: x[torch.randperm(x.shape[0])],
    "multinomial": lambda x: x[torch.multinomial(torch.ones(x.shape[0]), 3)],
    "dropout twice": lambda x: nn.functional.dropout(nn.functional.dropout(x, 0.2).sum(0), 0.5),
    "numpy beside torch": lambda x: x * float(numpy.random.rand()) + torch.randn_like(x),
    "attention without dropout": lambda x: nn.functional.scaled_dot_product_attention(x, x, x) + torch.rand(1),
}


@pytest.mark.parametrize("name", REPLAYED)
def test_float64_is_given_the_numbers_that_eager_drew(name):
    held, reference = answer(Calls(REPLAYED[name]), torch.randn(5, 8))
    assert reference.exact.dtype == torch.float64
    torch.testing.assert_close(reference.exact, reference.eager.double(), rtol=1e-5, atol=1e-5)
    assert not torch.equal(reference.exact, reference.eager.double())  # computed, not copied
    assert held.limits == []


def test_a_recurrence_from_a_drawn_state():
    held, reference = answer(FromADrawnState(), torch.randn(3, 7, 8))
    torch.testing.assert_close(reference.exact, reference.eager.double(), rtol=1e-5, atol=1e-5)
    assert held.limits == []


def test_dropout_and_running_statistics_in_training_mode():
    module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3), nn.BatchNorm1d(8))
    _, reference = answer(module, torch.randn(16, 8), training=True)
    torch.testing.assert_close(reference.exact, reference.eager.double(), rtol=1e-5, atol=1e-5)
    mean = reference.exact_after["2.running_mean"]
    torch.testing.assert_close(mean.float(), reference.after["2.running_mean"], rtol=1e-5, atol=1e-6)


def _more_for_float64(x):
    return x + torch.randn(8) + (torch.randn(8) if x.dtype == torch.float64 else 0)


def _less_for_float64(x):
    return x + torch.randn(8) + (0 if x.dtype == torch.float64 else torch.randn(8))


def _other_shape_for_float64(x):
    return x + torch.randn(1 if x.dtype == torch.float64 else 8)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch._standard_gamma(torch.ones(8)),
        _more_for_float64,
        _less_for_float64,
        _other_shape_for_float64,
        lambda x: x * (2 if x.dtype == torch.float64 else 1) + torch.randn(8),
    ],
    ids=["gamma", "more", "less", "other shape", "other numbers"],
)
def test_what_cannot_be_replayed_is_compared_with_eager_alone(function):
    held, reference = answer(Calls(function), torch.randn(5, 8))
    assert reference.exact is None
    assert held.limits == [oracle.RANDOM]


def test_rounding_is_looked_at_with_the_same_numbers():
    held, reference = answer(Calls(lambda x: (x + torch.randn(8)).sum(-1)), torch.randn(5, 8))
    floors, worst = rounding_bounds.bounds(held, ((torch.randn(5, 8),), {}), reference, False)
    assert 0 <= floors[0] < 1e-4 and 0 < worst < 1e-4
