"""Modules with weights that are packed, whether that pays or not, and how to have their kernel files."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
from torch import nn

import kernel_lsp.synthesis
from kernel_lsp import why_eager
from kernel_lsp.packed_weights import keeps
from kernel_lsp.schema import Candidate
from kernel_lsp.synthesis import stages
from kernel_lsp.synthesis.schedule.choices import choices
from tests.synthesis.printing.replay_modules import REPLAYED, Perceptron, Residual, candidates, loaded


class Product(nn.Module):
    """A matrix product with a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(48, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


class Shares(nn.Module):
    """A matrix product with what depends on a parameter alone."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8))

    def forward(self, x: torch.Tensor) -> Any:
        return x @ torch.softmax(self.weight, 1).mT


class Returns(Shares):
    """It is a result, too, which the caller may write to."""

    def forward(self, x: torch.Tensor) -> Any:
        shares = torch.softmax(self.weight, 1)
        return x @ shares.mT, shares


class Counts(nn.Module):
    """It depends on a buffer that each call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.ones(4, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares = torch.softmax(self.seen, 1)
        self.seen.add_(1)
        return x @ shares.mT


#: module, shape of its input
MODULES: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "product": (Product, (6, 48)),
    "perceptron": (Perceptron, (3, 64)),
    "residual": (Residual, (2, 16, 8, 8)),
}


def written(
    module: nn.Module, x: torch.Tensor, *, keep: bool = True, tf32: bool = False, **how: Any
) -> list[Candidate]:
    """The candidates for an H100, where products are made of float16 planes whether that pays or not. ``tf32``: convolutions may round."""
    pay = dict.fromkeys(("planes_pay", "float16_pays"), lambda *_: True)
    first = mock.patch.object(kernel_lsp.synthesis, "choices", lambda *given: choices(*given)[:1])
    with first, mock.patch.multiple(stages, tf32_convolutions=lambda: tf32, thin_pays=lambda *_: False, **pay):
        return candidates(module, [x], gpu="H100", keep_packed_weights=keep, **how)


def made(name: str, folder: Path, *, replayed: bool = False) -> tuple[nn.Module, nn.Module, ModuleType, torch.Tensor]:
    """The module in eval mode, its kernel with equal weights, the kernel file, an input; the first candidate that keeps packed weights."""
    kind, shape = MODULES[name]
    torch.manual_seed(0)
    module, x = kind().eval(), torch.randn(shape)
    found = written(module, x, tf32=True)
    source = next(one.source for one in found if keeps(one.source) and one.variant.endswith(REPLAYED) == replayed)
    file = loaded(why_eager.added(source, kind.__name__), folder, f"{name}_{replayed}_kept_triton")
    kernel = getattr(file, f"{kind.__name__}Triton")().eval()
    kernel.load_state_dict(module.state_dict())
    return module, kernel, file, x
