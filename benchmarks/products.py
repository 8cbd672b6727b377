"""Times what the synthesizer proposes for products and convolutions, beside eager and torch.compile.

``python benchmarks/products.py [NAME…] [--json FILE]`` on a machine with a CUDA GPU. All ways of a module run in turn in one process, the
L2 cache is overwritten before each call, and times are CUDA events' (median of the rounds), all passes over the operands included.
The error is the largest difference from eager's result, over the largest magnitude of that.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from support.kernels import written
from support.turns import in_turn
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture

_ROUNDS = 7
_FLUSHED = 160 * 2**20  # bytes, more than the L2 cache of any GPU


class Product(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, y)


class Linear(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x)) * 2.0


class Convolution(nn.Module):
    """A convolution, ReLU and a bias for each channel."""

    def __init__(self, kind: type[nn.Module], *init: Any, **more: Any) -> None:
        super().__init__()
        self.convolution = kind(*init, **more)
        self.bias = nn.Parameter(torch.randn(init[1], *[1] * {"1": 1, "2": 2, "3": 3}[kind.__name__[-2]]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.convolution(x)) + self.bias


def _convolution(kind: type[nn.Module], shape: tuple[int, ...], *init: Any, **more: Any) -> Callable[[], Any]:
    return lambda: (Convolution(kind, *init, **more), [torch.rand(*shape)])


def _product(left: tuple[int, ...], right: tuple[int, ...]) -> Callable[[], Any]:
    return lambda: (Product(), [torch.rand(*left), torch.rand(*right)])


MODULES: dict[str, Callable[[], Any]] = {
    "square 4096": _product((4096, 4096), (4096, 4096)),
    "batched 128 x 512 x 1024 x 2048": _product((128, 512, 1024), (128, 1024, 2048)),
    "irregular 8205 x 2949 x 5921": _product((8205, 2949), (2949, 5921)),
    "short sum 32768 x 64 x 32768": _product((32768, 64), (64, 32768)),
    "long sum 256 x 524288 x 256": _product((256, 524288), (524288, 256)),
    "linear 1024 x 8192 x 8192": lambda: (Linear(8192, 8192), [torch.rand(1024, 8192)]),
    "linear 128 x 8192 x 8192": lambda: (Linear(8192, 8192), [torch.rand(128, 8192)]),
    "linear 16 x 8192 x 8192": lambda: (Linear(8192, 8192), [torch.rand(16, 8192)]),
    "conv2d 64-128 3x3": _convolution(nn.Conv2d, (128, 64, 128, 128), 64, 128, 3),
    "conv2d 64-128 5x7": _convolution(nn.Conv2d, (8, 64, 512, 256), 64, 128, (5, 7)),
    "conv2d 64-128 3x3 stride 2": _convolution(nn.Conv2d, (16, 64, 112, 112), 64, 128, 3, stride=2, padding=1),
    "conv2d 256-256 3x3": _convolution(nn.Conv2d, (10, 256, 56, 56), 256, 256, 3, padding=1),
    "conv2d 16-128 3x3": _convolution(nn.Conv2d, (4, 16, 512, 512), 16, 128, 3),
    "conv1d 64-128 3": _convolution(nn.Conv1d, (32, 64, 65536), 64, 128, 3),
    "conv3d 32-64 3x3x3": _convolution(nn.Conv3d, (8, 32, 32, 64, 64), 32, 64, 3, padding=1),
    "conv2d 8-64 3x3": _convolution(nn.Conv2d, (128, 8, 256, 256), 8, 64, 3),
    "conv2d 3-64 7x7 stride 2": _convolution(nn.Conv2d, (64, 3, 224, 224), 3, 64, 7, stride=2, padding=3),
    "conv2d 32-64 3x3 4 groups": _convolution(nn.Conv2d, (64, 32, 128, 128), 32, 64, 3, groups=4),
    "conv3d 8-64 3x3x3": _convolution(nn.Conv3d, (128, 8, 16, 64, 64), 8, 64, 3),
    "conv3d 3-16 3x3x3": _convolution(nn.Conv3d, (128, 3, 16, 64, 64), 3, 16, 3),
    "conv3d 3-64 3x3x3": _convolution(nn.Conv3d, (16, 3, 64, 64, 64), 3, 64, 3),
    "conv3d 3-64 3x5x7": _convolution(nn.Conv3d, (16, 3, 64, 64, 64), 3, 64, (3, 5, 7)),
    "transposed 2d 64-64 3x3": _convolution(nn.ConvTranspose2d, (8, 64, 512, 512), 64, 64, 3),
    "transposed 2d 64-128 3x3 stride 2": _convolution(
        nn.ConvTranspose2d, (16, 64, 128, 128), 64, 128, 3, stride=2, padding=1, output_padding=1
    ),
    "transposed 2d 32-64 5x5 stride 3": _convolution(
        nn.ConvTranspose2d, (16, 32, 64, 128), 32, 64, 5, stride=3, padding=1
    ),
    "transposed 3d 32-16 3x3x3 stride 2": _convolution(
        nn.ConvTranspose3d, (16, 32, 16, 32, 32), 32, 16, 3, stride=2, padding=1, output_padding=1
    ),
    "transposed 3d 32-32 3x5x7 stride 2 4 groups": _convolution(
        nn.ConvTranspose3d,
        (8, 32, 12, 24, 48),
        32,
        32,
        (3, 5, 7),
        stride=2,
        padding=(1, 2, 3),
        output_padding=1,
        groups=4,
    ),
    "transposed 3d 32-32 3x3x3 stride 2 4 groups": _convolution(
        nn.ConvTranspose3d, (4, 32, 32, 64, 128), 32, 32, 3, stride=2, padding=1, groups=4
    ),
    "transposed 3d 48-48 3x3x3": _convolution(nn.ConvTranspose3d, (8, 48, 64, 64, 64), 48, 48, 3),
}


def ways(module: nn.Module, inputs: list[torch.Tensor], folder: Path) -> dict[str, Callable[[], torch.Tensor]]:
    """Eager, torch.compile and each candidate by its variant; all give the module's result."""
    kind = type(module)
    exported = capture(module, tuple(inputs))
    gpu = torch.cuda.get_device_name()
    compiled = torch.compile(module)
    found: dict[str, Callable[[], torch.Tensor]] = {
        "eager": lambda: module(*inputs),
        "torch.compile": lambda: compiled(*inputs),
    }
    candidates = synthesize(module, exported, class_name=kind.__name__, import_from=kind.__module__, gpu=gpu)
    for candidate in candidates:
        kernel = written(candidate.source, folder, module)
        found[candidate.variant or "no rounding"] = lambda kernel=kernel: kernel(*inputs)
    return found


