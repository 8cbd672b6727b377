"""Modules whose launches take longer than their kernels: launched one by one, replayed from a CUDA graph, eager, torch.compile.

    python benchmarks/replay.py [--out FILE] [--without-compile]

One JSON object a line, for each module and way: ``waited``, median microseconds of a call with the GPU idle before it and
waited for after it; ``queued``, microseconds a call of many in a row; ``copies``, microseconds for the copies of inputs and results
alone. With torch's precision for products and convolutions as it is by default. Needs a CUDA GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "samples"), str(ROOT / "benchmarks")]
from support.kernels import written  # noqa: E402

from kernel_lsp.synthesis import synthesize  # noqa: E402
from kernel_lsp.synthesis.capture import capture  # noqa: E402

_ROUNDS, _QUEUED = 300, 1000


class Residual(nn.Module):
    """Four residual blocks of two convolutions, norms and activations, batch 1."""

    def __init__(self, channels: int = 64, blocks: int = 4) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2 * blocks))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2 * blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(0, len(self.convs), 2):
            inner = F.relu(self.norms[i](self.convs[i](x)))
            x = F.relu(self.norms[i + 1](self.convs[i + 1](inner)) + x)
        return x.mean((2, 3))


class Perceptron(nn.Module):
    """Eight layers, batch 1."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = F.gelu(layer(x))
        return x


class SwiGLUs(nn.Module):
    """Four blocks of an RMS norm and a gated MLP, 16 tokens."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.norms = nn.ParameterList(nn.Parameter(torch.ones(width)) for _ in range(4))
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(4))
        self.ups = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(4))
        self.downs = nn.ModuleList(nn.Linear(2 * width, width, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for norm, gate, up, down in zip(self.norms, self.gates, self.ups, self.downs, strict=True):
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * norm
            x = x + down(F.silu(gate(y)) * up(y))
        return x


def _cross_entropy() -> tuple[nn.Module, list[torch.Tensor], str]:
    """The sample with two launches, at a size where they matter."""
    spec = importlib.util.find_spec("cross_entropy")
    assert spec is not None and spec.loader is not None
    file = importlib.util.module_from_spec(spec)
    sys.modules["cross_entropy"] = file
    spec.loader.exec_module(file)
    (kind,) = (k for k in vars(file).values() if isinstance(k, type) and k.__module__ == "cross_entropy")
    return kind(), [torch.randn(64, 1000), torch.randint(0, 1000, (64,))], "cross_entropy"


def modules() -> dict[str, tuple[nn.Module, list[torch.Tensor], str]]:
    """Name → module, example inputs, what its class is imported from."""
    torch.manual_seed(0)
    return {
        "residual": (Residual(), [torch.randn(1, 64, 14, 14)], "replay"),
        "perceptron": (Perceptron(), [torch.randn(1, 512)], "replay"),
        "gated": (SwiGLUs(), [torch.randn(16, 256)], "replay"),
        "cross entropy": _cross_entropy(),
    }


def kernels(module: nn.Module, inputs: list[torch.Tensor], origin: str, folder: Path) -> dict[str, nn.Module]:
    """Label → kernel with the module's weights, for the candidates that replay and their direct launches."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    exported = capture(module, tuple(inputs))
    made = synthesize(module, exported, class_name=type(module).__name__, import_from=origin, gpu=gpu)
    found: dict[str, nn.Module] = {}
    for i, one in enumerate(made):
        replayed = one.variant.endswith("replayed as a CUDA graph")
        followed = i + 1 < len(made) and made[i + 1].variant.endswith("replayed as a CUDA graph")
        if replayed or followed:
            found[one.variant or "launched directly"] = written(one.source, folder, module)
    return found


def waited(call: Callable[[], Any], rounds: int = _ROUNDS) -> float:
    """Median microseconds of a call, the GPU idle before and waited for after it."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times)


def queued(call: Callable[[], Any]) -> float:
    """Microseconds a call of many in a row."""
    best = float("inf")
    for _ in range(3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(_QUEUED):
            call()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - began) / _QUEUED * 1e6)
    return best


def host(call: Callable[[], Any]) -> float:
    """Median microseconds until a call returns, the GPU not waited for."""
    times = []
    for i in range(_ROUNDS):
        if i % 20 == 0:
            torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times)


def measure(name: str, module: nn.Module, inputs: list[torch.Tensor], origin: str, folder: Path, compiled: bool) -> Any:
    """Yields a row for each way to run the module."""
    ways: dict[str, Any] = kernels(module.eval(), inputs, origin, folder)
    module.cuda()
    on_gpu = [x.cuda() for x in inputs]
    for kernel in ways.values():
        kernel.__dict__ = dict(module.__dict__)
    ways["eager"] = module
    if compiled:
        ways["torch.compile"] = torch.compile(module)
        ways["torch.compile, reduce-overhead"] = torch.compile(module, mode="reduce-overhead")
    with torch.no_grad():
        expected = module(*on_gpu)
        for way, one in ways.items():
            began = time.perf_counter()
            for _ in range(5):
                out = one(*on_gpu)
            torch.cuda.synchronize()
            row = {
                "module": name,
                "way": way,
                "first_calls_ms": round((time.perf_counter() - began) * 1e3, 1),
                "error": float((out - expected).abs().max() / expected.abs().max()),
            }
            call = lambda one=one: one(*on_gpu)  # noqa: E731
            row |= {"waited_us": waited(call), "queued_us": queued(call), "host_us": host(call)}
            if hasattr(one, "_in_envelope"):
                inside = lambda one=one: one._in_envelope(*on_gpu)  # noqa: E731
                assert inside()
                row["envelope_us"] = host(inside)
            yield {key: round(value, 2) if key.endswith("_us") else value for key, value in row.items()}
        copies = [x.clone() for x in on_gpu]

        def copied() -> None:
            for copy, x in zip(copies, on_gpu, strict=True):
                copy.copy_(x)
            expected.clone()

        yield {
            "module": name,
            "way": "copies alone",
            "waited_us": round(waited(copied), 2),
            "host_us": round(host(copied), 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="where the rows go, too")
    parser.add_argument("--without-compile", action="store_true")
    given = parser.parse_args()
    import triton

    rows: list[Any] = [
        {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "python": platform.python_version(),
        }
    ]
    print(json.dumps(rows[0]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, (module, inputs, origin) in modules().items():
            for row in measure(name, module, inputs, origin, Path(folder), not given.without_compile):
                rows.append(row)
                print(json.dumps(row), flush=True)
                if given.out:
                    given.out.write_text("".join(json.dumps(one) + "\n" for one in rows))


if __name__ == "__main__":
    main()
