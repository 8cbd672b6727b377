"""Which modules count as the same graph, whatever they and their parameters are called."""

from __future__ import annotations

import inspect
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kernel_lsp.envelope.identity import identified
from kernel_lsp.synthesis.capture import capture


class Norm(nn.Module):
    def __init__(self, width=32, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.unused = nn.Parameter(torch.ones(3))
        self.shift = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        gate = torch.sigmoid(x)
        return x * scale * self.weight + self.shift, gate


class AnotherName(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ParameterDict({"b": nn.Parameter(torch.zeros(32)), "a": nn.Parameter(torch.rand(32))})

    def forward(self, hidden_states):
        closed = torch.sigmoid(hidden_states)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + 1e-6)
        return hidden_states * self.inner["a"] + self.inner["b"], closed


class OtherOrderOfOutputs(AnotherName):
    def forward(self, x):
        return super().forward(x)[::-1]


class Minus(nn.Module):
    def __init__(self, first_minus_second):
        super().__init__()
        self.straight = first_minus_second

    def forward(self, a, b):
        return F.relu(a - b if self.straight else b - a)


X = torch.randn(5, 32)


def of(module, *inputs):
    return identified(capture(module, inputs or (X,)))[0]


def test_names_and_the_order_of_statements_do_not_matter():
    assert of(Norm()) == of(AnotherName()) == of(Norm(), torch.randn(9, 32))
    assert identified(capture(Norm(), (X,)))[1] == ["weight", "shift"]
    assert identified(capture(AnotherName(), (X,)))[1] == ["inner.a", "inner.b"]


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (Norm(eps=1e-5), (X,)),
        (Norm(16), (torch.randn(5, 16),)),
        (Norm().double(), (X.double(),)),
        (Norm(), (torch.randn(2, 5, 32),)),
        (OtherOrderOfOutputs(), (X,)),
    ],
    ids=["a constant", "a fixed size", "the dtype", "the number of dimensions", "the order of the outputs"],
)
def test_what_is_computed_matters(module, inputs):
    assert of(module, *inputs) != of(Norm())


def test_it_matters_which_input_is_which():
    y = torch.randn(5, 32)
    assert of(Minus(True), X, y) != of(Minus(False), X, y)
    assert of(Minus(True), X, y) == of(Minus(True), y, X)


def test_a_deep_network_is_no_recursion():
    deep = nn.Sequential(*[nn.ReLU() for _ in range(250)])
    exported, shorter = capture(deep, (X,)), capture(deep[:-1], (X,))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 120)
    try:
        assert identified(exported)[0] != identified(shorter)[0]
    finally:
        sys.setrecursionlimit(limit)


def test_it_is_the_same_with_tensors_that_have_no_memory():
    from kernel_lsp.specimen import faking

    mode = faking.mode()
    with faking.within(mode):
        module, x = Norm(), torch.randn(5, 32)
    assert identified(capture(module, (x,)))[0] == of(Norm())


def test_the_elements_of_a_tensor_that_forward_makes_matter():
    class Shifted(nn.Module):
        def __init__(self, by):
            super().__init__()
            self.by = by

        def forward(self, x):
            return x + torch.tensor(self.by)

    one, equal, other = (
        identified(capture(Shifted(by), (torch.randn(3, 2),)))[0] for by in ([1.0, 7.0], [1.0, 7.0], [1.0, 8.0])
    )
    assert one == equal != other
