"""Autocast around a call: on for both devices, and as it was before afterwards."""

from __future__ import annotations

import pytest
import torch

from kernel_lsp.validation import autocast
from kernel_lsp.validation.oracle import Oracle


def flags() -> list[object]:
    devices = ("cpu", "cuda")
    asked = [(torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in devices]
    return [*asked, torch.is_autocast_cache_enabled()]


def test_products_give_the_half_type_within_and_all_is_as_before_afterwards() -> None:
    before, a = flags(), torch.randn(3, 3)
    with autocast.on("bfloat16"):
        assert (a @ a).dtype is torch.bfloat16
        assert torch.is_autocast_enabled() and torch.is_autocast_enabled("cuda") and torch.is_autocast_enabled("cpu")
    with pytest.raises(ValueError), autocast.on("float16"):
        raise ValueError
    assert flags() == before and (a @ a).dtype is torch.float32


def test_without_a_dtype_nothing_changes() -> None:
    with torch.autocast("cpu", dtype=torch.float16):
        before = flags()
        with autocast.on(""):
            assert flags() == before


def test_a_weight_that_changed_between_two_calls_is_rounded_anew() -> None:
    layer, x = torch.nn.Linear(2, 2, bias=False), torch.ones(1, 2)
    with autocast.on("bfloat16"):
        layer(x)
        with torch.no_grad():
            layer.weight.fill_(3.0)
        assert layer(x).tolist() == [[6.0, 6.0]]


def test_eager_is_called_under_it_and_float64_is_not() -> None:
    oracle = Oracle(torch.nn.Linear(4, 3), [])
    with oracle.under_autocast("bfloat16"):
        reference = oracle.answer(((torch.randn(2, 4),), {}))
    assert (reference.eager.dtype, reference.exact.dtype) == (torch.bfloat16, torch.float64)
    assert oracle.answer(((torch.randn(2, 4),), {})).eager.dtype is torch.float32