def measured(found: dict[str, Callable[[], torch.Tensor]]) -> list[dict[str, Any]]:
    """A row for each way: its median time in microseconds and its error, or what it raised."""
    wanted = found["eager"]()
    rows, running = [], {}
    for name, call in found.items():
        try:
            error = ((call() - wanted).abs().max() / wanted.abs().max()).item()
            rows.append({"way": name, "error": error})
            running[name] = call
        except Exception as problem:
            rows.append({"way": name, "problem": str(problem)})
    times = in_turn(running, _ROUNDS, _FLUSHED)
    for row in rows:
        if row["way"] in times:
            row["microseconds"] = statistics.median(times[row["way"]])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MODULES)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append the rows, a line each")
    options = parser.parse_args()
    sys.modules.setdefault("products", sys.modules["__main__"])
    for name in options.names or MODULES:
        torch.manual_seed(0)
        module, inputs = MODULES[name]()
        type(module).__module__ = "products"
        module, inputs = module.to("cuda").eval(), [x.to("cuda") for x in inputs]
        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            rows = measured(ways(module, inputs, Path(folder)))
        print(f"{name} ({torch.cuda.get_device_name()}, torch {torch.__version__})")
        for row in sorted(rows, key=lambda row: row.get("microseconds", float("inf"))):
            figures = row.get("problem") or f"{row['microseconds']:10.1f} µs  error {row['error']:.1e}"
            print(f"  {row['way']:70} {figures}", flush=True)
        if options.json is not None:
            with options.json.open("a") as file:
                file.writelines(json.dumps({"module": name, **row}) + "\n" for row in rows)


if __name__ == "__main__":
    main()
