"""An error in one of several ways to write a module's kernels is told of, and loses none of the others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import kernel_lsp.synthesis
from kernel_lsp import errors, schema
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.kernel.domain import Unalignable
from kernel_lsp.synthesis.kernel.verify import Malformed


def written() -> list[schema.Candidate]:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    exported = capture(module, (torch.randn(2, 3, 9, 9),))
    return synthesize(module, exported, class_name="Features", import_from="here", gpu="H100")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Planning raises an error but where the default way is taken, or there, too."""
    planned = kernel_lsp.synthesis.planned

    def make(error: Exception, *, first: bool = False) -> None:
        calls: list[Any] = []

        def plans(found: Any, **more: Any) -> Any:
            calls.append(found)
            if first or len(calls) > 1:
                raise error
            return planned(found, **more)

        monkeypatch.setattr(kernel_lsp.synthesis, "planned", plans)

    return make


def test_a_bug_in_another_way_leaves_the_first_ones_candidates(failing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNEL_LSP_RAISE_FAULTS")
    assert any("left to torch" in one.variant for one in written())
    failing(Malformed("relu is read before it is stored"))
    candidates = written()
    assert candidates and not any("left to torch" in one.variant for one in candidates)
    for one in candidates:
        read = schema.from_json(schema.Candidate, schema.to_json(one))
        assert {fault["code"] for fault in read.faults} == {"WayFailed"}
        assert "operators left to torch" in " ".join(fault["message"] for fault in read.faults)
    error = errors.from_json(candidates[0].faults[0])
    assert isinstance(error, errors.WayFailed) and "report it" in str(error)
    assert "Features" in str(error) and "Malformed: relu is read before it is stored" in str(error)


def test_a_way_that_has_no_kernels_is_no_bug(failing: Any) -> None:
    failing(Unalignable("planning did not settle"))
    candidates = written()
    assert candidates and all(one.faults == [] for one in candidates)


def test_a_bug_in_the_first_way_is_an_error(failing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNEL_LSP_RAISE_FAULTS")
    failing(Malformed("relu is read before it is stored"), first=True)
    with pytest.raises(Malformed):
        written()


def test_it_raises_in_tests(failing: Any) -> None:
    failing(Malformed("relu is read before it is stored"))
    with pytest.raises(Malformed):
        written()


def arithmetic(module: nn.Module, shape: tuple[int, ...]) -> list[str]:
    """What the candidates compute with, each way once, and what is left to torch."""
    dtype = next(module.parameters()).dtype
    exported = capture(module.to("meta").eval(), (torch.empty(shape, device="meta", dtype=dtype),))
    found = synthesize(module, exported, class_name="Features", import_from="here", gpu="H100")
    return list(dict.fromkeys(one.arithmetic or one.variant.partition(",")[0] for one in found))


def test_where_convolutions_are_rounded_those_of_torch_stand_for_what_is_not() -> None:
    module = nn.Sequential(nn.Conv2d(64, 128, 3), nn.ReLU())
    found = arithmetic(module, (64, 64, 64, 64))
    assert found == ["float16 convolutions", "convolutions left to torch", "convolutions of float16 planes"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_convolutions_in_half_precision_are_laid_out_anew_or_left_to_torch(dtype: torch.dtype) -> None:
    module = nn.Sequential(nn.Conv2d(64, 128, 3), nn.ReLU()).to(dtype)
    assert arithmetic(module, (64, 64, 64, 64)) == ["channels-last convolutions", "convolutions left to torch"]
    exported = capture(module, (torch.empty(64, 64, 64, 64, device="meta", dtype=dtype),))
    found = synthesize(module, exported, class_name="Features", import_from="here", gpu="H100")
    assert "convolutions left to torch, channels last" in [one.variant for one in found]


def test_a_convolution_alone_has_kernels_that_do_not_round() -> None:
    found = arithmetic(nn.Conv2d(64, 128, 3), (64, 64, 64, 64))
    assert found == ["float16 convolutions", "convolutions of float16 planes", "tf32x3", "bf16x6"]
