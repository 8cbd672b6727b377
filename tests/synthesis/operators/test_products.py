"""What is computed in other dtypes than others are: products and interpolation of float64 are left to torch, sums of flags are flags."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Contract, Pointwise
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


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolation_of_float64_is_left_to_torch(mode):
    class Interpolated(torch.nn.Module):
        def forward(self, x):
            return F.interpolate(x, size=7, mode=mode) * 2

    numbers = torch.randn(1, 2, 5, 5)
    single, double = (lower(capture(Interpolated(), (x,))) for x in (numbers, numbers.double()))
    assert not single.kept and double.kept


def test_flags_that_are_added_at_equal_places_stay_flags():
    class Added(torch.nn.Module):
        def forward(self, x):
            flags = x > 0
            return flags.index_add(0, torch.tensor([0, 1, 0]), flags[:3]) * 2

    graph = lower(capture(Added(), (torch.randn(4, 5),)))
    functions = [v.op.function for v in topological(graph.outputs) if isinstance(v.op, Pointwise)]
    assert functions.count("or") == 3 and "add" not in functions
