"""Elementwise kernels go by lines where they would take each element's offset apart by several sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from kernel_lsp.synthesis.kernel.execution_plan import hint
from kernel_lsp.synthesis.schedule.choices import ranked
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.extents import total
from kernel_lsp.synthesis.schedule.index_work import instructions
from kernel_lsp.synthesis.schedule.schedules import ByLines, Flat
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from tests.synthesis.schedule.test_space import kernels_of, meta

H100 = target("H100")


def cropped(self: Any, x: torch.Tensor) -> torch.Tensor:
    """What is stored of a transposed convolution's phases: one element less of each dimension."""
    return F.hardswish(x[:, :, :-1, :-1, :-1] * self.weight[:, None, None, None])


def test_a_large_crop_goes_by_lines() -> None:
    (kernel,), hints = kernels_of(cropped, meta(128, 16, 32, 64, 64), weight=meta(16))
    first, *others = found = space(kernel, H100, hints)
    # 63 of 64 elements of a line and 63 of 64 lines; image, channel and plane are those of the program
    assert first == ByLines(32, 64, 4, outer=3, inner=1)
    assert (
        Flat() in others and ranked(kernel, H100, hints)[0] == first and set(ranked(kernel, H100, hints)) == set(found)
    )
    lines, flat = (cost(kernel, schedule, H100, hints) for schedule in (first, Flat()))
    assert lines.bytes == flat.bytes and lines.programs == 128 * 16 * 31 * 2
    # Consecutive elements wait for divisions, lines for memory.
    bandwidth = lines.bytes / H100.bandwidth
    assert bandwidth <= lines.seconds < 1.05 * bandwidth < flat.seconds / 1.4


def test_a_small_one_keeps_consecutive_elements_first() -> None:
    (kernel,), hints = kernels_of(cropped, meta(2, 16, 8, 64, 64), weight=meta(16))
    first, second, *_ = space(kernel, H100, hints)
    assert isinstance(first, Flat) and isinstance(second, ByLines)


@pytest.mark.parametrize(
    ("forward", "shapes"),
    [
        (lambda self, x: torch.exp(x), [(64, 64, 64, 64)]),
        (lambda self, x: x[:, :, :, 1:] * 2.0, [(64, 64, 64, 64)]),  # one quotient and its remainder
        (lambda self, x: x[:, 1:] * 2.0, [(64, 64, 64, 64)]),
        (lambda self, x, y: x * y, [(64, 64, 64, 63), (64, 1, 1)]),
        (lambda self, x: x.roll(3, 1).view(64, -1, 63)[:, 1:, 1:] * 2.0, [(64, 63 * 65, 1)]),
        (lambda self, x: x[:, 1:, 1:, ::2] * 2.0, [(64, 64, 64, 64)]),  # neighbours of a line lie apart
    ],
)
def test_where_one_division_does_or_lines_do_not_fit_they_are_not_offered(
    forward: Callable[..., Any], shapes: list[tuple[int, ...]]
) -> None:
    (kernel,), hints = kernels_of(forward, *(meta(*shape) for shape in shapes))
    assert not any(isinstance(one, ByLines) for one in space(kernel, H100, hints))


@pytest.mark.parametrize(
    ("width", "cols"),
    [
        (63, 64),
        (64, 64),
        (48, 64),
        (40, 16),
        (300, 128),
        (513, 128),
        (1024, 1024),
        (1000, 1024),
        (2048, 1024),
        (1100, 256),
    ],
)
def test_blocks_of_a_line_are_nearly_full(width: int, cols: int) -> None:
    (kernel,), hints = kernels_of(lambda self, x: x[:, 1:, 1:, 1:] * 2.0, meta(64, 65, 65, width + 1))
    found = [one for one in space(kernel, H100, hints) if isinstance(one, ByLines)]
    assert {one.cols for one in found} == {cols} and all(one.rows * one.cols <= 512 * one.warps for one in found)


def test_dimensions_that_lie_alike_everywhere_are_one_line() -> None:
    (kernel,), hints = kernels_of(
        lambda self, x, y: x[:, 1:, 1:] * y[1:, :, :-1], meta(64, 65, 65, 8, 16), meta(65, 64, 65, 8, 16)
    )
    lines = next(one for one in space(kernel, H100, hints) if isinstance(one, ByLines))
    assert lines.inner == 3 and lines.cols == 1024
    assert [hint(kernel.domain.size[atom], hints) for atom in lines.parts(kernel.domain.kept)[2]] == [64, 8, 16]


@pytest.mark.parametrize("width", [12, 20])  # a warp would have several lines; no block of one line is nearly full
def test_short_lines_are_taken_together(width: int) -> None:
    (kernel,), hints = kernels_of(lambda self, x: x[:, 1:, 1:, :width] * 2.0, meta(64, 64, 64, 64))
    lines = next(one for one in space(kernel, H100, hints) if isinstance(one, ByLines))
    assert lines.inner == 2 and lines.cols >= H100.warp_size
    elements = hint(total(kernel.domain, kernel.domain.kept), hints)
    assert instructions(kernel, lines, H100, hints) < 0.7 * instructions(kernel, Flat(), H100, hints)
    assert instructions(kernel, lines, H100, hints) > 14 * elements  # of each element one division is left


def test_what_is_divided_in_an_offset_counts() -> None:
    """A transposed convolution whose stride and dilation are both even has results in every second place alone."""

    def spread(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.conv_transpose3d(x, self.weight, stride=2, padding=1, dilation=2)

    kernels, hints = kernels_of(spread, meta(16, 32, 16, 32, 32), weight=meta(32, 64, 3, 3, 3))
    found = space(kernels[-1], H100, hints)
    # planes of 65 x 65 elements, two at a time
    assert found[0] == ByLines(2, 1024, 4, outer=2, inner=2) and Flat() in found


def test_divisions_by_sizes_known_beforehand_count_less() -> None:
    def each(*fixed: int) -> float:
        given = {"weight": meta(*fixed)} if fixed else {}
        kind = (lambda self, x: x[:, 1:, 1:, 1:] + self.weight) if fixed else (lambda self, x: x[:, 1:, 1:, 1:] + 1.0)
        (kernel,), hints = kernels_of(kind, meta(64, 8, 33, 49), **given)
        elements = hint(total(kernel.domain, kernel.domain.kept), hints)
        return instructions(kernel, Flat(), H100, hints) / elements

    # a load, a store and a sum; four quotients and remainders of their own, and a remainder beside a quotient
    assert each() == 2 * 4 + 1 + 5 * 14 + 2
    # one load more, of which the remainder is one of its own; divisors of 7 * 32 * 48, 32 * 48 and 48
    assert each(7, 32, 48) < each()
