"""The estimate: eager's time over that of the kernels."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.estimating.times import AHEAD, Work, seconds
from tests.estimating.asking import estimated

ROWS, WIDTH = 8192, 4096
WHOLE = ROWS * WIDTH * 4


class Chain(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, x):
        for i in range(self.count):
            x = torch.sin(x + float(i)) if i % 2 else torch.cos(x)
        return x


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


@pytest.mark.parametrize("count", [1, 4])
def test_a_chain_of_large_tensors_gains_what_it_saves_in_traffic(count: int) -> None:
    found = estimated(lambda: Chain(count), (ROWS, WIDTH))
    operators = count + count // 2
    assert (found.launches, found.bytes) == (operators, 2 * operators * WHOLE)
    assert (found.kernel_launches, found.kernel_bytes) == (1, 2 * WHOLE)
    assert found.speedup == pytest.approx(operators, rel=0.05)
    assert found.kernel == pytest.approx(2 * WHOLE / 3.35e12 * 1e6, rel=0.2), "what an H100's memory needs for it"


def test_a_norm_that_is_written_out_gains_about_three_times() -> None:
    found = estimated(RMSNorm, (ROWS, WIDTH))
    assert found.kernel_launches == 1
    assert 2.5 < found.speedup < 4.0  # measured on an H100: KernelBench's level 1 #36, 2.54
    assert found.launches >= 5


def test_a_slower_gpu_takes_longer_and_is_named() -> None:
    small, large = (estimated(RMSNorm, (ROWS, WIDTH), gpu=gpu) for gpu in ("L4", "H100"))
    assert (small.target, large.target) == ("L4", "H100")
    assert small.eager == pytest.approx(large.eager * 3.35 / 0.3, rel=0.1)


def test_sizes_that_no_memory_holds_are_no_matter() -> None:
    found = estimated(lambda: Chain(4), (1 << 20, 1 << 20))  # 4 TiB
    assert found.bytes == 2 * 6 * 4 << 40
    assert found.speedup == pytest.approx(6, rel=0.05)


class Nothing(nn.Module):
    """A result of a part of x that has no elements, and one of all of x."""

    def __init__(self, then):
        super().__init__()
        self.layer = nn.Linear(WIDTH, 64)
        self.then = then

    def forward(self, x):
        if self.then == "softmax":
            return torch.softmax(x[ROWS:] * 2.0, -1), torch.cos(x)
        if self.then == "product":
            return self.layer(x[ROWS:] * 2.0), torch.cos(x)
        return (x[:, WIDTH:] * 2.0).sum(0), torch.cos(x)


@pytest.mark.parametrize("then", ["softmax", "product", "sum"])
def test_results_without_elements_take_no_more_than_launches(then: str) -> None:
    found = estimated(lambda: Nothing(then), (ROWS, WIDTH))
    alone = estimated(lambda: Chain(1), (ROWS, WIDTH))
    assert found.eager == pytest.approx(alone.eager, rel=0.1) and found.kernel == pytest.approx(alone.kernel, rel=0.1)


def test_what_stays_with_torch_takes_as_long_as_in_eager() -> None:
    class Sorted(nn.Module):
        def forward(self, x):
            return torch.sort(x + 1.0, dim=-1)[0]

    found = estimated(Sorted, (ROWS, WIDTH))
    assert found.speedup == pytest.approx(1.0, abs=0.1)


def test_where_no_kernel_can_be_written_there_is_no_speedup_and_the_reason() -> None:
    class Sorted(nn.Module):
        def forward(self, x):
            return torch.sort(x, dim=-1)[0]

    found = estimated(Sorted, (ROWS, WIDTH))
    assert found.speedup is None and "sort" in found.missing
    assert found.launches > 0 and found.eager > 0


def test_the_host_is_hidden_as_long_as_it_is_ahead() -> None:
    many = [Work(10e-6, 1e-6)] * 5
    assert seconds(many) == pytest.approx(5e-6), "all five are queued while the GPU is still busy"
    late = [Work(10e-6, 1e-6)] * 100
    assert seconds(late) == pytest.approx(1000e-6 - AHEAD + 1e-6), "then the host is what takes time"


def test_a_product_whose_tiles_are_split_into_halves_takes_what_was_measured() -> None:
    found = estimated(lambda: nn.Linear(1024, 1024), (1024, 1024), gpu="H200")
    assert found.kernel_launches == 1
    assert found.kernel == pytest.approx(26.0, rel=0.2)  # "Small products" in docs/performance.md
