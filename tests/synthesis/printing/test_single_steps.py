"""A loop of exactly one step is not written; one whose steps depend on the launch is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.synthesis.printing.test_sharing import Net, source
from tests.synthesis.schedule.test_tile_order import written


def launches(text: str) -> list[str]:
    return [line for line in text.splitlines() if "_kernel[" in line]


def test_a_sum_of_one_step_is_one_product() -> None:
    text = written(nn.Linear(24, 40), torch.randn(50, 24))
    assert "for " not in text.split("class ")[0] and "ks = tl.arange(0, BLOCK_K)" in text
    assert "acc = tl.dot(input, weight, input_precision=PRECISION)" in text and "tl.zeros" not in text
    assert "num_stages" not in text


@pytest.mark.parametrize("features", [100, 1000])
def test_a_sum_of_several_steps_is_a_loop(features: int) -> None:
    text = written(nn.Linear(features, 40), torch.randn(50, features))
    assert "for start in range(0, K, BLOCK_K):" in text and "num_stages=" in text


def test_a_loop_stays_where_another_launch_of_the_kernel_needs_it() -> None:
    text = source(Net(nn.Linear(32, 128), nn.Linear(128, 256)), torch.randn(8, 32))
    assert text.count("@triton.jit") == 1 and "for start in range(0, K, BLOCK_K):" in text
    alike = source(Net(nn.Linear(32, 32), nn.Linear(32, 32)), torch.randn(8, 32))
    assert alike.count("@triton.jit") == 1 and "for start" not in alike and len(launches(alike)) == 2
