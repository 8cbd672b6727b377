"""When a product's kernel reduces its rows or columns, with which tiles, and what is offered beside that."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.kernel.execution_plan import Hints, Kernel
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.extents import exchanged
from kernel_lsp.synthesis.schedule.folding import folded_side, length_of_windows, lines_of_result
from kernel_lsp.synthesis.schedule.schedules import Product
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target

H200 = target("H200")


class Then(nn.Module):
    """A layer, then a function of its result."""

    def __init__(self, layer: nn.Module, after: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.layer, self.after = layer, after

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.layer(x))


def over_channels(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=1)


def products(
    layer: nn.Module, shape: tuple[int, ...], after: Callable[[torch.Tensor], torch.Tensor], *, halves: bool = True
) -> tuple[list[Kernel], Hints]:
    """The kernels of the products, without those that seldom run."""
    found, hints = planned(layer, shape, after, halves=halves)
    return [k for k in found if k.contract is not None and not k.exact], hints


def planned(
    layer: nn.Module, shape: tuple[int, ...], after: Callable[[torch.Tensor], torch.Tensor], *, halves: bool = True
) -> tuple[list[Kernel], Hints]:
    """All kernels."""
    exported = capture(Then(layer, after).to("meta").eval(), (torch.empty(shape, device="meta"),))
    found = stages.planned(stages.lowered(exported, on=H200, halves=halves))
    return found.kernels, found.hints


@pytest.mark.parametrize(
    ("layer", "shape", "columns"),
    [
        (nn.ConvTranspose2d(64, 128, 4, 2, 1, 1), (128, 64, 64, 64), 128),
        (nn.ConvTranspose3d(32, 24, 3, 2, 1, 1), (16, 32, 16, 32, 32), 32),
        (nn.Conv2d(16, 200, 3), (64, 16, 64, 64), 256),
    ],
)
def test_each_tile_has_all_channels_and_no_more_than_registers_hold(
    layer: nn.Module, shape: tuple[int, ...], columns: int
) -> None:
    (kernel,), hints = products(layer, shape, over_channels)
    tiles = space(kernel, H200, hints)
    assert folded_side(kernel) == "N" and len(set(tiles)) == len(tiles) > 1
    for tile in tiles:
        assert isinstance(tile, Product) and tile.n == columns
        assert tile.m * tile.n * (1 + tile.joined) <= 256 * 32 * tile.warps


def test_what_is_stored_counts_for_the_estimate() -> None:
    (kernel,), hints = products(nn.Conv2d(16, 64, 3), (128, 16, 256, 256), lambda x: x.amin(1))
    tile = space(kernel, H200, hints)[0]
    places = 128 * 254 * 254
    stored = cost(dataclasses.replace(kernel, folds=[]), tile, H200, hints, stored=places * 64 * 4).bytes
    assert stored - cost(kernel, tile, H200, hints).bytes == places * 63 * 4


@pytest.mark.parametrize(
    ("layer", "shape", "after"),
    [
        (nn.Conv2d(16, 300, 3), (64, 16, 64, 64), over_channels),  # no tile has 300 channels
        (nn.Conv2d(16, 24, 3), (64, 16, 64, 64), lambda x: x.softmax(-1)),  # a part of the rows
        (nn.Linear(65536, 256), (256, 65536), over_channels),  # four tiles would take a long sum each
    ],
)
def test_other_reductions_have_kernels_of_their_own(
    layer: nn.Module, shape: tuple[int, ...], after: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    found, _ = products(layer, shape, after)
    assert found and not any(kernel.folds for kernel in found)


@pytest.mark.parametrize(
    ("layer", "shape", "after", "length"),
    [
        (nn.Conv2d(16, 24, 3), (64, 16, 64, 64), lambda x: F.max_pool2d(x.relu(), 2), 4),
        (nn.Conv2d(16, 24, 3), (64, 16, 64, 64), lambda x: F.avg_pool2d(x.tanh(), (2, 4)), 8),
        (nn.Conv3d(16, 24, 3), (16, 16, 16, 64, 64), lambda x: F.max_pool3d(x, 2) + 1.0, 8),
        (nn.Conv1d(16, 24, 3), (64, 16, 4096), lambda x: F.max_pool1d(x, 16, 20), 16),
    ],
)
def test_tiles_have_whole_windows(
    layer: nn.Module, shape: tuple[int, ...], after: Callable[[torch.Tensor], torch.Tensor], length: int
) -> None:
    (kernel,), hints = products(layer, shape, after)
    assert folded_side(kernel) == "M" and length_of_windows(kernel) == length
    tiles = space(kernel, H200, hints)
    assert tiles and all(isinstance(tile, Product) and tile.m % length == 0 and not tile.joined for tile in tiles)


@pytest.mark.parametrize(
    "after",
    [
        lambda x: F.max_pool2d(x, 3),  # nine elements
        lambda x: F.max_pool2d(x, 2, 1),  # windows that overlap would be computed twice
        lambda x: F.max_pool2d(x, 2, 2, 1),  # beyond the edge there are no pixels
        lambda x: F.max_pool2d(x, 2, ceil_mode=True),
        lambda x: F.max_pool2d(x, 16),  # 256 elements
        lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
    ],
)
def test_other_windows_are_pooled_apart(after: Callable[[torch.Tensor], torch.Tensor]) -> None:
    found, _ = products(nn.Conv2d(16, 24, 3), (64, 16, 65, 65), after)
    assert found and not any(kernel.folds for kernel in found)


def norm(width: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """A layer norm over the last dimension."""
    return lambda x: F.layer_norm(x, (width,))


@pytest.mark.parametrize(
    ("layer", "shape", "width"),
    [
        (nn.Conv2d(16, 24, 3, 1, 1), (64, 16, 64, 64), 64),
        (nn.Conv2d(16, 200, 3, 1, 1), (64, 16, 64, 64), 64),
        (nn.Conv1d(16, 64, 3, 1, 1), (4096, 16, 256), 256),
        (nn.Conv2d(3, 24, 3, 1, 1), (64, 3, 64, 128), 128),
    ],
)
def test_tiles_have_whole_lines(layer: nn.Module, shape: tuple[int, ...], width: int) -> None:
    (kernel,), hints = products(layer, shape, norm(width))
    lines = lines_of_result(kernel)
    assert lines is not None and (lines.side, lines.length, lines.pair) == ("M", width, None)
    assert not length_of_windows(kernel)
    tiles = space(kernel, H200, hints)
    assert tiles and len(set(tiles)) == len(tiles)
    for tile in tiles:
        assert isinstance(tile, Product) and not tile.joined and tile.m % width == 0
        assert tile.m * tile.n <= 128 * 32 * tile.warps


def test_lines_of_two_phases_are_in_joined_tiles() -> None:
    kernels, hints = planned(nn.ConvTranspose3d(32, 64, 4, 2, 1), (32, 32, 16, 32, 32), norm(64))
    plain, exact = (k for k in kernels if k.contract is not None)
    assert plain.folds and exact.folds and not plain.exact and exact.exact and len(kernels) == 4
    lines = lines_of_result(plain)
    assert lines is not None and lines.length == 64 and lines.pair is plain.domain.reduced[-1]
    tiles = space(plain, H200, hints)
    assert tiles and all(isinstance(tile, Product) and tile.joined and 2 * tile.m % 64 == 0 for tile in tiles)
    assert all(isinstance(tile, Product) and 2 * tile.m * tile.n <= 64 * 32 * tile.warps for tile in tiles)
    # What it stands for has channels as rows: its lines are lines of the product with its operands exchanged.
    assert lines_of_result(exact) is None and lines_of_result(exact, exchanged(exact.product)) is not None
    (tile,) = space(exact, H200, hints)
    assert isinstance(tile, Product) and tile.joined and tile.exchanged and 2 * tile.m % 64 == 0


def test_a_norm_is_in_the_kernel_and_what_pools_it_is_not() -> None:
    kernels, _ = planned(
        nn.ConvTranspose3d(32, 64, 3, 2, 1, 1),
        (32, 32, 16, 32, 32),
        lambda x: F.avg_pool3d(norm(64)(x), 2),
    )
    multiply = [k for k in kernels if k.contract is not None]
    assert all(len(k.folds) == 2 for k in multiply) and len(kernels) == 5


@pytest.mark.parametrize(
    ("layer", "shape", "after"),
    [
        (nn.Conv2d(16, 24, 3), (64, 16, 64, 66), lambda x: x.softmax(-1)),  # of any number
        (nn.Conv2d(16, 24, 3), (64, 16, 64, 50), norm(48)),  # no power of two
        (nn.Conv2d(16, 24, 3), (64, 16, 64, 514), norm(512)),  # more than a tile has
        (nn.Conv2d(16, 24, 3, 1, 1), (64, 16, 64, 64), lambda x: norm(64)(x.transpose(2, 3))),  # other lines
        (nn.ConvTranspose2d(32, 64, 4, 4), (64, 32, 16, 16), norm(64)),  # of four phases
        (nn.Linear(512, 4096), (4096, 512), lambda x: norm(64)(x.reshape(-1, 64, 64))),  # no convolution
    ],
)
def test_other_lines_have_kernels_of_their_own(
    layer: nn.Module, shape: tuple[int, ...], after: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    found, _ = products(layer, shape, after)
    assert found and not any(kernel.folds for kernel in found)


def test_a_product_that_is_stored_is_offered_behind() -> None:
    module = Then(nn.Conv2d(16, 24, 3), over_channels).eval()
    exported = capture(module, (torch.empty(32, 16, 128, 128, device="meta"),))
    found = synthesize(module, exported, class_name="Then", import_from="here", gpu="H200")
    folded = [stages.FOLDED in one.variant for one in found if "left to torch" not in one.variant]
    assert folded[0] and not all(folded)
