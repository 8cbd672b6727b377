"""Elementwise: functions, broadcasting, dtypes, several outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .registry import CASES, case, module, positive, r


def unary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, x: function(x)


for _name in [
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "tanh",
    "erf",
    "abs",
    "floor",
    "ceil",
    "relu",
    "sin",
    "cos",
    "log1p",
    "expm1",
    "reciprocal",
    "square",
    "neg",
]:
    case(f"one_{_name}", unary(getattr(torch, _name)), lambda n: [positive(7 + n, 33 - 4 * n)])
for _name in [
    "silu",
    "gelu",
    "mish",
    "softplus",
    "elu",
    "selu",
    "hardswish",
    "hardsigmoid",
    "leaky_relu",
    "relu6",
    "logsigmoid",
    "hardtanh",
]:
    case(f"act_{_name}", unary(getattr(F, _name)), lambda n: [r(5, 40 + 3 * n) * 3])
CASES["act_logsigmoid"].tolerance = 5e-5
case("mish_written_out", lambda self, x: torch.tanh(F.softplus(x)) * x, lambda n: [r(5, 40 + n) * 15])
case(
    "tanh_of_other_softplus",
    lambda self, x: torch.tanh(F.softplus(x, 0.5) - F.softplus(x, 1, 3)),
    lambda n: [r(5, 40 + n)],
)
case("tanh_of_softplus_that_ends_early", lambda self, x: torch.tanh(F.softplus(x, 1, 3)), lambda n: [r(5, 40 + n) * 3])
case("gelu_by_tanh", lambda self, x: F.gelu(x, approximate="tanh"), lambda n: [r(5, 40 + n)])
case("broadcast_row", lambda self, x, y: x * y + 1.0, lambda n: [r(4 + n, 9, 17), r(17)])
case("broadcast_col", lambda self, x, y: x / (y.abs() + 1.0), lambda n: [r(4, 9 + n, 17), r(4, 9 + n, 1)])
case("broadcast_outer", lambda self, x, y: x[:, None] - y[None, :], lambda n: [r(13 + n), r(21)])
case(
    "where_mask", lambda self, x, m: torch.where(m, x, torch.zeros_like(x)), lambda n: [r(4, 19 + n), r(4, 19 + n) > 0]
)
case("clamped", lambda self, x: x.clamp(-0.5, 0.7), lambda n: [r(4, 19 + n)])
case("integer_add", lambda self, x, y: x + 2 * y, lambda n: [torch.arange(30 + n), torch.arange(30 + n)])
case("integer_to_float", lambda self, x: x.float() * 0.5, lambda n: [torch.arange(30 + n)])
case("compare", lambda self, x, y: (x > y) & (x < 1.0), lambda n: [r(4, 19 + n), r(4, 19 + n)])
case("power", lambda self, x: x**3 + x**2 + x**0.5 + x**-1, lambda n: [positive(4, 19 + n)])
case("general_power", lambda self, x: x**2.3, lambda n: [positive(4, 19 + n)])


def _filled_with_sizes(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A size where a mask says so, in integers; in the columns of another tensor; alone, in a half type."""
    places = torch.arange(x.shape[1], device=x.device).expand(x.shape).clone()
    places[x < 0] = x.shape[1]
    half = torch.full((x.shape[0], 2), x.shape[1], dtype=torch.float16, device=x.device)
    return places, x.new_full((x.shape[0], 3), x.shape[0]) + x[:, :3], half, torch.sqrt(torch.full_like(x, x.shape[1]))


