"""Which products share a kernel with the one before, and what such a kernel carries along."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.kernel.execution_plan import Kernel, Planned
from kernel_lsp.synthesis.schedule.target import target
from kernel_lsp.synthesis.stages import lowered, planned


def plan_of(forward: Callable[..., Any], *tensors: torch.Tensor) -> Planned:
    kind = type("Module", (nn.Module,), {"forward": lambda self, *given: forward(*given)})
    return planned(lowered(capture(kind(), tensors), on=target("H100"), chained=True))


def chained(found: Planned) -> list[Kernel]:
    return [kernel for kernel in found.kernels if kernel.chain is not None]


def qkv(*batch: int, rows: int = 20, keys: int = 24, width: int = 16) -> list[torch.Tensor]:
    return [torch.randn(*batch, rows, width), torch.randn(*batch, keys, width), torch.randn(*batch, keys, width)]


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.transpose(-2, -1) * 0.25


def by_exponentials(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    exps = torch.exp(scores(q, k) - scores(q, k).amax(-1, keepdim=True))
    return exps / exps.sum(-1, keepdim=True) @ v


ATTENTION = {
    "softmax": lambda q, k, v: scores(q, k).softmax(-1) @ v,
    "capped": lambda q, k, v: (torch.tanh(scores(q, k) / 30) * 30).softmax(-1) @ v,
    "by hand": by_exponentials,
    "einsum": lambda q, k, v: torch.einsum(
        "bhij,bhjd->bhid", torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k), -1), v
    ),
    "relu": lambda q, k, v: torch.relu(scores(q, k)) @ v,
    "normalised": lambda q, k, v: (w := torch.sigmoid(scores(q, k))) / w.sum(-1, keepdim=True) @ v,
    "merged": lambda q, k, v: torch.bmm(
        torch.bmm(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2)).softmax(-1), v.flatten(0, 1)
    ),
    "heads merged after it": lambda q, k, v: F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_is_one_kernel_however_it_is_written(name: str) -> None:
    found = plan_of(ATTENTION[name], *qkv(2, 3))
    assert len(found.kernels) == len(chained(found)) == 1


def test_what_is_carried_along() -> None:
    (softmax,) = chained(plan_of(ATTENTION["softmax"], *qkv(2, 3)))
    (relu,) = chained(plan_of(ATTENTION["relu"], *qkv(2, 3)))
    (normalised,) = chained(plan_of(ATTENTION["normalised"], *qkv(2, 3)))
    assert softmax.chain is not None and relu.chain is not None and normalised.chain is not None
    assert softmax.chain.highest is not None and len(softmax.chain.totals) == 1
    assert [function for function, _ in softmax.chain.factors] == ["div"]
    assert relu.chain.highest is None and not relu.chain.totals and not relu.chain.factors
    assert normalised.chain.highest is None and len(normalised.chain.totals) == 1


def weights_too(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    weights = scores(q, k).softmax(-1)
    return weights @ v, weights


APART = {
    "weights that are a result": weights_too,
    "a softmax along the rows": lambda q, k, v: scores(q, k).softmax(-2) @ v,
    "no division by the sum": lambda q, k, v: torch.exp((s := scores(q, k)) - s.amax(-1, keepdim=True)) @ v,
    "a norm between": lambda q, k, v: F.layer_norm(scores(q, k), (k.shape[-2],)) @ v,
    "a scan between": lambda q, k, v: scores(q, k).cumsum(-1) @ v,
    "rows as keys": lambda q, k, v: scores(q, k).softmax(-1).transpose(-1, -2) @ q,
}


@pytest.mark.parametrize("name", APART)
def test_what_stays_in_several_kernels(name: str) -> None:
    tensors = qkv(2, 3, rows=20, keys=20) if name == "a norm between" else qkv(2, 3)
    found = plan_of(APART[name], *tensors)
    assert not chained(found) and len(found.kernels) > 1
    assert not found.chained and not any("one kernel" in way for way in found.graph.ways)


def test_a_perceptron_is_not_chained() -> None:
    class Perceptron(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.down(torch.relu(self.up(x)))

    found = lowered(capture(Perceptron(), (torch.randn(20, 16),)), on=target("H100"), chained=True)
    assert not found.chained


def test_a_residual_and_a_mask_are_read_in_the_same_kernel() -> None:
    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = scores(q, k).masked_fill(mask[:, None, None, :], -math.inf)
        return torch.nan_to_num(hidden.softmax(-1) @ v) + q

    found = plan_of(forward, *qkv(2, 3), torch.rand(2, 24) > 0.5)
    assert len(found.kernels) == len(chained(found)) == 1
