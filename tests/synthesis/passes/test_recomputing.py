"""Chains of steps that read neighbours: loads and time grow with the number of steps, not with a power of it."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn
from torch.nn import functional

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.kernel.execution_plan import Kernel
from kernel_lsp.synthesis.stages import lowered, planned


class _Heat(nn.Module):
    """Each step reads an element and its four neighbours."""

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            p = functional.pad(u[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
            u = u + 0.1 * (p[:, 2:, 1:-1] + p[:, :-2, 1:-1] + p[:, 1:-1, 2:] + p[:, 1:-1, :-2] - 4 * u)
        return u


class _Life(nn.Module):
    """Each step reads an element and its eight neighbours, around the ends."""

    def forward(self, b: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            near = [torch.roll(b, (i, j), (-2, -1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
            n = sum(near[1:], near[0])
            b = ((n == 3) | ((b == 1) & (n == 2))).to(torch.uint8)
        return b


class _Pair(nn.Module):
    """A single pair of neighbours, twice: to compute the first sum twice costs less than to store it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = x[:, 1:] + x[:, :-1]
        return x


def _kernels(module: nn.Module, x: torch.Tensor) -> list[Kernel]:
    found = planned(lowered(capture(module, (x,))))
    return [step for step in found.plan.steps if isinstance(step, Kernel)]


@pytest.mark.parametrize(
    ("module", "x", "most"),
    [(_Heat(), torch.rand(2, 10, 10), 21), (_Life(), torch.randint(0, 2, (2, 10, 12), dtype=torch.uint8), 25)],
)
def test_no_kernel_reads_what_several_steps_need(module: nn.Module, x: torch.Tensor, most: int) -> None:
    exported = capture(module, (x,))
    start = time.process_time()
    found = planned(lowered(exported))
    assert time.process_time() - start < 20
    kernels = [step for step in found.plan.steps if isinstance(step, Kernel)]
    assert 1 < len(kernels) <= 6
    assert max(len(kernel.accesses) for kernel in kernels) <= most


def test_few_neighbours_are_computed_again() -> None:
    assert len(_kernels(_Pair(), torch.rand(4, 50))) == 1


class _Correlation(nn.Module):
    """PWC-Net's: features are warped once, and each shift of them has a mean of its own."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        warped = functional.pad(functional.grid_sample(b, grid, align_corners=True), (1, 1, 1, 1))
        means = [(a * warped[:, :, i : i + 8, j : j + 10]).mean(1) for i in range(3) for j in range(2)]
        return torch.stack(means, 1)


class _Square(nn.Module):
    """A square costs less than to store it, in however many kernels."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        squared = functional.pad((b * b), (1, 1, 1, 1))
        means = [(a * squared[:, :, i : i + 8, j : j + 10]).mean(1) for i in range(3) for j in range(2)]
        return torch.stack(means, 1)


@pytest.mark.parametrize(("module", "reading"), [(_Correlation(), 1), (_Square(), 6)])
def test_what_costs_more_than_a_store_is_computed_in_one_kernel(module: nn.Module, reading: int) -> None:
    inputs = (torch.rand(1, 4, 8, 10), torch.rand(1, 4, 8, 10), torch.rand(1, 8, 10, 2))
    found = planned(lowered(capture(module, inputs)))
    kernels = [step for step in found.plan.steps if isinstance(step, Kernel)]
    features = found.graph.inputs[1]
    assert sum(features in kernel.leaves for kernel in kernels) == reading
