"""Complex tensors, which kernels compute with as pairs: rotary embeddings, Fourier layers, arithmetic."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .registry import case, module, r


def z(*shape: int) -> torch.Tensor:
    return torch.complex(r(*shape), r(*shape))


class ComplexRope(nn.Module):
    """As in the first Llama: a table of complex numbers of size one."""

    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(20.0), 10000.0 ** (-torch.arange(0, 16, 2) / 16))
        self.register_buffer("cis", torch.polar(torch.ones_like(angles), angles))

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def turned(x: torch.Tensor) -> torch.Tensor:
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * self.cis[: x.shape[1], None]).flatten(3).type_as(x)

        return turned(q), turned(k)


class PolarRope(nn.Module):
    """The angles are computed in forward."""

    def forward(self, q: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(q.shape[1], device=q.device, dtype=torch.float32)[:, None] * torch.tensor(
            [1.0, 0.1, 0.01], device=q.device
        )
        cis = torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(torch.view_as_complex(q.unflatten(-1, (3, 2))) * cis).flatten(-2)


class SpectralConv(nn.Module):
    """A Fourier layer: torch transforms, a kernel multiplies the lowest modes by weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4, 5, dtype=torch.cfloat))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x)
        out = torch.zeros_like(spectrum)
        out[..., :5] = torch.einsum("bix,iox->box", spectrum[..., :5], self.weight)
        return torch.fft.irfft(out, n=x.shape[-1]) + x


class ComplexLinear(nn.Module):
    """Its weights and its input are complex."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 8, dtype=torch.cfloat))
        self.bias = nn.Parameter(torch.randn(8, dtype=torch.cfloat))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x @ self.weight + self.bias
        return y.abs(), y.angle(), y.conj() * 1j


def _mobius(self: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (2 * x + 1) / (x - 3j), torch.exp(x * 0.5j).real, (x / 2).imag


def _masked(self: nn.Module, mask: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.where(mask > 0, mask * x, x.sum(0)), torch.stack([x.real, x.imag], 1)


def _halves(self: nn.Module, x: torch.Tensor) -> Any:
    first, second = torch.cat([x, x.real], 0).chunk(2)
    padded = F.pad(x, (1, 2)) + 1.0, F.pad(x, (1, 1), value=2.0)  # the second by torch
    return (first + second.roll(1, 0)).transpose(0, 1), torch.complex(x.real, x.imag.abs()) - 1.0, *padded


def _shapes(self: nn.Module, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A complex tensor lends its shape, or its dtype, to real ones."""
    first, second = torch.broadcast_tensors(x[:1], y)
    return x[:1].expand_as(y) * 2.0, first + 1.0, second + first, x.sum(-1, dtype=torch.cfloat) * 2j, F.normalize(y)


def _constants(self: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.clone()
    y[0] = 3j
    weights = torch.tensor([1j, 2, 3, 4, 5, 6], device=x.device)
    return y * torch.tensor(1 + 2j), 2 - x, torch.true_divide(x, 2), x.square(), x * weights


def _conjugated(self: nn.Module, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Some operators of torch give tensors that are conjugated when they are read."""
    return torch.fft.ihfft(x) * 2, y.mH * 2 + 1, F.linear(y, y[:2])


class Delay(nn.Module):
    """Returns what a buffer held before."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(4, 6, dtype=torch.cfloat))
        self.register_buffer("before", torch.zeros(4, 6, dtype=torch.cfloat))
        self.register_buffer("size", torch.zeros(4, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.before.copy_(self.last)
        self.last.copy_(x * 1j)
        self.size.copy_(x.abs())
        return self.before + x


class Spectrogram(nn.Module):
    """The number of windows follows from the length."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.mel = nn.Parameter(torch.rand(5, 9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(x, 16, 4, window=self.window, return_complex=True)
        return torch.log(self.mel @ spectrum.abs().pow(2) + 1e-3)


module("complex_spectrogram", Spectrogram, (), lambda n: [r(2, 40 + 4 * n)], kept=1)
module("complex_rope", ComplexRope, (), lambda n: [r(2, 5 + n, 3, 16), r(2, 5 + n, 1, 16)])
module("complex_polar", PolarRope, (), lambda n: [r(2, 5 + n, 6)])
module("complex_spectral", SpectralConv, (), lambda n: [r(2, 4, 16 + 2 * n)], kept=2)
module("complex_linear", ComplexLinear, (), lambda n: [z(3 + n, 6)])
case("complex_mobius", _mobius, lambda n: [z(5 + n, 7)])
case("complex_masked", _masked, lambda n: [r(4 + n, 6), z(4 + n, 6)])
case("complex_shapes", _shapes, lambda n: [r(4 + n, 6), z(4 + n, 6)])
case("complex_constants", _constants, lambda n: [z(4 + n, 6)])
case("complex_conjugated", _conjugated, lambda n: [r(4 + n, 6), z(4 + n, 6)], kept=1)
module("complex_delay", Delay, (), lambda n: [z(4, 6)], steps=(0,))
case("complex_halves", _halves, lambda n: [z(4 + n, 6)], kept=1)


def _imaginary(self: nn.Module, x: torch.Tensor, y: torch.Tensor, size: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Real tensors and complex numbers, of unlike shapes; one of them of none."""
    turned = torch.exp(x * 1j * size), 1j * y, size * (1 + 2j), x * (y * 1j), -torch.exp(x) + 1j * y
    return *turned, torch.tensor(2.0) * 1j * x, size * 1j * x, x.double().float() * torch.complex(y, y)


case("complex_imaginary", _imaginary, lambda n: [r(4 + n, 6), r(6), torch.tensor(0.7)])
