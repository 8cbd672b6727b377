"""float8: read, rounded to, and multiplied with scales. K and N are multiples of 16, as torch wants them on a GPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .registry import case, module, r

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
ROUNDED = 8e-3  # one unit in the last place of bfloat16


def eighths(*shape: int, dtype: torch.dtype = E4M3) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


def scales(*shape: int) -> torch.Tensor:
    return torch.rand(*shape) + 0.5


case("float8_rounded", lambda self, x: (x * 2).to(E4M3), lambda n: [r(9 + n, 33) * 150], kernels=1)
case("float8_e5m2_rounded", lambda self, x: (x * 2).to(E5M2), lambda n: [r(9 + n, 33) * 6000], kernels=1)
case("float8_of_integers", lambda self, x: x.to(E4M3), lambda n: [torch.arange(40 + n)], kernels=1)
case("float8_of_doubles", lambda self, x: x.to(E5M2), lambda n: [r(9 + n, 33).double()], kernels=1)
case("float8_read", lambda self, x: torch.relu(x.to(torch.float32)), lambda n: [eighths(9 + n, 33)], kernels=1)
case("float8_read_half", lambda self, x: x.bfloat16() * 2, lambda n: [eighths(9 + n, 33, dtype=E5M2)], kernels=1)
case("float8_not_zero", lambda self, x: x.to(torch.bool), lambda n: [eighths(9 + n, 33)], kernels=1)
case(
    "float8_and_back",
    lambda self, x, s: (x / s).to(E4M3).to(torch.float32) * s,
    lambda n: [r(9 + n, 33), scales(9 + n, 1)],
    kernels=1,
)
case(
    "float8_table",
    lambda self, table, words: F.embedding(words, table).to(torch.float32) * 0.5,
    lambda n: [eighths(40, 24), torch.randint(0, 40, (5 + n,))],
    kernels=1,
)
case("float8_bits", lambda self, x: x.view(torch.uint8) + 1, lambda n: [eighths(9 + n, 33)], kept=1)
case("float8_arithmetic", lambda self, x: torch.relu((x * x).to(torch.float32)), lambda n: [eighths(9 + n, 33)], kept=1)


class _Scaled(nn.Module):
    """A weight in float8 with its scale: x [M, K] @ weight.T."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        rows: bool = False,
        bias: bool = False,
        out: torch.dtype = torch.bfloat16,
        dtype: torch.dtype = E4M3,
        fast: bool = False,
    ) -> None:
        super().__init__()
        self.register_buffer("weight", eighths(outputs, inputs, dtype=dtype))
        self.register_buffer("scale", scales(1, outputs) if rows else scales(1)[0])
        self.register_buffer("bias", torch.randn(outputs, dtype=out) if bias else None)
        self.out, self.fast = out, fast

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch._scaled_mm(
            x,
            self.weight.t(),
            scale_a=scale,
            scale_b=self.scale,
            bias=self.bias,
            out_dtype=self.out,
            use_fast_accum=self.fast,
        )


module("scaled_product", _Scaled, (96, 80), lambda n: [eighths(20 + n, 96), scales(1)[0]], kernels=1, tolerance=ROUNDED)
module(
    "scaled_product_rows",
    _Scaled,
    (96, 80, True, True),
    lambda n: [eighths(20 + n, 96), scales(20 + n, 1)],
    kernels=1,
    tolerance=ROUNDED,
)
module(
    "scaled_product_fast",
    _Scaled,
    (96, 80, False, False, torch.float32, E4M3, True),
    lambda n: [eighths(20 + n, 96), scales(1, 1)],
    kernels=1,
    tolerance=2e-3,  # of a GPU's tensor cores
)
module(
    "scaled_product_e5m2",
    _Scaled,
    (96, 80, False, True, torch.float16, E5M2),
    lambda n: [eighths(20 + n, 96), scales(1)],
    kernels=1,
    tolerance=2e-3,
)
module(
    "scaled_product_one_row",
    _Scaled,
    (96, 80, True),
    lambda n: [eighths(1, 96), scales(1, 1)],
    kernels=1,
    tolerance=ROUNDED,
)
module(
    "scaled_product_square",
    _Scaled,
    (160, 144),
    lambda n: [eighths(130 + n, 160), scales(1)[0]],
    kernels=1,
    tolerance=ROUNDED,
)
module(
    "scaled_product_split",
    _Scaled,
    (4096, 64, True),
    lambda n: [eighths(5 + n, 4096), scales(5 + n, 1)],
    kernels=2,
    tolerance=ROUNDED,
)
case(
    "scaled_product_of_two",
    lambda self, x, y, s: torch._scaled_mm(x, y.t(), s, s, out_dtype=torch.bfloat16),
    lambda n: [eighths(20 + n, 96), eighths(64, 96), scales(1)[0]],
    kernels=1,
    tolerance=ROUNDED,
)
case(
    "scaled_product_in_float8",
    lambda self, x, y, s: torch._scaled_mm(x, y.t(), s, s, out_dtype=E4M3).to(torch.float32),
    lambda n: [eighths(20 + n, 96), eighths(64, 96), scales(1)[0]],
    kept=1,
)


class _Quantized(nn.Module):
    """The scale of x is found on the way: one for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", eighths(48, 64))
        self.register_buffer("scale", scales(1, 48))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax(-1, keepdim=True).float() / 448
        x8 = (x / scale).clamp(-448, 448).to(E4M3)
        return F.silu(torch._scaled_mm(x8, self.weight.t(), scale, self.scale, out_dtype=torch.bfloat16))


module("quantized_linear", _Quantized, (), lambda n: [r(20 + n, 64)], kernels=2, tolerance=ROUNDED)


class _ByHand(nn.Module):
    """Converted before the product, and scaled after it."""

    def __init__(self, inputs: int, outputs: int, through: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("weight", eighths(outputs, inputs))
        self.register_buffer("scale", scales(1)[0])
        self.through = through

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.to(E4M3).to(self.through) @ self.weight.to(self.through).T) * self.scale


module("float8_linear", _ByHand, (96, 80, torch.float32), lambda n: [r(20 + n, 96)], kernels=2)
module("float8_linear_long", _ByHand, (2304, 48, torch.float32), lambda n: [r(5 + n, 2304)], kernels=3)
module("float8_linear_half", _ByHand, (96, 80, torch.bfloat16), lambda n: [r(20 + n, 96)], kernels=2, tolerance=ROUNDED)
case(
    "float8_weight_alone",  # what it is multiplied with is no float8, so it stays a product in float32
    lambda self, x, w: x @ w.to(torch.float32).T,
    lambda n: [r(20 + n, 96), eighths(64, 96)],
    kernels=1,
)
