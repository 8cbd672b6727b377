"""Equal layers share one kernel; what would be hundreds of launches is left to torch."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from kernel_lsp.errors import NotWritable
from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.printing.sharing import form


def source(module: nn.Module, *inputs: torch.Tensor) -> str:
    return synthesize(module.eval(), capture(module, inputs), class_name="Net", import_from="net")[0].source


class Net(nn.Sequential):
    """Layers after each other, and two that differ in what they compute."""


def test_equal_layers_are_launches_of_one_kernel():
    layers = [nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU()) for _ in range(3)]
    text = source(Net(*layers, nn.Linear(32, 32)), torch.randn(8, 32))
    # The first norm, the product with GELU and the next norm, the one without a norm behind it, and the last product.
    assert text.count("@triton.jit") == 4
    assert text.startswith('"""Net as 4 Triton kernels in 5 launches')
    assert "2 launches, each of other tensors" in text


def test_sizes_are_arguments_of_the_shared_kernel():
    text = source(Net(nn.Linear(32, 128), nn.Linear(128, 256)), torch.randn(8, 32))
    assert text.count("@triton.jit") == 1
    launches = [line for line in text.splitlines() if "_kernel[" in line]
    assert "N=128, K=32" in launches[0] and "N=256, K=128" in launches[1]


def test_other_operations_other_forms():
    kernel = "def a_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    x = tl.load(x_ptr + n)\n    tl.store(out_ptr, tl.exp(x))"
    same = kernel.replace("x_ptr", "y_ptr").replace("a_kernel", "b_kernel").replace("x =", "q =").replace("(x)", "(q)")
    assert form(kernel) == form(same)
    for old, new in [("tl.exp", "tl.log"), ("out_ptr, tl", "x_ptr, tl"), (": tl.constexpr", ""), ("+ n", "- n")]:
        assert form(kernel) != form(kernel.replace(old, new))


class Joined(nn.Module):
    def forward(self, x):
        return torch.relu(torch.cat([x * i for i in range(40)], 1))


def test_a_concatenation_of_many_is_left_to_torch():
    text = source(Joined(), torch.randn(4, 8))
    compile(text, "joined.py", "exec")
    assert "torch.ops.aten.cat.default" in text


class Unrolled(nn.Module):
    """Steps with a number of their own, which are no recurrence."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps
        self.step = nn.Linear(8, 8)

    def forward(self, x):
        for i in range(self.steps):
            x = torch.tanh(self.step(x) * (1 + i / self.steps))
        return x


def test_an_unrolled_loop_of_many_kernels_is_left_to_torch(monkeypatch):
    """At a smaller limit than the synthesizer's: to plan as many kernels takes half a minute."""
    monkeypatch.setattr(stages, "_MOST_LAUNCHES", 32)
    with pytest.raises(NotWritable, match="one after the other"):
        source(Unrolled(40), torch.randn(2, 8))


@pytest.mark.slow
def test_an_unrolled_loop_that_is_too_deep_is_left_to_torch():
    """At a smaller limit than Python's, for the same reason."""
    modules = [Unrolled(steps).eval() for steps in (3, 240)]
    short, long = ((module, capture(module, (torch.randn(2, 8),))) for module in modules)
    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(450)
        assert synthesize(*short, class_name="Unrolled", import_from="net")
        with pytest.raises(NotWritable, match="one after the other"):
            synthesize(*long, class_name="Unrolled", import_from="net")
    finally:
        sys.setrecursionlimit(before)
