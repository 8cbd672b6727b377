"""Attention at usual sizes: what the synthesizer proposes, beside PyTorch's own kernels and the limit of the operations.

    python benchmarks/attention.py [NAME…] [--out FILE] [--seconds 140] [--most 4]

Each NAME is ``dtype-heads-length-width``, with ``-causal`` at its end or not (``float16-16-4096-128-causal``); ``kb97`` is level 1 #97 of
KernelBench. The ways are eager (PyTorch chooses the kernel), torch.compile, PyTorch's flash and cuDNN kernels where they take such
tensors, attention written out (two products and a softmax), and the synthesizer's candidates: the first ``--most`` schedules in one kernel,
and the first with the scores in memory.

One JSON object a line, as it is measured, medians of interleaved rounds. ``us``: microseconds between CUDA events around a call, the L2 cache
overwritten before. ``tflops``: operations of the two products (half of them where causal) over that. ``limit_us``: these operations over the
tensor cores' rate by the data sheet (float32: three products in TF32, which is what float32 accuracy takes there). ``error``: the largest difference from float64
on one batch, over its largest magnitude. ``compile_s``: what synthesis and the first call took. Needs a CUDA GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import triton
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
from support.kernels import written  # noqa: E402
from support.turns import in_turn  # noqa: E402

from kernel_lsp.synthesis import synthesize  # noqa: E402
from kernel_lsp.synthesis.capture import capture  # noqa: E402
from kernel_lsp.targets import DEFAULT, named  # noqa: E402

_ROUNDS = 7
_FLUSHED = 256 * 2**20  # bytes: more than the L2 cache of any GPU
_IN_ONE = "attention in one kernel"


@dataclass(frozen=True)
class Shape:
    """q, k and v are [batch, heads, length, width]."""

    dtype: torch.dtype
    batch: int
    heads: int
    length: int
    width: int
    causal: bool = False

    @property
    def name(self) -> str:
        if self == KB97:
            return "kb97"
        words = [str(self.dtype).removeprefix("torch."), self.heads, self.length, self.width]
        return "-".join([*map(str, words), *(["causal"] if self.causal else [])])

    @property
    def operations(self) -> float:
        """Of the two products."""
        whole = 4.0 * self.batch * self.heads * self.length**2 * self.width
        return whole / 2 if self.causal else whole


KB97 = Shape(torch.float32, 32, 32, 512, 1024)

#: The most telling ones first: there may be no time for all.
SHAPES = [
    Shape(torch.float16, 4, 16, 4096, 128, True),
    Shape(torch.float16, 4, 16, 4096, 128),
    Shape(torch.float32, 4, 16, 2048, 64),
    Shape(torch.bfloat16, 4, 16, 2048, 64, True),
    KB97,
    Shape(torch.float16, 4, 16, 512, 64),
    Shape(torch.float32, 4, 16, 2048, 128, True),
    Shape(torch.bfloat16, 4, 32, 8192, 128, True),
    Shape(torch.float16, 4, 16, 8192, 64),
    Shape(torch.float32, 4, 32, 512, 64),
    Shape(torch.float16, 4, 32, 1024, 128),
]


class Attention(nn.Module):
    """PyTorch's operator."""

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


def by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Two products and a softmax."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    return scores.softmax(-1) @ v


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def inputs_of(shape: Shape) -> list[torch.Tensor]:
    torch.manual_seed(0)
    sizes = (shape.batch, shape.heads, shape.length, shape.width)
    return [torch.randn(*sizes, device=_device(), dtype=shape.dtype) for _ in range(3)]


def candidates(module: Attention, inputs: list[torch.Tensor], folder: Path, most: int) -> dict[str, nn.Module]:
    """The synthesizer's kernels by their labels: some in one kernel, and the first otherwise."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "H100"
    made = synthesize(module, capture(module, tuple(inputs)), class_name="Attention", import_from="attention", gpu=gpu)
    chosen = [one for one in made if not one.kept and "CUDA graph" not in one.variant]
    together = [one for one in chosen if _IN_ONE in one.variant][:most]
    apart = [one for one in chosen if _IN_ONE not in one.variant][:1]
    found: dict[str, nn.Module] = {}
    for one in sorted((*together, *apart), key=chosen.index):
        kernel = written(one.source, folder, module)
        if torch.cuda.is_available():
            assert kernel._in_envelope(*inputs)
        found[one.variant or "default"] = kernel
    return found


def backends(shape: Shape, inputs: list[torch.Tensor]) -> dict[str, Callable[[], torch.Tensor]]:
    """PyTorch's kernels, by name."""

    def through(backend: SDPBackend) -> Callable[[], torch.Tensor]:
        def call() -> torch.Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(*inputs, is_causal=shape.causal)

        return call

    found = {"efficient": through(SDPBackend.EFFICIENT_ATTENTION)}
    if shape.dtype != torch.float32:
        found |= {"flash": through(SDPBackend.FLASH_ATTENTION), "cuDNN": through(SDPBackend.CUDNN_ATTENTION)}
    return found


