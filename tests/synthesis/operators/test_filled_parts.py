"""Tensors that forward fills with numbers part by part, and that depend on no input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.build import NotLowered
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Concat, Pointwise, Value, operands
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.operators.filled_parts import blocks


class ShiftedWindows(nn.Module):
    """The regions of a Swin block in three dimensions: 27 slices, each written over what is there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        regions = torch.zeros((1, 4, 6, 4, 1))
        bounds = (slice(-2), slice(-2, -1), slice(-1, None))
        count = 0
        for d in bounds:
            for h in bounds:
                for w in bounds:
                    regions[:, d, h, w, :] = count
                    count += 1
        return x * regions


class OfTheInput(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        filled = torch.zeros_like(x)
        filled[:, 1:3] = 2.0
        filled[:, 2:] = x[:, 2:]
        return filled


def _lowered(module: nn.Module, x: torch.Tensor) -> list[Value]:
    return topological(lower(capture(module, (x,))).outputs)


def _elements(value: Value) -> np.ndarray:
    """What a concatenation of blocks holds."""
    if isinstance(value.op, Concat):
        return np.concatenate([_elements(piece) for piece in value.op.operands], value.op.dim)
    if isinstance(value.op, Pointwise):
        assert value.op.function == "constant"
        number = np.asarray(value.op.operands[0])
    else:
        number = _elements(operands(value)[0])
    return np.broadcast_to(number, tuple(map(int, value.shape)))


def test_regions_of_shifted_windows_are_one_block_each() -> None:
    values = _lowered(ShiftedWindows(), torch.randn(1, 4, 6, 4, 8))
    pieces = [one for value in values if isinstance(value.op, Concat) for one in value.op.operands]
    assert len([one for one in pieces if not isinstance(one.op, Concat)]) == 27
    regions = next(value for value in reversed(values) if isinstance(value.op, Concat))
    expected = ShiftedWindows()(torch.ones(1, 4, 6, 4, 1))
    assert torch.equal(torch.tensor(_elements(regions).copy()), expected)


def test_what_depends_on_an_input_is_written_step_by_step() -> None:
    values = _lowered(OfTheInput(), torch.randn(3, 6))
    assert any(value.op.operands[-1].shape != value.shape for value in values if isinstance(value.op, Concat))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool])
def test_blocks_hold_the_tensors_elements(dtype: torch.dtype) -> None:
    tensor = torch.zeros(4, 5, dtype=dtype)
    tensor[1:, 2:4] = 1
    tensor[2:, 3:] = 2
    held = torch.tensor(_elements(blocks(tensor)).copy())
    assert torch.equal(held.to(dtype), tensor) and blocks(tensor).dtype == dtype


def test_a_negative_zero_is_another_number_than_zero() -> None:
    tensor = torch.tensor([0.0, -0.0, float("nan"), float("nan")])
    assert np.array_equal(np.signbit(_elements(blocks(tensor))[:2]), [False, True])
    assert len(blocks(tensor).op.operands) == 3  # type: ignore[union-attr]


def test_many_numbers_are_no_blocks() -> None:
    with pytest.raises(NotLowered):
        blocks(torch.arange(100).reshape(10, 10))
