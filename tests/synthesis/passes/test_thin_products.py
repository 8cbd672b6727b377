"""Thin products: when the larger operand is split into planes in the product's tiles, and with which tiles."""

from __future__ import annotations

import math

import pytest
import torch

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.value import Contract, Peak, Sample
from kernel_lsp.synthesis.kernel.execution_plan import Planned
from kernel_lsp.synthesis.schedule.schedules import Product as Tile
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from tests.synthesis.passes.test_products import Product, planned, products

IN_TILES = ["float16 planes in tiles"]


def tiles(found: Planned) -> list[Tile]:
    (fast,) = (kernel for kernel in found.kernels if kernel.contract is not None and not kernel.exact)
    return [tile for tile in space(fast, target("H100"), found.hints) if isinstance(tile, Tile)]


@pytest.mark.parametrize(
    "left, right",
    [((128, 16384), (16384, 16384)), ((16384, 16384), (16384, 128)), ((16, 128, 4096), (16, 4096, 4096))],
)
def test_no_kernel_goes_over_the_larger_operand_before_the_product(
    left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    found = planned(Product(), torch.empty(left), torch.empty(right))
    assert found.rounded == IN_TILES
    splitting, fast, exact = found.kernels
    smaller = min(left, right, key=math.prod)
    assert tuple(n.subs(found.hints) for n in splitting.outputs[0].shape) == (2, *smaller)
    assert fast.outputs[:1] == exact.outputs and exact.exact
    (product,) = products(found)
    assert isinstance(product.op, Contract) and product.op.exact is not None
    assert [type(peak.op) for peak in product.op.exact.peaks] == [Sample, Peak]
    # tensor cores take the rows from registers, in which they are split
    assert tiles(found)[0].m == 128 and tiles(found)[0].n == 128


@pytest.mark.parametrize(
    "m, n, k, rounded", [(1024, 8192, 8192, ["float16 planes"]), (16, 8192, 8192, []), (128, 512, 512, [])]
)
def test_other_products_are_as_they_were(m: int, n: int, k: int, rounded: list[str]) -> None:
    assert planned(Product(), torch.empty(m, k), torch.empty(k, n)).rounded == rounded


def test_rows_that_are_no_multiple_of_16_bytes_are_not_split_in_tiles() -> None:
    assert planned(Product(), torch.empty(128, 16383), torch.empty(16383, 16384)).rounded == ["float16 planes"]


def test_of_a_long_sum_both_operands_are_split_in_the_tiles_of_its_parts() -> None:
    found = planned(Product(), torch.empty(256, 524288), torch.empty(524288, 256))
    assert found.rounded == IN_TILES
    (product,) = products(found)
    assert isinstance(product.op, Contract) and product.op.exact is not None
    assert [type(peak.op) for peak in product.op.exact.peaks] == [Sample, Sample]
    assert product.shape[0] == 32 and len(found.kernels) == 3  # the last one adds the parts up


@pytest.mark.parametrize("rows", [1, 16, 40, 64, 100, 128, 200, 256])
def test_tiles_fit_into_shared_memory_and_begin_their_sum_again_in_each_step(rows: int) -> None:
    found = planned(Product(), torch.empty(rows, 16384), torch.empty(16384, 16384))
    if found.rounded != IN_TILES:
        assert rows < 64
        return
    for tile in tiles(found):
        assert tile.together and tile.restart == tile.k
        assert tile.stages * tile.k * 4 * (tile.m + tile.n) <= target("H100").shared_memory
        assert tile.m * tile.n // (32 * tile.warps) <= 64  # results of a thread, which has them twice


def test_planes_of_both_operands_and_products_in_one_kernel_are_tried_later() -> None:
    module = Product()
    exported = capture(module, (torch.empty(128, 16384), torch.empty(16384, 16384)))
    found = synthesize(module, exported, class_name="Product", import_from="torch.nn", gpu="NVIDIA H200")
    assert list(dict.fromkeys(one.arithmetic for one in found)) == [
        *IN_TILES,
        "float16 planes",
        "float16 halves",
        "tf32x3",
        "bf16x6",
    ]
