"""Modules whose launches take longer than their kernels, and how to have their kernel files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp import why_eager
from kernel_lsp.schema import Candidate
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture

REPLAYED = "replayed as a CUDA graph"
LEFT = f"convolutions left to torch, {REPLAYED}"


class Perceptron(nn.Module):
    """Eight layers; a batch of one leaves a GPU idle."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = F.gelu(layer(x))
        return x


class Residual(nn.Module):
    """Three residual blocks of two convolutions, norms and activations, and a pool."""

    def __init__(self, channels: int = 16, blocks: int = 3) -> None:
        super().__init__()
        self.first = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(blocks))
        self.second = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(blocks))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2 * blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, (first, second) in enumerate(zip(self.first, self.second, strict=True)):
            inner = F.relu(self.norms[2 * i](first(x)))
            x = F.relu(self.norms[2 * i + 1](second(inner)) + x)
        return x.mean((2, 3))


class Several(nn.Module):
    """Several inputs, and results in a dictionary with a list in it."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> dict[str, Any]:
        weights = torch.softmax(self.query(x) @ self.key(memory).mT, -1)
        return {"out": weights @ self.value(memory), "more": [weights, None]}


class Inverted(nn.Module):
    """An operator of torch that waits for the GPU, which cannot be captured, and nothing says so beforehand."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        eye = torch.eye(x.shape[-1], device=x.device)
        inverse = torch.linalg.inv(torch.tanh(self.first(x)) + 4 * eye)
        return self.third(torch.tanh(self.second(inverse)))


class Sorted(nn.Module):
    """Operators of torch between kernels."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = torch.sort(F.gelu(self.first(x)), dim=-1)
        return self.second(values), places


#: module, shapes of its inputs
MODULES: dict[str, tuple[type[nn.Module], list[tuple[int, ...]]]] = {
    "perceptron": (Perceptron, [(3, 64)]),
    "residual": (Residual, [(2, 16, 8, 8)]),
    "several": (Several, [(2, 5, 48), (2, 7, 48)]),
    "sorted": (Sorted, [(6, 40)]),
}


def candidates(module: nn.Module, inputs: list[torch.Tensor], **how: Any) -> list[Candidate]:
    """What the synthesizer writes for a module on the CPU, in the mode that it is in."""
    exported = capture(module, tuple(inputs), training=module.training)
    return synthesize(module, exported, class_name=type(module).__name__, import_from=type(module).__module__, **how)


def variant(made: list[Candidate], label: str) -> Candidate:
    (found,) = (one for one in made if one.variant == label)
    return found


def loaded(source: str, folder: Path, name: str) -> ModuleType:
    """A kernel file as its user would import it."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def made(name: str, label: str, folder: Path) -> tuple[nn.Module, nn.Module, ModuleType, list[tuple[int, ...]]]:
    """The module in eval mode with weights off their initial values, its kernel with the same ones, the kernel file, shapes."""
    kind, shapes = MODULES[name]
    torch.manual_seed(0)
    module = kind().eval()
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.dtype.is_floating_point:
                tensor.add_(torch.rand_like(tensor), alpha=0.1)
    source = variant(candidates(module, [torch.randn(shape) for shape in shapes]), label).source
    source = why_eager.added(source, kind.__name__)
    file = loaded(source, folder, f"{name}_{len(label)}_triton")
    kernel = getattr(file, f"{kind.__name__}Triton")().eval()
    kernel.load_state_dict(module.state_dict())
    return module, kernel, file, shapes
