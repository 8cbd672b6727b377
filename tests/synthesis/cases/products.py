"""Matrix products, with what comes before and after them; einsum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .registry import CASES, Case, case, module, r


def cut_and_whole(product: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.relu(product[:, :5]), product.sum(1)


case("matrix_column", lambda self, a, b: torch.relu(a @ b), lambda n: [r(20 + n, 50), r(50, 1)])
case("matrix_vector", lambda self, a, v: a @ v, lambda n: [r(20 + n, 50), r(50)])

case("mm", lambda self, a, b: a @ b, lambda n: [r(33 + n, 40), r(40, 50)], kernels=1)
case("mm_transposed", lambda self, a, b: a.t() @ b.t(), lambda n: [r(40, 33 + n), r(50, 40)], kernels=1)
case(
    "bmm_of_parts",  # the batch size is a sum
    lambda self, a, b: torch.bmm(a[1:], b[1:]),
    lambda n: [r(4 + n, 17, 20), r(4 + n, 20, 19)],
    kernels=1,
)
case("bmm", lambda self, a, b: torch.bmm(a, b), lambda n: [r(3, 17 + n, 20), r(3, 20, 19)], kernels=1)
case("batched_by_matrix", lambda self, a, b: a @ b, lambda n: [r(3, 17 + n, 20), r(20, 19)], kernels=1)
case("broadcast_batch", lambda self, a, b: a @ b, lambda n: [r(2, 3, 17 + n, 20), r(3, 20, 19)], kernels=1)
case("vector_matrix", lambda self, a, b: a @ b, lambda n: [r(20), r(20, 19 + n)])
case("scaled_prologue", lambda self, a, b: (a * 2.0 + 1.0) @ b, lambda n: [r(33 + n, 40), r(40, 50)], kernels=1)
# What a product computes from its operand is stored, too: another kernel stores it first.
case("prologue_returned", lambda self, a, b: ((a * 2.0) @ b, a * 2.0), lambda n: [r(33 + n, 40), r(40, 50)], kernels=2)


class FeaturesReturned(nn.Module):
    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        before = self.first(x)
        after = torch.relu(before)
        return before, self.second(after), after


class FeaturesSorted(FeaturesReturned):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        before, product, after = super().forward(x)
        return before, product, torch.sort(after)[0]


_LINEAR = (nn.Linear(24, 20), nn.Linear(20, 12))
_CONV = (nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3))
module("features_returned_linear", FeaturesReturned, _LINEAR, lambda n: [r(9 + n, 24)], kernels=3)
module("features_returned_conv", FeaturesReturned, _CONV, lambda n: [r(2, 3, 8 + n, 9)], kernels=3)
module("features_sorted", FeaturesSorted, _LINEAR, lambda n: [r(9 + n, 24)], kernels=3, kept=1)
case("two_prologues", lambda self, a, b: (a + 1.0) @ (b + 1.0), lambda n: [r(33 + n, 40), r(40, 50)], kernels=1)
case(
    "half_mm",
    lambda self, a, b: F.relu(a @ b),
    lambda n: [r(33 + n, 40).half(), r(40, 50).half()],
    kernels=1,
    tolerance=4e-3,
)
case(
    "bfloat_mm",
    lambda self, a, b: (a @ b).float(),
    lambda n: [r(33 + n, 40).bfloat16(), r(40, 50).bfloat16()],
    kernels=1,
    tolerance=3e-2,
)
case(
    "addmm",
    lambda self, c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2.0),
    lambda n: [r(50), r(33 + n, 40), r(40, 50)],
    kernels=1,
)
case(
    "product_then_softmax",
    lambda self, a, b: torch.softmax(a @ b * 0.1, -1),
    lambda n: [r(33 + n, 40), r(40, 50)],
    kernels=2,
)
case(
    "residual_epilogue",
    lambda self, a, b, c: F.gelu(a @ b) + c,
    lambda n: [r(33 + n, 40), r(40, 50), r(33 + n, 50)],
    kernels=1,
)
# What a product is combined with is stored before, and read in its kernel.
case(
    "product_plus_product",
    lambda self, a, b, c: torch.relu((a @ b) * 2.0 + F.silu(a @ c)),
    lambda n: [r(33 + n, 40), r(40, 50), r(40, 50)],
    kernels=2,
)
case(
    "product_times_sum",
    lambda self, a, b, c: (a @ b) * torch.exp(torch.cumsum(c, 1)),
    lambda n: [r(33 + n, 40), r(40, 50), r(33 + n, 50) * 0.1],
    kernels=2,
)
# But not where that is computed from the product.
case(
    "product_times_its_mean",
    lambda self, a, b: (y := a @ b) * torch.sigmoid(y.mean(1, keepdim=True)),
    lambda n: [r(33 + n, 40), r(40, 50)],
    kernels=2,
)
module("linear", nn.Linear, (40, 24), lambda n: [r(5, 7 + n, 40)], kernels=1)


class Mlp(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Linear(width, hidden, bias=False),
            nn.Linear(width, hidden, bias=False),
            nn.Linear(hidden, width, bias=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


CASES["gated_mlp"] = Case(Mlp, lambda n: [r(3, 7 + n, 32)], (32, 48), tolerance=1e-4, kernels=3)


def einsum(name: str, equation: str, inputs: Callable[[int], list[Any]], **more: Any) -> None:
    case(f"einsum_{name}", lambda self, *tensors: torch.einsum(equation, *tensors), inputs, **more)


einsum("rows", "ik,jk->ij", lambda n: [r(17 + n, 20), r(19, 20)], kernels=1)
einsum("heads", "bhid,bhjd->bhij", lambda n: [r(2, 3, 5 + n, 16), r(2, 3, 6, 16)], kernels=1)
einsum("ellipsis", "...i,...i->...", lambda n: [r(2, 3 + n, 50), r(50)], kernels=1)
einsum("each_with_each", "i,j", lambda n: [r(7 + n), r(9)], kernels=1)
einsum("of_three", "bn,anm,bm->ba", lambda n: [r(4, 5), r(3, 5, 6), r(4, 6)])
einsum("position", "bhwc,hkc->bhwk", lambda n: [r(2, 3, 5 + n, 16), r(3, 6, 16)])
case("zeros_times", lambda self, x, w: x.new_zeros(4, 20) @ w + x, lambda n: [r(4, 9), r(20, 9)])
case("times_ones", lambda self, x: x @ torch.ones(20, 9, device=x.device) * 2, lambda n: [r(3, 5 + n, 20)])
case("cut_and_whole", lambda self, x, y: cut_and_whole(x @ y), lambda n: [r(9 + n, 20), r(20, 12)], kernels=3)
# Of one dimension the first element is all that is stored: it has no part in the place.
case("column_of_product", lambda self, x, y: torch.relu(x @ y)[:, :1], lambda n: [r(9 + n, 20), r(20, 12)], kernels=1)
case("row_of_product", lambda self, x, y: torch.relu(x @ y)[:1], lambda n: [r(9 + n, 20), r(20, 12)], kernels=1)
case(
    "split_product",
    lambda self, x, y: torch.relu(x @ y),
    lambda n: [r(8 + n, 4100), r(4100, 20)],
    kernels=2,
    tolerance=5e-5,
)
module("split_linear", nn.Linear, (8192, 24), lambda n: [r(3 + n, 8192)], kernels=2, tolerance=5e-5)


class ThroughAClosure(nn.Module):
    """Layers that forward reaches through a function of the module's own, as minGPT's block does."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(20, 24), nn.Linear(24, 20)
        first, second = self.first, self.second
        self.both = lambda x: second(torch.relu(first(x)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.both(x)


CASES["through_a_closure"] = Case(ThroughAClosure, lambda n: [r(9 + n, 20)])
case(
    "bilinear_form_in_float64",
    lambda self, x, y, w: torch.exp(F.bilinear(x, y, w)),
    lambda n: [r(3 + n, 8).double(), r(3 + n, 6).double(), r(5, 8, 6).double()],
    kept=1,
)
