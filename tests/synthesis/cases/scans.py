"""Scans: running sums and products, and those of exponentials."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

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
case("cumsum_short", lambda self, x: torch.exp(torch.cumsum(x.reshape(-1, 64), -1)), lambda n: [r(4, 128)], kernels=1)
case(
    "cumsum_short_columns",
    lambda self, x: (lambda s: torch.exp(s[:, -1:] - s))(torch.cumsum(x.reshape(-1, 32, 5), 1)),
    lambda n: [r(4, 160)],
)
case(
    "cumsum_behind_zeros",
    lambda self, x: torch.cat((torch.zeros_like(x[:, :1]), torch.cumsum(x[:, :-1], 1)), 1),
    lambda n: [r(4, 37 + n)],
    kernels=1,
)
case("cumsum_padded", lambda self, x: F.pad(torch.cumsum(x, 1), (0, 0, 2, 0)), lambda n: [r(4, 37 + n, 5)], kernels=1)
case(
    "cumprod_behind_ones",
    lambda self, x: torch.cat([torch.ones_like(x[:1]), torch.cumprod(x, 0)]) * 2.0,
    lambda n: [r(9 + n, 6)],
    kernels=1,
)
# the scan is read elsewhere, or something else is before or behind it
case(
    "cumsum_behind_zeros_and_alone",
    lambda self, x: (lambda s: torch.cat((torch.zeros_like(x[:, :1]), s), 1)[:, :-1] + s)(torch.cumsum(x, 1)),
    lambda n: [r(4, 37 + n)],
)
case("cumsum_behind_ones", lambda self, x: F.pad(torch.cumsum(x, 1), (1, 0), value=1.0), lambda n: [r(4, 37 + n)])
case("cumsum_before_zeros", lambda self, x: F.pad(torch.cumsum(x, 1), (1, 1)), lambda n: [r(4, 37 + n)])
case("cumsum_beside_zeros", lambda self, x: F.pad(torch.cumsum(x, 1), (0, 0, 1, 0)), lambda n: [r(4, 37 + n)])
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
case("cumprod_of_integers", lambda self, x: x.cumprod(0), lambda n: [torch.randint(-3, 4, (40 + n, 5))], kernels=1)
case("cumprod_of_a_mask", lambda self, x: (x > 0.1).cumprod(1), lambda n: [positive(3, 9 + n, 5)], kernels=1)
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


def _segment_sums(x: torch.Tensor) -> torch.Tensor:
    """[..., T] as [..., T, T]: the sums of x from after j to i, minus infinity above the diagonal."""
    sums = torch.cumsum(x, -1)
    here = torch.tril(torch.ones(x.shape[-1], x.shape[-1], device=x.device, dtype=torch.bool))
    return (sums[..., :, None] - sums[..., None, :]).masked_fill(~here, -torch.inf)


def _state_space(self: Any, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Mamba-2's chunk scan (Dao and Gu, 2024, "Transformers are SSMs"), chunks of 8: x [B, T, H, P], a [B, T, H], b and c [B, T, H, N]."""
    x, a, b, c = (t.reshape(t.shape[0], -1, 8, *t.shape[2:]) for t in (x, a, b, c))
    a = a.permute(0, 3, 1, 2)
    sums = torch.cumsum(a, -1)
    inside = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, torch.exp(_segment_sums(a)), x)
    states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, torch.exp(sums[..., -1:] - sums), x)
    states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
    between = torch.exp(_segment_sums(F.pad(sums[..., -1], (1, 0))))
    states = torch.einsum("bhzc,bchpn->bzhpn", between, states)[:, :-1]
    before = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states, torch.exp(sums))
    return (inside + before).flatten(1, 2)


case(
    "state_space",
    _state_space,
    lambda n: [r(2 + n, 24, 3, 4), r(2 + n, 24, 3) * 0.3, r(2 + n, 24, 3, 5), r(2 + n, 24, 3, 5)],
    tolerance=5e-5,
)

# The places of an image that no mask hides, counted along it.
case(
    "counted_places",
    lambda self, x: x + (~x.new_zeros(x.shape[1:], dtype=torch.bool)).cumsum(0, dtype=torch.float32),
    lambda n: [r(2, 5 + n, 7)],
)


def _extremes(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Places as they are; of what is NaN or infinite, which differ from anything, whether it is so."""
    greatest, at = x.cummax(-1)
    least, below = x.cummin(-1)
    return greatest.nan_to_num(7.0), at, least.nan_to_num(-7.0), below


case("cummax", lambda self, x: torch.cummax(x, 1)[0] * 2.0, lambda n: [r(4, 37 + n)], kernels=1)
case("running_extremes", _extremes, lambda n: [torch.where(r(6 + n, 40) > 2.0, torch.nan, r(6 + n, 40).round())])
case("cummax_integers", lambda self, x: tuple(torch.cummax(x, 0)), lambda n: [torch.randint(0, 9, (5 + n, 8))])
