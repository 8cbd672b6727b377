"""Which reductions over a dimension that is not the last keep all rows of their columns, and which walk down them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.schedule.choices import ranked
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.schedules import Columns
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from tests.synthesis.schedule.test_space import kernels_of, meta

H100 = target("H100")


def rms_norm(self: Any, x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5)


def gated(self: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x + y, 1) * y


@pytest.mark.parametrize(
    ("rows", "width", "dtype", "first"),
    [
        (64, 65536, torch.float32, Columns(64, 64, 4, whole=True)),
        (3, 65536, torch.float32, Columns(4, 64, 4, whole=True)),
        (128, 65536, torch.float32, Columns(128, 64, 8, whole=True)),
        (200, 65536, torch.float32, Columns(256, 32, 8, whole=True)),
        (512, 65536, torch.float32, Columns(512, 16, 8, whole=True)),
        (1000, 65536, torch.float32, Columns(1024, 16, 8, whole=True)),
        (1025, 65536, torch.float32, Columns(64, 64, 4)),
        (512, 65536, torch.float16, Columns(512, 32, 8, whole=True)),
        (1000, 65536, torch.float16, Columns(64, 64, 4)),  # a row of 16 columns would be 32 bytes
        (1000, 4, torch.float32, Columns(1024, 4, 4, whole=True)),
    ],
)
def test_rows_of_a_middle_dimension_are_kept_where_they_fit(
    rows: int, width: int, dtype: torch.dtype, first: Columns
) -> None:
    (kernel,), hints = kernels_of(rms_norm, meta(112, rows, width, dtype=dtype))
    found = ranked(kernel, H100, hints)
    assert found[0] == first
    for one in found:
        assert isinstance(one, Columns)
        # Of all that a thread has 64 elements at the most, and of two bytes or four a row has two sectors where there are so many columns.
        assert not one.whole or one.rows * one.cols <= 64 * 32 * one.warps
        assert one.cols * dtype.itemsize >= min(64, width * dtype.itemsize)
    walks = [one for one in found if isinstance(one, Columns) and not one.whole]
    assert len(walks) == 1 if first.whole else walks == found
    once = cost(kernel, found[0], H100, hints).bytes
    assert cost(kernel, walks[0], H100, hints).bytes == (once * 3 / 2 if first.whole else once)
    if first.whole:  # the better one by the estimate, too
        assert found[-1] == walks[0]


def test_two_tiles_of_a_thread_count() -> None:
    x = meta(32, 1000, 4096)
    (kernel,), hints = kernels_of(gated, x, x.clone())
    assert space(kernel, H100, hints)[0] == Columns(64, 64, 4)
    x = meta(32, 256, 4096)
    (kernel,), hints = kernels_of(gated, x, x.clone())
    assert space(kernel, H100, hints)[0] == Columns(256, 32, 8, whole=True)


def test_what_is_read_once_anyway_bounds_no_number_of_rows() -> None:
    (kernel,), hints = kernels_of(lambda self, x: x.sum(1), meta(32, 64, 4096))
    assert all(isinstance(one, Columns) and not one.whole for one in space(kernel, H100, hints))


def test_the_envelope_bounds_rows_that_are_kept() -> None:
    module = type("Norm", (nn.Module,), {"forward": rms_norm})().eval()
    exported = capture(module, (meta(32, 64, 4096),))
    made = synthesize(module, exported, class_name="Norm", import_from="here", gpu="H100")
    whole, *_, walking = made
    assert "BLOCK_ROWS=triton.next_power_of_2(x.shape[1])" in whole.source and "x.shape[1] <= 512" in whole.source
    assert "rows at a time" in walking.variant and "x.shape[1] <=" not in walking.source
