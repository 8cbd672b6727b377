"""Sizes that a kernel needs several times have a name that says what they are; those that it needs once stand where they are needed."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.synthesis.schedule.test_tile_order import written


class Pooled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, 2)


class Averaged(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool1d(x, 3)


def test_a_sum_of_sizes_is_computed_once() -> None:
    text = written(nn.ConvTranspose2d(6, 8, 3, stride=2), torch.randn(2, 6, 5, 7))
    assert text.count("2 * width + 1") == text.count("2 * height + 1") == 1
    for name in ("out_width = 2 * width + 1", "out_height = 2 * height + 1", "phase_width = width + 1"):
        assert f"    {name}\n" in text


def test_a_sum_that_is_needed_once_has_no_name() -> None:
    class Padded(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.pad(x, (1, 1)) * 2.0

    text = written(Padded(), torch.randn(2, 3, 5, 7))
    assert "out_width" in text and "out_height" not in text


@pytest.mark.parametrize(
    ("module", "shape", "names"),
    [(Pooled(), (2, 3, 8, 10), ["half_width", "half_height"]), (Averaged(), (2, 3, 12), ["width_by_3"])],
)
def test_a_part_of_a_size_is_named_after_it(module: nn.Module, shape: tuple[int, ...], names: list[str]) -> None:
    text = written(module, torch.randn(shape))
    assert all(f"{name} = x.shape[" in text for name in names)


def test_as_many_elements_as_the_result_has() -> None:
    text = written(nn.GELU(), torch.randn(4, 30))
    assert re.search(r"n_elements = gelu\d*\.numel\(\)", text)
