"""Tensors with more elements than 32 bits can number."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture

LARGE = (70_000, 32_768)  # 2.3e9 elements


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0 + 1.0


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


class Outer(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[:, None] * y


def source_of(module: nn.Module, *inputs: torch.Tensor) -> str:
    with torch.no_grad():
        exported = capture(module.eval(), inputs)
    return synthesize(module, exported, class_name=type(module).__name__, import_from=__name__)[0].source


@pytest.mark.parametrize("module", [Scaled(), Softmax()])
def test_offsets_have_64_bits_where_a_tensor_needs_it(module: nn.Module) -> None:
    large = source_of(module, torch.empty(LARGE, device="meta"))
    assert "tl.program_id(0).to(tl.int64)" in large
    assert "_MOST_ELEMENTS" not in large
    small = source_of(module, torch.empty(700, 32_768, device="meta"))
    assert "int64" not in small
    assert "0 < x.numel() < _MOST_ELEMENTS" in small


def test_a_result_that_outgrows_its_inputs_is_looked_at() -> None:
    """Two short vectors may have an outer product that 32 bits cannot number: the class runs eager then."""
    text = source_of(Outer(), torch.empty(500), torch.empty(600))
    assert "and x.shape[0] * y.shape[0] < _MOST_ELEMENTS" in text


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [Scaled, Softmax])
def test_large_tensors_on_the_gpu(kind: Callable[[], nn.Module], tmp_path: Path) -> None:
    module = kind().cuda().eval()
    with torch.inference_mode():
        x = torch.randn(LARGE, device="cuda", dtype=torch.bfloat16)
        path = tmp_path / "large.py"
        path.write_text(source_of(module, x))
        spec = importlib.util.spec_from_file_location("large", path)
        assert spec is not None and spec.loader is not None
        made: Any = importlib.util.module_from_spec(spec)
        sys.modules["large"] = made
        spec.loader.exec_module(made)
        kernel = getattr(made, f"{type(module).__name__}Triton")().eval()
        assert kernel._in_envelope(x)
        found = kernel(x)
        for rows in (slice(0, 64), slice(65_500, 65_600), slice(-64, None)):  # below and above 2**31 elements
            torch.testing.assert_close(found[rows], module(x[rows]))