case("filled_with_sizes", _filled_with_sizes, lambda n: [r(3 + n, 9)], steps=(0, 1, -2))
case("scalar_tensor", lambda self, x, s: x * s, lambda n: [r(4, 19 + n), torch.tensor(1.7)])
case("causal", lambda self, x: torch.tril(x), lambda n: [r(3, 20 + n, 20 + n)])
case(
    "eyes",
    lambda self, x: (
        x @ x.transpose(-1, -2) + 0.01 * torch.eye(x.shape[-2], device=x.device),
        torch.eye(x.shape[-2], x.shape[-1], device=x.device) - x,
        torch.eye(x.shape[-1], 2, dtype=torch.int64, device=x.device) + 1,
        torch.eye(3, dtype=torch.bool, device=x.device) | (x[:, :3, :3] > 0),
        x[:, :3, :4] * torch.eye(3, 4, dtype=torch.cfloat, device=x.device),
    ),
    lambda n: [r(2, 4 + n, 6 + n)],
)
case("one_position", lambda self, x: x * torch.arange(3, 9, device=x.device)[2], lambda n: [r(3, 20 + n)])
case("positions", lambda self, x: x + torch.arange(x.shape[-1], device=x.device), lambda n: [r(3, 20 + n)])
case(
    "half_chain",
    lambda self, x, y: torch.sigmoid(x) * y,
    lambda n: [r(5, 33 + n).half(), r(5, 33 + n).half()],
    tolerance=2e-3,
)
case(
    "bfloat_chain",
    lambda self, x, y: torch.tanh(x) * y,
    lambda n: [r(5, 33 + n).bfloat16(), r(5, 33 + n).bfloat16()],
    tolerance=1e-2,
)
case("up_and_down", lambda self, x: (x.float() * 2.0).to(x.dtype), lambda n: [r(5, 33 + n).half()], tolerance=2e-3)
case("two_outputs", lambda self, x, y: (x + y, x * y), lambda n: [r(5, 33 + n), r(5, 33 + n)], kernels=1)
case("dictionary", lambda self, x: {"sum": x + 1, "product": x * 2}, lambda n: [r(5, 33 + n)], kernels=1)
case(
    "nested_outputs",
    lambda self, x, y: {"both": (x + y, [x * y]), "alone": (x - y,)},
    lambda n: [r(5, 33 + n), r(5, 33 + n)],
    kernels=1,
)
case("list_argument", lambda self, xs: xs[0] + xs[1], lambda n: [[r(5, 33 + n), r(5, 33 + n)]])


def in_place(self: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * 2
    before = y.sum(-1, keepdim=True)
    y += before
    y.clamp_(max=1.5)
    return y, before


def overwritten(self: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """All elements of tensors that hold nothing yet are written before they are read."""
    halves, rows, all = torch.empty_like(x), x.new_empty(3, x.shape[0]), torch.empty(x.shape[0], 4, device=x.device)
    halves[:, :4] = x[:, 4:] * 2
    halves[:, 4:] = x[:, :4]
    for i in range(3):
        rows[i] = x[:, i] + i
    all.copy_(x[:, 2:6]).mul_(0.5)
    return halves, rows * 2, all, torch.empty_like(x[:, 0]).fill_(2.5) - x[:, 1]


case("overwritten", overwritten, lambda n: [r(3 + n, 8)])
case("in_place", in_place, lambda n: [r(3, 7 + n, 16)])
case("number_transposed", lambda self, x, y: y * x.transpose(0, -1), lambda n: [torch.tensor(0.5), r(3 + n)], kernels=1)
case(
    "number_and_elements",
    lambda self, x, y: torch.logical_and(x > 0, y),
    lambda n: [r(5 + n), torch.tensor(0.5)],
)


# what all rows share, where L2 does not hold it until the next row: programs take the same block of all rows
class Shared(nn.Module):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(r(*shape)), nn.Parameter(r(*shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x * self.weight + self.bias) * x[..., :1]


module("shared_by_rows", Shared, (2048,), lambda n: [r(3 + n, 2048)], no_cache=True)
module("shared_by_planes", Shared, (3, 1024), lambda n: [r(2, 2 + n, 3, 1024)], no_cache=True)
module("shared_by_uneven_rows", Shared, (1500,), lambda n: [r(3 + n, 1500)], no_cache=True)  # no whole number of blocks


def _to_whole_numbers(self: object, x: torch.Tensor, large: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Rounded with the gradient passed through, as quantizers do; the index is a whole number only in that order. And a sum that cancels."""
    whole = x + (x.round() - x)
    return (whole + 7).to(torch.int32), whole == x.round(), large + (x - large), (large - x) + (x + (1 - large))


case(
    "rounded_straight_through",
    _to_whole_numbers,
    lambda n: [r(6 + n, 33) * 5, r(33) * 1e6],
    kernels=1,
)
case(
    "numbers_in_float64",  # that float32 does not hold, in calls and beside masks
    lambda self, x: (
        (x.clamp(-0.2, 0.6), x.abs() ** 1.7, torch.fmod(x, 0.7), torch.where(x > 0, 0.1, 0.7).double()),
        (torch.sign(x) * 0.1, F.softshrink(x, 0.3)),
        F.pad(x, (1, 1), value=0.3),
    ),
    lambda n: [r(4 + n, 9).double()],
    kernels=2,
    tolerance=1e-13,
)

# vmap divides by a number in the tensors' dtype.
case(
    "number_under_vmap",
    lambda self, x: torch.vmap(lambda row: torch.exp(-row.pow(2).sum() / 2))(x),
    lambda n: [r(3 + n, 5)],
    kernels=1,
)
