"""Which rate of the device a module's products are held against."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from kernel_lsp.validation import measuring, roofline


def module(*held: torch.Tensor) -> nn.Module:
    found = nn.Module()
    for i, tensor in enumerate(held):
        found.register_buffer(f"held_{i}", tensor)
    return found


@pytest.mark.parametrize(
    ("inputs", "held", "wanted"),
    [
        ([torch.ones(2)], [], torch.float32),
        ([torch.ones(2, dtype=torch.int64), torch.ones(2).bfloat16()], [torch.ones(2)], torch.bfloat16),
        ([torch.ones(2).bfloat16()], [torch.ones(2).to(torch.float8_e4m3fn)], torch.float8_e4m3fn),
        ([torch.ones(2), torch.ones(2).to(torch.float8_e5m2)], [], torch.float8_e5m2),
        ([torch.ones(2, dtype=torch.int64)], [torch.ones(2).half()], torch.float32),
    ],
)
def test_products_are_in_float8_where_the_module_has_some(inputs, held, wanted) -> None:
    leaves = [SimpleNamespace(example=tensor) for tensor in inputs]
    referee = SimpleNamespace(inputs=SimpleNamespace(leaves=leaves), module=module(*held))
    found = measuring.dtype(referee)
    assert found == wanted
    rates = {"float32": 50.0, "tf32": 300.0, "float16": 600.0}
    assert (roofline.matmul_rate(rates, found, tf32=False) == 1200.0) == (wanted.itemsize == 1)
