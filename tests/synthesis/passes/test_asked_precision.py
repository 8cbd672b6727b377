"""The setting ``precision``: which products are rounded, and what the file says of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from kernel_lsp.schema import Candidate
from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture


class Product(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ y


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v)


def candidates(
    module: nn.Module, *inputs: torch.Tensor, precision: str = "tf32", gpu: str | None = "H100"
) -> list[Candidate]:
    exported = capture(module.eval(), inputs)
    name = type(module).__name__
    return synthesize(module, exported, class_name=name, import_from="torch.nn", gpu=gpu, precision=precision)


def square(size: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [torch.empty(size, size, dtype=dtype) for _ in range(2)]


@pytest.mark.parametrize("gpu", ["H100", None])
@pytest.mark.parametrize("size", [64, 4096])
def test_every_schedule_multiplies_in_tf32_where_it_is_asked_for(size: int, gpu: str | None) -> None:
    found = candidates(Product(), *square(size), gpu=gpu)
    assert found and {one.precision for one in found} == {"tf32"}
    assert all('"tf32"' in one.source and "tf32x3" not in one.source for one in found)
    assert "Asked for with precision = tf32" in found[0].source
    assert "allow_tf32" not in found[0].source  # the setting asked for it, not torch's flags


def test_a_strict_kernel_says_nothing_of_a_precision() -> None:
    found = candidates(Product(), *square(64), precision="strict")
    assert {one.precision for one in found} == {"strict"}
    assert all("Asked for" not in one.source and '"tf32"' not in one.source for one in found)


def test_half_rounds_to_float16_where_that_pays_behind_a_check_of_the_range() -> None:
    (large, *others), small = (candidates(Product(), *square(size), precision="half") for size in (4096, 64))
    assert "x.to(tl.float16)" in large.source and "peak" in large.source
    assert any('PRECISION="tf32"' in one.source for one in others)  # what is measured decides
    assert all("float16" not in one.source.split("import", 1)[1] for one in small)
    assert {one.precision for one in (large, *others, *small)} == {"half"}


def test_both_products_of_an_attention_are_rounded() -> None:
    found = candidates(Attention(), *[torch.empty(2, 8, 1024, 64)] * 3)
    assert any("attention in one kernel" in one.variant for one in found)
    assert all("tf32x3" not in one.source and "bf16x6" not in one.source for one in found)


def test_a_convolution_is_rounded_whatever_torch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    found = candidates(nn.Conv2d(64, 128, 3), torch.empty(16, 64, 112, 112))
    assert {"float16 convolutions", "TF32 products"} <= {one.arithmetic for one in found}
    assert not any("allow_tf32" in one.source for one in found)


@pytest.mark.parametrize("precision", ["tf32", "half"])
def test_what_has_no_product_of_float32_stays_strict(precision: str) -> None:
    softmax = candidates(nn.Softmax(-1), torch.empty(16, 64), precision=precision)
    half = candidates(Product(), *square(64, torch.float16), precision=precision)
    assert {one.precision for one in (*softmax, *half)} == {"strict"}
    strict = candidates(nn.Softmax(-1), torch.empty(16, 64), precision="strict")
    assert [one.source for one in softmax] == [one.source for one in strict]


def test_recurrences_stay_as_exact_as_float32() -> None:
    module = nn.GRU(16, 16)
    exported = capture(module.eval(), (torch.empty(5, 2, 16),))
    lowered = stages.lowered(exported, on=None, precision="tf32")
    assert lowered.graph.precision == "strict"  # without a target nothing is rounded
