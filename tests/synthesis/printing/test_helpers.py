"""A monoid is an entry of a table: what a kernel needs to scan with it follows."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.monoids import MONOIDS


class Scanned(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logcumsumexp(x, 0)


def text() -> str:
    exported = capture(Scanned(), (torch.randn(150, 6),))
    return synthesize(Scanned(), exported, class_name="Scanned", import_from="scanned")[0].source


def test_a_monoid_of_a_function_with_a_short_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MONOIDS, "logaddexp", dataclasses.replace(MONOIDS["logaddexp"], combine="maximum"))
    source = text()
    combined = "tl.maximum({}, propagate_nan=tl.PropagateNan.ALL)"
    assert f'def _maximum(a, b):\n    """max(a, b)."""\n    return {combined.format("a, b")}\n' in source
    assert combined.format("carry, tl.associative_scan(x, 0, _maximum)") in source
    assert "libdevice" not in source


def test_a_monoid_that_triton_scans_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MONOIDS, "logaddexp", MONOIDS["prod"])
    source = text()
    assert "carry * tl.cumprod(x, axis=0)" in source
    assert source.count("@triton.jit") == 1


def test_a_helper_stands_once_for_several_kernels() -> None:
    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.logcumsumexp(torch.logcumsumexp(x, 0), 1)

    exported = capture(Twice(), (torch.randn(150, 6),))
    source = synthesize(Twice(), exported, class_name="Twice", import_from="twice")[0].source
    assert source.count("def _logaddexp(") == 1
    assert source.count("tl.associative_scan(") == 2
    assert source.count("libdevice\n") == 1
