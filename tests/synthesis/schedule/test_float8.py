"""Schedules of float8 products: what tensor cores take, how thin ones lie, when their sums begin again, what they cost."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.kernel.execution_plan import Hints, Kernel
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.schedules import Product
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.targets import B200, H100, L4, RTX_4090

GPUS = (L4, RTX_4090, H100, B200)


class Scaled(nn.Module):
    def __init__(self, inputs: int, outputs: int, *, fast: bool = False, by_columns: bool = False) -> None:
        super().__init__()
        weight = torch.zeros(outputs, inputs).to(torch.float8_e4m3fn)
        self.register_buffer("weight", weight.t() if by_columns else weight)
        self.fast, self.by_columns = fast, by_columns

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        weight = self.weight if self.by_columns else self.weight.t()
        return torch._scaled_mm(x, weight, scale, scale, out_dtype=torch.bfloat16, use_fast_accum=self.fast)


class ByHand(Scaled):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float32) @ self.weight.to(torch.float32).t() * scale


def given(tokens: int, inputs: int) -> tuple[torch.Tensor, ...]:
    return torch.zeros(tokens, inputs).to(torch.float8_e4m3fn), torch.tensor(0.5)


def product_of(module: Scaled, inputs: tuple[torch.Tensor, ...], on: Any, parts: bool = True) -> tuple[Kernel, Hints]:
    found = stages.planned(stages.lowered(capture(module.eval(), inputs), on=on, parts=parts))
    return found.kernels[0], found.hints


@pytest.mark.parametrize("on", GPUS, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("kind", "tokens"),
    [*((Scaled, n) for n in (1, 4, 16, 33, 64)), *((ByHand, n) for n in (4, 16, 64))],  # of one row it is no product
)
def test_a_thin_product_has_the_outputs_as_rows(tokens: int, kind: type[Scaled], on: Any) -> None:
    kernel, hints = product_of(kind(1024, 2048), given(tokens, 1024), on)
    found = space(kernel, on, hints)
    assert len(found) >= 4
    for tile in found:
        assert isinstance(tile, Product) and tile.exchanged
        assert tile.m >= 64 and tile.n == max(16, 1 << (tokens - 1).bit_length()) and tile.k >= 128
        assert (tile.m + tile.n) * tile.k * tile.stages <= on.shared_memory


@pytest.mark.parametrize("on", GPUS, ids=lambda one: one.name)
@pytest.mark.parametrize(("tokens", "inputs", "outputs"), [(512, 4096, 4096), (2048, 512, 128), (128, 20, 160)])
def test_another_product_keeps_its_rows(tokens: int, inputs: int, outputs: int, on: Any) -> None:
    kernel, hints = product_of(Scaled(inputs, outputs), given(tokens, inputs), on)
    for tile in space(kernel, on, hints):
        assert isinstance(tile, Product) and not tile.exchanged
        assert tile.k >= 32 and min(tile.m, tile.n) >= 16


@pytest.mark.parametrize(
    ("module", "most"), [(Scaled(4096, 512), 128), (Scaled(4096, 512, fast=True), 0), (ByHand(4096, 512), 512)]
)
def test_sums_begin_again_as_often_as_their_error_asks_for(module: Scaled, most: int) -> None:
    kernel, hints = product_of(module, given(16, 4096), H100, parts=False)
    for tile in space(kernel, H100, hints):
        assert isinstance(tile, Product)
        assert 0 < tile.restart <= most if most else tile.restart == 0
        assert tile.restart <= tile.k or tile.restart % tile.k == 0


def test_float8_costs_a_byte_a_number() -> None:
    kernel, hints = product_of(Scaled(1024, 16384), given(16, 1024), H100)
    for tile in space(kernel, H100, hints):
        found = cost(kernel, tile, H100, hints)
        assert found.bytes == 16 * 1024 + 1024 * 16384 + 2 * 16 * 16384
        assert found.programs == 16384 // tile.m and found.shared == (tile.m + tile.n) * tile.k * tile.stages


def test_a_thin_product_is_offered_with_its_sum_in_parts_and_whole() -> None:
    module, inputs = Scaled(8192, 2048).eval(), given(16, 8192)
    made = synthesize(module, capture(module, inputs), class_name="Scaled", import_from="scaled")
    apart = [one for one in made if one.variant.startswith("sums in parts")]
    assert made[0] in apart and len(apart) < len(made)
    whole = [one for one in made if one not in apart]
    assert all("parts" in one.source for one in apart) and not any("parts" in one.source for one in whole)


def test_a_weight_by_columns_is_read_where_it_lies() -> None:
    module, inputs = Scaled(8192, 2048, by_columns=True).eval(), given(16, 8192)
    for one in synthesize(module, capture(module, inputs), class_name="Scaled", import_from="scaled"):
        assert ".contiguous()" not in one.source and "weight.stride(1)" in one.source
