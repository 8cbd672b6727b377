"""Reductions: each dimension and several, integers, greatest and least places, norms of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from .registry import case, r


def over(method: str, dims: Any, **options: Any) -> Callable[..., Any]:
    return lambda self, x: getattr(x, method)(dims, **options)


for _dim in (0, 1, 2, (0, 2), (1, 2), (0, 1, 2)):
    _tag = "".join(map(str, _dim)) if isinstance(_dim, tuple) else str(_dim)
    case(f"sum_{_tag}", over("sum", _dim), lambda n: [r(6, 10 + n, 14 + n)])
    case(f"mean_{_tag}", over("mean", _dim, keepdim=True), lambda n: [r(6, 10 + n, 14 + n)])
    case(f"amax_{_tag}", over("amax", _dim), lambda n: [r(6, 10 + n, 14 + n)])
    case(f"var_{_tag}", over("var", _dim), lambda n: [r(6, 10 + n, 14 + n)])
case("sum_all", lambda self, x: x.sum(), lambda n: [r(6, 10 + n)])
case("argmax_last", lambda self, x: x.argmax(-1), lambda n: [r(6 + n, 37)])
case("argmin_first", lambda self, x: x.argmin(0), lambda n: [r(26 + n, 37)])
case("argmax_long", lambda self, x: x.argmax(-1), lambda n: [r(3, 40000 + n)])
case("sum_integers", lambda self, x: x.sum(-1), lambda n: [torch.randint(-9, 9, (5, 40 + n))])
case("max_integers", lambda self, x: x.amax(-1), lambda n: [torch.randint(-90, -9, (5, 40 + n))])
case("any_row", lambda self, x: (x > 2.0).any(-1), lambda n: [r(6, 40 + n)])
case("norm_2", lambda self, x: torch.linalg.vector_norm(x, dim=-1), lambda n: [r(6, 40 + n)])
case("norm_1", lambda self, x: x.norm(p=1, dim=1), lambda n: [r(6, 40 + n)])
case("norm_inf", lambda self, x: torch.linalg.vector_norm(x, ord=float("inf"), dim=0), lambda n: [r(60, 40 + n)])
case("frobenius", lambda self, x: x / torch.norm(x), lambda n: [r(6, 40 + n)])
case("unit_length", lambda self, x: F.normalize(x, dim=-1), lambda n: [r(6, 40 + n)], kept=0)
case("logsumexp", lambda self, x: x.logsumexp(-1), lambda n: [r(6, 40 + n) * 5])
case("std_of_sum", lambda self, x, y: (x + y).std(-1), lambda n: [r(6, 40 + n), r(6, 40 + n)], kernels=1)
case("long_row_sum", lambda self, x: x.sum(-1), lambda n: [r(2, 70000 + n)], tolerance=1e-4)
case("long_softmax", lambda self, x: torch.softmax(x, -1), lambda n: [r(2, 40000 + n)])
case("column_softmax", lambda self, x: torch.softmax(x, 1), lambda n: [r(2, 200 + n, 17)])
case(
    "loss_like_mean",
    lambda self, x, y: ((x - y) ** 2).mean(),
    lambda n: [r(300 + n, 230), r(300 + n, 230)],
    tolerance=1e-4,
)
case("tall_column_sum", lambda self, x: x.sum(0), lambda n: [r(33000 + n, 5)], tolerance=1e-4)
case(
    "tall_product_var",
    lambda self, x, w: (x @ w).var(0),
    lambda n: [r(33000 + n, 8), r(8, 24)],
    tolerance=1e-4,
)
case("row_and_total", lambda self, x: x.mean(-1) - x.mean(), lambda n: [r(6, 40 + n)])
case("least_of_a_constant", lambda self, x: torch.min(x, torch.tensor(0.5)) + 1, lambda n: [r(20 + n, 50)])
case(
    "constants_in_forward",
    lambda self, x: torch.clamp(x, max=torch.sqrt(torch.tensor(0.16, device=x.device))) * torch.tensor(2.0),
    lambda n: [r(20 + n, 50)],
)
case(
    "variance_of_too_few",  # NaN where there are no more elements than the correction
    lambda self, x: torch.nan_to_num(torch.var(x, 1, correction=6), nan=-7.0),
    lambda n: [r(3, 8 - 2 * n)],
)

# What comes from one reduction, along two dimensions.
case("pairwise_sums", lambda self, x: x.sum(-1)[:, None] - x.sum(-1)[None, :], lambda n: [r(6 + n, 8)])
case(
    "pairwise_softmax",
    lambda self, x: torch.softmax(x, -1)[:, :, None] * torch.softmax(x, -1)[:, None, :],
    lambda n: [r(3, 7 + n)],
)
case(
    "pairwise_distances",
    lambda self, x: (x * x).sum(-1)[:, None] + (x * x).sum(-1)[None, :] - 2 * x @ x.T,
    lambda n: [r(9 + n, 5)],
    tolerance=5e-5,
)
case(
    "pairwise_running_sums",
    lambda self, x: (lambda s: s[..., :, None] - s[..., None, :])(torch.cumsum(x, -1)),
    lambda n: [r(2, 3, 8 + n)],
)

# Results that torch views, beside kernels that read the same.
case("mean_beside_view", lambda self, x: (x.t(), x.t().mean(1)), lambda n: [r(4 + n, 6)])
case(
    "softmax_beside_expanded",
    lambda self, x: ((e := (x * 2).amax(1, keepdim=True).expand(-1, 5)), torch.softmax(e + 1, 0), e.amin(1)),
    lambda n: [r(4 + n, 6)],
)
# What does not vary along a reduced dimension counts once for each of its elements, not for the rows beyond the end.
case("mean_of_biased_columns", lambda self, x, b: (x + b).mean(0), lambda n: [r(11 + n, 37), r(37)])
case("sum_of_biased_columns", lambda self, x, b: (x * 2 - b).sum(0), lambda n: [r(3 + n, 4, 6), r(4, 6)])


# Few elements, which are combined one by one.
case("few_summed", lambda self, x: x.unflatten(1, (3, 4)).sum(1), lambda n: [r(2, 12, 5 + n, 6)], kernels=1)
case("few_neighbours", lambda self, x: x.unflatten(1, (3, 4)).mean(2), lambda n: [r(2, 12, 5 + n, 6)], kernels=1)
case("few_pooled", lambda self, x: F.max_pool1d(x, 4, 4), lambda n: [r(2 + n, 3, 20)], kernels=1)
case("few_booleans", lambda self, x: (x > 0).unflatten(1, (3, 4)).sum(1, dtype=torch.bool), lambda n: [r(5 + n, 12)])
case("few_integers", lambda self, x: torch.stack([x, x + 1]).sum(0), lambda n: [torch.randint(-9, 9, (5, 4 + n))])
case("few_halves", lambda self, x: x.unflatten(0, (2, 3)).prod(0), lambda n: [r(6, 7 + n).half()], tolerance=2e-3)


def _some_missing(x: torch.Tensor) -> torch.Tensor:
    x[1, 2] = float("nan")
    return x


case(
    "few_with_nan",
    lambda self, x: torch.nan_to_num(torch.stack([x, x.flip(0)]).amax(0), nan=500.0),
    lambda n: [_some_missing(r(4, 5 + n))],
    kernels=1,
)
case(
    "few_branches",
    lambda self, x, s: (x.unflatten(1, (2, 6)) * torch.softmax(s, 1)[..., None, None]).sum(1),
    lambda n: [r(2, 12, 5 + n, 6), r(2, 2, 6)],
    kernels=2,
)
