"""Which tile a program of a product computes: without an order where there is nothing to order, and without masks that hold everywhere."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


def written(module: nn.Module, *inputs: torch.Tensor) -> str:
    exported = capture(module.eval(), inputs)
    return synthesize(module, exported, class_name=type(module).__name__, import_from="torch.nn")[0].source


def test_row_blocks_are_grouped_where_there_are_several_of_both() -> None:
    text = written(nn.Linear(64, 1000), torch.randn(500, 64))
    assert "group = tile // (GROUP * col_blocks)" in text and "GROUP=8" in text
    assert "Tile order: column by column within 8 row blocks." in " ".join(text.split())


def test_one_block_of_columns_needs_no_order() -> None:
    text = written(nn.Linear(64, 32), torch.randn(500, 64))
    assert "GROUP" not in text and "Tile order" not in text
    assert "row_block = tl.program_id(0)" in text and "cols = tl.arange(0, BLOCK_N)[None, :]" in text


@pytest.mark.parametrize(("channels", "masked"), [(16, False), (32, False), (24, True)])
def test_channels_that_fill_their_blocks_are_not_masked(channels: int, masked: bool) -> None:
    text = written(nn.Conv2d(5, channels, 3), torch.randn(2, 5, 12, 14))
    assert ("row_mask" in text) == masked


def test_the_tiles_of_a_batch_follow_each_other() -> None:
    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 64, 32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight

    text = written(Products(), torch.randn(6, 400, 64))
    assert "batch = tile // row_blocks" in text and "row_block = tile % row_blocks" in text


@pytest.mark.parametrize(("features", "order"), [(200, "row_block = tile // col_blocks"), (1000, "group = tile //")])
def test_a_few_blocks_of_columns_need_no_order(features: int, order: str) -> None:
    text = written(nn.Linear(64, features), torch.randn(500, 64))
    assert order in text and ("GROUP" in text) == (features == 1000)


def test_a_few_blocks_of_rows_come_before_the_next_columns() -> None:
    text = written(nn.Conv2d(32, 200, 3), torch.randn(4, 32, 12, 14))
    assert "row_block = tile % row_blocks" in text and "GROUP" not in text
