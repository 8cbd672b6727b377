"""Scans: running sums and products, and those of exponentials."""

from __future__ import annotations

import torch

from .registry import case, positive, r


def _with_infinities(rows: int, columns: int) -> list[torch.Tensor]:
    """Rows whose difference begins with -inf; later rows reach large numbers, then inf, then NaN (inf - inf)."""
    x, y = torch.randn(rows, columns), torch.zeros(rows, columns)
    x[:, :3] = float("-inf")
    x[1:, 4] = 200.0
    x[2:, 5:7] = float("inf")
    x[2:, 8] = float("-inf")
    x[3:, 9] = y[3:, 9] = float("inf")
    return [x, y]


case("cumsum", lambda self, x: torch.cumsum(x, -1), lambda n: [r(4, 37 + n)], kernels=1)
case("cumsum_columns", lambda self, x: torch.cumsum(x, 1) * 2.0, lambda n: [r(4, 150 + n, 5)], kernels=1)
case("cumsum_reversed", lambda self, x: x.flip(-1).cumsum(-1).flip(-1), lambda n: [r(4, 37 + n)], kernels=1)
case("cumsum_exclusive", lambda self, x: torch.cumsum(x, -1) - x, lambda n: [r(4, 37 + n)], kernels=1)
case("cumsum_softmax", lambda self, x: torch.softmax(torch.cumsum(x, -1), -1), lambda n: [r(4, 37 + n)])
case("cumsum_long", lambda self, x: torch.cumsum(x, 1), lambda n: [r(2, 40000 + n)], kernels=3)
case(
    "cumsum_long_rows",
    lambda self, x: torch.cumsum(x * 0.1, 1) + 1.0,
    lambda n: [r(130, 33000 + n)],
    kernels=1,
    steps=(1,),
)
case("cumsum_integers", lambda self, x: torch.cumsum(x, 0), lambda n: [torch.randint(0, 9, (5 + n, 8))], kernels=1)
case("cumprod", lambda self, x: torch.cumprod(x, 0), lambda n: [positive(7, 20 + n)], kernels=1)
case("cumprod_half", lambda self, x: torch.cumprod(x, 1), lambda n: [positive(3, 20 + n).half()], tolerance=2e-3)
case(
    "cumprod_half_columns", lambda self, x: torch.cumprod(x, 0), lambda n: [positive(150 + n, 4).half()], tolerance=2e-3
)
case("logcumsumexp", lambda self, x: torch.logcumsumexp(x, -1), lambda n: [r(4, 37 + n) * 90], kernels=1)
case(
    "logcumsumexp_columns",
    lambda self, x: torch.logcumsumexp(x, 1) * 2.0,
    lambda n: [r(2, 150 + n, 3)],
    kernels=1,
)
case("logcumsumexp_first", lambda self, x: torch.logcumsumexp(x, 0), lambda n: [r(9 + n, 6)], kernels=1)
case("logcumsumexp_long", lambda self, x: torch.logcumsumexp(x, 1) - 1.0, lambda n: [r(1, 33000 + n)], kernels=1)
case(
    "logcumsumexp_half",
    lambda self, x: torch.logcumsumexp(x, 1),
    lambda n: [r(3, 20 + n).half()],
    tolerance=2e-3,
)
case(
    "logcumsumexp_infinite",
    lambda self, x, y: torch.nan_to_num(torch.logcumsumexp(x - y, 1), nan=-700.0, posinf=500.0, neginf=-500.0),
    lambda n: _with_infinities(4, 12 + n),
    kernels=1,
)
