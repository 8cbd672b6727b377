"""Rows too long for registers: walked in blocks by one program, or cut in chunks of which each is another's."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .registry import case, r

#: a hundred such rows take seconds under the interpreter: they run at one size, which is not the one of the export
ONE_SIZE = (1,)


def _unusual(rows: int, columns: int) -> torch.Tensor:
    """Rows with -inf before anything else, of -inf alone, with inf, and with NaN."""
    x = torch.randn(rows, columns)
    x[0, : columns // 2] = x[1] = -torch.inf
    x[2, 7], x[3, 8] = torch.inf, torch.nan
    return x


def _told(x: torch.Tensor) -> torch.Tensor:
    """With numbers in place of what compares with nothing."""
    return torch.nan_to_num(x, nan=-7.0, posinf=500.0, neginf=-500.0)


case(
    "walked_softmax",
    lambda self, x: _told(torch.softmax(x, 1) * 1e4),
    lambda n: [_unusual(130, 33_000 + n)],
    kernels=1,
    steps=ONE_SIZE,
)
case(
    "walked_logsumexp",
    lambda self, x: _told(torch.logsumexp(x, 1)),
    lambda n: [_unusual(130, 33_000 + n)],
    kernels=1,
    steps=ONE_SIZE,
)
case(
    "walked_softmax_of_greatest",  # written out with amax, which keeps a NaN
    lambda self, x: _told((x - x.amax(1, keepdim=True)).exp().sum(1) + x.amax(1)),
    lambda n: [_unusual(130, 33_000 + n)],
    kernels=1,
    steps=ONE_SIZE,
)
case(
    "walked_below_greatest",  # amax keeps a NaN
    lambda self, x: _told(x - x.amax(1, keepdim=True)),
    lambda n: [_unusual(130, 33_000 + n)],
    kernels=1,
    steps=ONE_SIZE,
)
case(
    "walked_layer_norm",
    lambda self, x: F.layer_norm(x, (x.shape[1],)),
    lambda n: [1e3 + r(130, 33_000 + n)],
    tolerance=2e-4,  # of float32 a thousand from zero
    kernels=1,
    steps=ONE_SIZE,
)
case(
    "walked_group_norm",  # a weight for each of three channels of a row
    lambda self, x, weight, bias: F.group_norm(x, 1, weight, bias),
    lambda n: [1e3 + r(130, 3, 12_288 + n), r(3), r(3)],
    tolerance=2e-4,  # of float32 a thousand from zero
    kernels=1,
    steps=ONE_SIZE,
)
case(
    "walked_var_mean",
    lambda self, x: tuple(_told(v) for v in torch.var_mean(x, 1)),
    lambda n: [_unusual(130, 33_000 + n)],
    kernels=1,
    steps=ONE_SIZE,
)
case("walked_argmax", lambda self, x: x.argmax(1), lambda n: [_unusual(130, 33_000 + n)], kernels=1, steps=ONE_SIZE)

# So many elements that a second read takes longer than what the programs of a row tell each other.
case(
    "shared_softmax",
    lambda self, x: _told(torch.softmax(x, 1) * 1e4),
    lambda n: [_unusual(150, 60_000 + n)],
    kernels=2,
    steps=ONE_SIZE,
)

# Few rows, cut in chunks: what the chunks carried is put together like lanes.
case("cut_softmax", lambda self, x: _told(torch.softmax(x, 1) * 1e4), lambda n: [_unusual(5, 50_000 + n)], kernels=4)
case("cut_logsumexp", lambda self, x: _told(torch.logsumexp(x, 1)), lambda n: [_unusual(5, 50_000 + n)])
case(
    "cut_layer_norm",
    lambda self, x: F.layer_norm(x, (x.shape[1],)),
    lambda n: [1e3 + r(3, 50_000 + n)],
    tolerance=2e-4,  # of float32 a thousand from zero
)
case("cut_var_mean", lambda self, x: tuple(_told(v) for v in torch.var_mean(x, 1)), lambda n: [_unusual(5, 50_000 + n)])
case("cut_std_of_all", lambda self, x: x.std(), lambda n: [1e4 + r(300, 200 + n)], tolerance=1e-4)
case("cut_columns_var", lambda self, x: x.var(0), lambda n: [1e3 + r(40_000 + n, 3)], tolerance=1e-4)
case("cut_argmin", lambda self, x: x.argmin(1), lambda n: [-_unusual(5, 50_000 + n)], kernels=2)
case("cut_argmax_of_integers", lambda self, x: x.argmax(1), lambda n: [torch.randint(-9, 9, (3, 50_000 + n))])
case(
    "cut_sum_and_greatest",  # of the same elements: they share a kernel
    lambda self, x: (x.sum(1), x.amax(1)),
    lambda n: [r(3, 50_000 + n)],
)

# In float64, where nothing but the order of the sums differs: a mean far above the deviation.
for _name, _rows in (("walked", 130), ("cut", 3)):
    case(
        f"{_name}_var_of_doubles",
        lambda self, x: x.var(1),
        lambda n, rows=_rows: [1e4 + r(rows, 33_000 + n).double()],
        tolerance=1e-11,
        steps=ONE_SIZE,
    )
    case(
        f"{_name}_log_softmax_of_doubles",
        lambda self, x: torch.log_softmax(x, 1),
        lambda n, rows=_rows: [1e4 + 100 * r(rows, 33_000 + n).double()],
        tolerance=1e-13,
        steps=ONE_SIZE,
    )
case("walked_columns_std", lambda self, x: x.std(0), lambda n: [1e4 + r(700 + n, 40)], tolerance=2e-4, kernels=1)
