"""What the check of a kernel's envelope takes the host: microseconds of ``_in_envelope``, for modules of few and of many tensors.

    python benchmarks/envelope.py [--only NAME,NAME] [--out FOLDER] [--against FOLDER]

A row for each module: modules and tensors that the envelope looks at, the least time of several loops, and the same of the
cheapest loop over these tensors that there is: ``[*map(is_contiguous, tensors)]``. Needs no GPU: the kernels are not run.
``--out`` keeps the kernel files; with ``--against`` those that another version kept are timed in turn with the new ones, and
their time comes first.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # the kernels are for tensors of the CPU then

import torch
import torch.nn.functional as F
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "samples"), str(ROOT / "benchmarks")]
from support.kernels import loaded  # noqa: E402

from kernel_lsp.synthesis import synthesize  # noqa: E402
from kernel_lsp.synthesis.capture import capture  # noqa: E402
from tests.synthesis.printing.replay_modules import Perceptron, Residual  # noqa: E402

_ROUNDS, _SECONDS = 60, 0.004


class Projections(nn.Module):
    """Three projections and attention."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))


class Block(nn.Module):
    """A residual block of ResNet: two convolutions, or three with a bottleneck."""

    def __init__(self, width: int, inner: int, stride: int, deep: bool) -> None:
        super().__init__()
        out = inner * (4 if deep else 1)
        sizes = [(width, inner, 1, 1), (inner, inner, 3, stride), (inner, out, 1, 1)]
        sizes = sizes if deep else [(width, inner, 3, stride), (inner, inner, 3, 1)]
        self.convs = nn.ModuleList(nn.Conv2d(i, o, k, s, k // 2, bias=False) for i, o, k, s in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _, o, _, _ in sizes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or width != out:
            self.downsample = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            y = norm(conv(y))
            y = self.relu(y) if i + 1 < len(self.convs) else y
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """ResNet18, or with ``deep`` blocks of three convolutions ResNet101."""

    def __init__(self, counts: tuple[int, ...] = (2, 2, 2, 2), deep: bool = False) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.pool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        width, stages = 64, []
        for stage, count in enumerate(counts):
            blocks = []
            for i in range(count):
                blocks.append(Block(width, 64 << stage, 2 if stage and not i else 1, deep))
                width = (64 << stage) * (4 if deep else 1)
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.last, self.classes = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stages(self.pool(self.relu(self.norm(self.conv(x)))))
        return self.classes(torch.flatten(self.last(x), 1))


def _sample(name: str, kind: str, *init: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        found: nn.Module = getattr(importlib.import_module(name), kind)(*init)
        return found

    return make


#: name → what makes the module, shape of its input, what its class is imported from
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "softmax (sample)": (_sample("softmax", "TemperatureSoftmax"), (64, 128), "softmax"),
    "RMSNorm (sample)": (_sample("rms_norm", "RMSNorm", 128), (64, 128), "rms_norm"),
    "LinearReLU (sample)": (_sample("linear_relu", "LinearReLU", 64, 64), (64, 64), "linear_relu"),
    "LayerNorm + GELU (sample)": (_sample("layer_norm_gelu", "LayerNormGELU", 64), (64, 64), "layer_norm_gelu"),
    "three projections and attention": (Projections, (2, 16, 64), "envelope"),
    "eight linear layers": (Perceptron, (3, 64), Perceptron.__module__),
    "three residual blocks": (Residual, (2, 16, 8, 8), Residual.__module__),
    "ResNet18": (ResNet, (1, 3, 64, 64), "envelope"),
    "ResNet101": (lambda: ResNet((3, 4, 23, 3), True), (1, 3, 64, 64), "envelope"),
}


def _least(calls: list[Callable[[], Any]]) -> list[float]:
    """Microseconds of calls, timed in turn: of several loops the least, which other work makes longer and nothing shorter."""
    timers = [timeit.Timer(call) for call in calls]
    times = [max(1, int(_SECONDS / max(timer.timeit(10) / 10, 1e-7))) for timer in timers]
    best = [float("inf")] * len(calls)
    for _ in range(_ROUNDS):
        found = [timer.timeit(number) / number * 1e6 for timer, number in zip(timers, times, strict=True)]
        best = [*map(min, best, found)]
    return best


def _file(folder: Path, name: str) -> Path:
    return folder / f"{''.join(c if c.isalnum() else '_' for c in name)}_triton.py"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else [*MODULES]
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores", flush=True)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        for name in wanted:
            make, shape, origin = MODULES[name]
            torch.manual_seed(0)
            module, x = make().eval().requires_grad_(False), torch.randn(shape)
            made = synthesize(module, capture(module, (x,)), class_name=type(module).__name__, import_from=origin)
            folder = options.out or Path(scratch)
            folder.mkdir(exist_ok=True)
            _file(folder, name).write_text(made[0].source)
            kernels = [loaded(_file(one, name), module) for one in (options.against, folder) if one is not None]
            held = [kernel._in_envelope(x) for kernel in kernels]
            assert all(held), name
            read = held[-1] if isinstance(held[-1], tuple) else ()
            calls = [lambda kernel=kernel, x=x: kernel._in_envelope(x) for kernel in kernels]
            times = _least([*calls, lambda read=read: [*map(torch.Tensor.is_contiguous, read)]])
            modules = len([*kernels[-1].modules()]) - 1
            print(
                "|", " | ".join([name, f"{modules}, {len(read)}", *(f"{time:.1f}" for time in times)]), "|", flush=True
            )


if __name__ == "__main__":
    main()
