"""float8 products on a CUDA GPU: every schedule against float64, with the error that torch's own product has."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture

pytestmark = pytest.mark.gpu

E4M3 = torch.float8_e4m3fn
INPUTS, OUTPUTS = 8192, 512


class Scaled(nn.Module):
    def __init__(self, out: torch.dtype, fast: bool = False, by_columns: bool = False) -> None:
        super().__init__()
        weight = torch.randn(OUTPUTS, INPUTS, device="cuda").to(E4M3)
        self.register_buffer("weight", weight.t() if by_columns else weight)
        self.register_buffer("scale", torch.rand((), device="cuda") + 0.5)
        self.out, self.fast, self.by_columns = out, fast, by_columns

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        weight = self.weight if self.by_columns else self.weight.t()
        return torch._scaled_mm(x, weight, scale, self.scale, out_dtype=self.out, use_fast_accum=self.fast)


class ByHand(Scaled):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (x.to(self.out) @ self.weight.to(self.out).t()) * scale * self.scale


def errors(module: Scaled, tokens: int, folder: Path) -> tuple[float, dict[str, float]]:
    """torch's error and each candidate's, against float64 and relative to the largest magnitude."""
    torch.manual_seed(tokens)
    inputs = torch.randn(tokens, INPUTS, device="cuda").to(E4M3), torch.rand((), device="cuda") + 0.5
    weight = module.weight if module.by_columns else module.weight.t()
    exact = inputs[0].double() @ weight.double() * inputs[1].double() * module.scale.double()

    def error(out: torch.Tensor) -> float:
        assert out.dtype == module.out and out.shape == exact.shape
        return float((out.double() - exact).abs().max() / exact.abs().max())

    kind = type(module).__name__
    made = synthesize(
        module.eval(),
        capture(module, inputs),
        class_name=kind,
        import_from=Path(__file__).stem,
        gpu=torch.cuda.get_device_name(),
    )
    found: dict[str, float] = {}
    for number, one in enumerate(made):
        assert not one.kept, one.note
        path = folder / f"kernel_{number}.py"
        path.write_text(one.source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        file = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(file)
        kernel: Any = object.__new__(getattr(file, f"{kind}Triton"))
        kernel.__dict__ = dict(module.__dict__)
        assert kernel._in_envelope(*inputs)
        found[one.variant or "default"] = error(kernel(*inputs))
    return error(module(*inputs)), found


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Kernel files get their classes from here."""
    monkeypatch.setitem(sys.modules, Path(__file__).stem, sys.modules[__name__])
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("torch._scaled_mm needs compute capability 8.9")
    with torch.no_grad():
        yield


@pytest.mark.parametrize("tokens", [1, 4, 16, 48, 64, 256])
def test_every_schedule_is_as_exact_as_torch(tokens: int, tmp_path: Path) -> None:
    eager, found = errors(Scaled(torch.float32), tokens, tmp_path)
    assert len(found) >= 4
    assert {way: error for way, error in found.items() if error > 1.5 * eager + 1e-4} == {}


@pytest.mark.parametrize("tokens", [1, 16, 64])
def test_a_weight_by_columns_is_multiplied_as_it_lies(tokens: int, tmp_path: Path) -> None:
    eager, found = errors(Scaled(torch.bfloat16, by_columns=True), tokens, tmp_path)
    assert {way: error for way, error in found.items() if error > 1.5 * eager + 1e-3} == {}


@pytest.mark.parametrize("tokens", [16, 256])
def test_fast_accumulation_loses_no_more_than_torch_does(tokens: int, tmp_path: Path) -> None:
    eager, found = errors(Scaled(torch.bfloat16, fast=True), tokens, tmp_path)
    assert {way: error for way, error in found.items() if error > 2 * eager + 2e-3} == {}


@pytest.mark.parametrize("tokens", [16, 64, 256])
def test_a_product_of_converted_numbers_has_the_error_of_the_wider_dtype(tokens: int, tmp_path: Path) -> None:
    _, wide = errors(ByHand(torch.float32), tokens, tmp_path)
    assert {way: error for way, error in wide.items() if error > 3e-6} == {}
    eager, half = errors(ByHand(torch.bfloat16), tokens, tmp_path)
    assert {way: error for way, error in half.items() if error > 1.5 * eager + 1e-3} == {}
