"""Convolutions of few channels: which have their windows split in the product's tiles, with which tiles, and what else is tried."""

from __future__ import annotations

from unittest import mock

import pytest
import torch
from torch import nn

from kernel_lsp.schema import MOST_TIMED, Candidate
from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.lowered import Graph
from kernel_lsp.synthesis.graph.value import Contract, Peak, Sample
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.passes.planes import MOST_RAISED
from kernel_lsp.synthesis.passes.windows_in_tiles import split_windows
from kernel_lsp.synthesis.schedule.target import target
from kernel_lsp.synthesis.schedule.window_tiles import window_tiles


def lowered(module: nn.Module, *shape: int) -> Graph:
    return lower(capture(module.eval(), (torch.randn(shape),)))


def product(graph: Graph) -> Contract:
    (op,) = (value.op for value in stages.topological(graph.outputs) if isinstance(value.op, Contract))
    return op


def test_the_input_is_read_as_it_lies_and_the_weight_has_a_raised_plane() -> None:
    graph = lowered(nn.Conv2d(3, 8, 3, padding=1), 2, 3, 9, 9)
    assert split_windows(graph, lambda op: True) == 1
    op = product(graph)
    assert op.raised and op.exact is not None and [type(peak.op) for peak in op.exact.peaks] == [Sample, Peak]
    image, weight = op.exact.peaks
    assert op.exact.most_of(image) == 65504.0 and op.exact.most_of(weight) == MOST_RAISED < 32


@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.Conv2d(16, 8, 3), (2, 16, 9, 9)),  # not few
        (nn.Conv2d(6, 8, 3, groups=2), (2, 6, 9, 9)),
        (nn.ConvTranspose2d(3, 8, 3), (2, 3, 9, 9)),
        (nn.ConvTranspose2d(3, 8, 3, stride=2), (2, 3, 9, 9)),
        (nn.Conv2d(3, 8, 1), (2, 3, 9, 9)),  # sums shorter than a step
        (nn.Conv2d(3, 8, 3).double(), (2, 3, 9, 9)),
        (nn.Linear(3, 8), (4, 3)),
    ],
)
def test_others_are_left(module: nn.Module, shape: tuple[int, ...]) -> None:
    dtype = next(module.parameters()).dtype
    assert split_windows(lower(capture(module.eval(), (torch.randn(shape, dtype=dtype),))), lambda op: True) == 0


@pytest.mark.parametrize("columns", [1, 8, 24, 33, 64, 96, 256])
@pytest.mark.parametrize("summed", [16, 27, 81, 363, 2000])
def test_tiles_fit_into_shared_memory_and_begin_long_sums_again(columns: int, summed: int) -> None:
    for tile in window_tiles(columns, summed):
        # four bytes of each element of the windows, three planes of the weight
        assert tile.stages * tile.k * (4 * tile.m + 6 * tile.n) <= target("H100").shared_memory
        assert tile.together and bool(tile.restart) == (summed > 512)
        assert tile.m * tile.n // (32 * tile.warps) <= 128  # sums of a thread


def candidates() -> list[Candidate]:
    module = nn.Conv3d(3, 64, 3).eval()
    exported = capture(module, (torch.randn(16, 3, 16, 64, 64),))
    with mock.patch.object(stages, "tf32_convolutions", lambda: True):
        return synthesize(module, exported, class_name="Conv", import_from="here", gpu="H100")


def test_what_is_measured_decides_whether_planes_are_written_before() -> None:
    words = [one.arithmetic for one in candidates()]
    windows, written = (words.index(one) for one in (stages.WINDOWS, "convolutions of float16 planes"))
    assert windows < written
    exact = [one for one in candidates() if one.arithmetic in (stages.WINDOWS, "convolutions of float16 planes")]
    assert len(exact) <= MOST_TIMED  # those that round are refused where torch does not
