"""Products of dtypes that the tensor cores are not given are left to torch, whatever they are part of."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Contract
from kernel_lsp.synthesis.operators.lower import lower


@pytest.mark.parametrize(
    "product",
    [
        lambda x: x @ x.mT,
        lambda x: F.scaled_dot_product_attention(x, x, x),
        lambda x: torch.einsum("bij,bkj->bik", x, x),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_of_float64_are_left_to_torch(product, dtype):
    class Product(torch.nn.Module):
        def forward(self, x):
            return product(x.to(dtype)) * 2

    graph = lower(capture(Product(), (torch.randn(2, 5, 6),)))
    products = [value for value in topological(graph.outputs) if isinstance(value.op, Contract)]
    assert bool(products) == (dtype == torch.float32)
