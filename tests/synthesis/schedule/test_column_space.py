"""Which reductions over a dimension that is not the last keep all rows of their columns, and which walk down them."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.schema import Candidate
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.schedule.choices import ranked
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.schedules import Columns, Schedule
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from tests.synthesis.schedule.test_space import kernels_of, meta

H100 = target("H100")


def rms_norm(self: Any, x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5)


def gated(self: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x + y, 1) * y


def without_beyond(schedule: Schedule) -> Schedule:
    assert isinstance(schedule, Columns)
    return dataclasses.replace(schedule, beyond=None)


@pytest.mark.parametrize(
    ("rows", "width", "dtype", "first"),
    [
        (64, 65536, torch.float32, Columns(64, 64, 4, whole=True)),
        (3, 65536, torch.float32, Columns(4, 512, 4, whole=True)),
        (3, 1024, torch.float32, Columns(4, 256, 2, whole=True)),  # so that there are two programs a multiprocessor
        (16, 65536, torch.float32, Columns(16, 256, 4, whole=True)),
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
    assert without_beyond(found[0]) == first
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
    assert without_beyond(space(kernel, H100, hints)[0]) == Columns(256, 32, 8, whole=True)


def test_what_is_read_once_anyway_bounds_no_number_of_rows() -> None:
    (kernel,), hints = kernels_of(lambda self, x: x.sum(1), meta(32, 64, 4096))
    assert all(isinstance(one, Columns) and not one.whole for one in space(kernel, H100, hints))


class Fixed(nn.Module):
    """A LayerNorm over the channels of an image, whose number the weight gives."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(self, x) * self.weight[:, None]


def proposed(module: nn.Module, x: torch.Tensor) -> list[Candidate]:
    exported = capture(module, (x,))
    return synthesize(module, exported, class_name=type(module).__name__, import_from="here", gpu="H100")


@pytest.fixture
def norm() -> nn.Module:
    return type("Norm", (nn.Module,), {"forward": rms_norm})().eval()


def test_beyond_what_fits_the_host_launches_the_loop(
    norm: nn.Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole, *_, walking = proposed(norm, meta(32, 64, 4096))
    assert "BLOCK_ROWS=triton.next_power_of_2(x.shape[1])" in whole.source
    for one in (whole, walking):  # no number of rows is eager's
        assert "x.shape[1] <" not in one.source.partition("def _in_envelope")[2]
    assert "rows at a time" in walking.variant and walking.source.count("@triton.jit") == 1
    monkeypatch.setitem(sys.modules, "here", types.SimpleNamespace(Norm=type(norm)))
    path = tmp_path / "norm_triton.py"
    path.write_text(whole.source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    file = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(file)
    launched: list[tuple[str, Any]] = []

    class Recorder:
        def __init__(self, name: str) -> None:
            self.name = name

        def __getitem__(self, grid: Any) -> Any:
            return lambda *_, **constants: launched.append((self.name, constants["BLOCK_ROWS"]))

    for name in ("norm_kernel", "norm_many_rows_kernel"):
        monkeypatch.setattr(file, name, Recorder(name))
    for rows in (1, 512, 513, 100_000):
        file.norm(torch.empty(1, rows, 2))
    assert launched == [("norm_kernel", n) for n in (1, 512)] + [("norm_many_rows_kernel", 64)] * 2


def test_a_number_of_rows_that_is_known_takes_one_kernel() -> None:
    source = proposed(Fixed(64).eval(), torch.randn(4, 64, 4096))[0].source
    assert source.count("@triton.jit") == 1 and "keeps their 64 rows in registers" in source


def test_a_number_of_rows_that_always_fits_takes_one_kernel() -> None:
    """A table that is cut to the number of rows has so many at the most."""

    class Placed(nn.Module):
        def __init__(self, most: int) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.ones(most, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return rms_norm(self, x) * self.table[: x.shape[1]]

    for most, kernels in ((512, 1), (513, 2)):
        source = proposed(Placed(most).eval(), torch.randn(32, 64, 4096))[0].source
        assert source.count("@triton.jit") == kernels and f"x.shape[1] <= {most}" in source