def exact(shape: Shape, inputs: list[torch.Tensor]) -> torch.Tensor:
    """The first batch's first head in float64."""
    q, k, v = (t[:1, :1].double() for t in inputs)
    return by_hand(q, k, v, shape.causal)


def limit(shape: Shape) -> float:
    """Microseconds of the products at the rate of the data sheet, and of reading and writing each tensor once."""
    on = (named(torch.cuda.get_device_name()) if torch.cuda.is_available() else None) or DEFAULT
    moved = 4 * shape.batch * shape.heads * shape.length * shape.width * shape.dtype.itemsize
    whole = shape.dtype != torch.float32
    rate = on.rate(str(shape.dtype).removeprefix("torch.")) if whole else on.rate("tf32") / 3
    return max(shape.operations / rate, moved / on.bandwidth) * 1e6


def measured(shape: Shape, most: int, folder: Path, until: float) -> Iterator[dict[str, Any]]:
    """A row for each way."""
    inputs = inputs_of(shape)
    wanted = exact(shape, inputs)
    module = Attention(shape.causal).eval()
    ways: dict[str, Callable[[], torch.Tensor]] = {"eager": lambda: module(*inputs)}
    compiled = torch.compile(module)
    ways["torch.compile"] = lambda: compiled(*inputs)
    if shape.length <= 4096:
        ways["by hand"] = lambda: by_hand(*inputs, shape.causal)
    ways |= backends(shape, inputs)
    began = time.monotonic()
    made = candidates(module, inputs, folder, most)
    taken = {"synthesis": time.monotonic() - began}
    first = next(iter(made))
    for label, kernel in made.items():
        ways[f"ours: {label}"] = lambda kernel=kernel: kernel(*inputs)
    errors: dict[str, float] = {}
    for way, call in list(ways.items()):
        began = time.monotonic()
        try:
            error = (call()[:1, :1].double() - wanted).abs().max() / wanted.abs().max()
            errors[way] = float(error)  # which waits
        except Exception as problem:  # what a backend does not take, memory that a way lacks
            del ways[way]
            yield {"shape": shape.name, "way": way, "problem": str(problem).splitlines()[0][:200]}
        taken[way] = time.monotonic() - began
    times = {way: statistics.median(t) for way, t in in_turn(ways, _ROUNDS, _FLUSHED, until).items()}
    for way in ways:
        yield {
            "shape": shape.name,
            "batch": shape.batch,
            "way": way,
            "default": way == f"ours: {first}",
            "us": round(times[way], 1),
            "tflops": round(shape.operations / times[way] / 1e6, 1),
            "limit_us": round(limit(shape), 1),
            "error": errors[way],
            "compile_s": round(taken[way] + (taken["synthesis"] if way == f"ours: {first}" else 0.0), 1),
        }


def shown(rows: list[dict[str, Any]]) -> str:
    """A table in microseconds: the best of PyTorch's ways, the default and the fastest of ours, and the limit."""
    lines = ["| shape | eager | torch.compile | best of torch | default | fastest | limit | schedule |"]
    lines.append("| --- | --: | --: | --: | --: | --: | --: | --- |")
    for name in dict.fromkeys(row["shape"] for row in rows):
        here = {row["way"]: row for row in rows if row["shape"] == name and "us" in row}
        ours = sorted((row for way, row in here.items() if way.startswith("ours")), key=lambda row: row["us"])
        others = [row["us"] for way, row in here.items() if not way.startswith("ours")]
        if not ours or not others:
            continue
        figures = [here[way]["us"] if way in here else None for way in ("eager", "torch.compile")]
        figures += [min(others), next((row["us"] for row in ours if row["default"]), None), ours[0]["us"]]
        cells = " | ".join("" if one is None else f"{one:.1f}" for one in [*figures, ours[0]["limit_us"]])
        lines.append(f"| {name} | {cells} | {ours[0]['way'].removeprefix('ours: ')} |")
    return "\n".join(lines)


def main() -> None:
    known = {shape.name: shape for shape in SHAPES}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *known], help=f"of {', '.join(known)}")
    parser.add_argument("--out", type=Path, help="where the rows go, too")
    parser.add_argument("--seconds", type=float, default=140.0, help="after so many nothing further is begun")
    parser.add_argument("--most", type=int, default=4, help="schedules in one kernel of each shape")
    given = parser.parse_args()
    sys.modules["attention"] = sys.modules["__main__"]
    began, rows = time.monotonic(), []

    def told(row: dict[str, Any]) -> None:
        print(json.dumps(row), flush=True)
        if given.out:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")

    told({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__})
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        for name in given.names or known:
            if time.monotonic() - began > given.seconds:
                told({"shape": name, "problem": "no time was left"})
                continue
            for row in measured(known[name], given.most, Path(folder), began + given.seconds):
                told(row)
                rows.append(row)
            torch.cuda.empty_cache()
    print(shown(rows))


if __name__ == "__main__":
    main()
