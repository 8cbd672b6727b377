"""Products of few tokens with float8 weights, at the sizes of Llama 3 70B's layers: what the synthesizer proposes, beside cuBLAS.

    python benchmarks/fp8_gemm.py [NAME…] [--tokens 1,16] [--rows] [--out FILE] [--seconds 140]

After "Accelerating Llama3 FP8 Inference with Triton Kernels" (TK-GEMM, pytorch.org, 2024). Each NAME is a weight, ``outputs x inputs``.
The ways are ``torch._scaled_mm`` (cuBLAS), a product of the same size in float16, the product of Triton's tutorial in float8
(without split-K, tokens as rows of the tile), and the schedules of ``torch._scaled_mm``'s kernel. All schedules are timed with
16 and 64 tokens; with another number the default, and the fastest one with 16.

One JSON object a line, as it is measured, medians of interleaved rounds in microseconds. ``direct_us``: CUDA events around a call, the
GPU busy before it, so that the launch is hidden; ``graph_us``: around a replay of that call from a CUDA graph; before both the L2
cache is overwritten. ``clean_us``: as ``graph_us``, with the cache full of lines that were only read, so that none has to be written
back. ``call_us``: of many calls in a row, with what Python and the launches take. ``error``: the largest difference
from the product in float64, over its largest magnitude. Needs a CUDA GPU with float8.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
from support.kernels import written  # noqa: E402
from support.turns import in_turn  # noqa: E402

from kernel_lsp.synthesis import synthesize  # noqa: E402
from kernel_lsp.synthesis.capture import capture  # noqa: E402

#: outputs and inputs of a layer: attention's output, its query, key and value, the gated MLP's way up and down
SHAPES = {"8192x8192": "o", "10240x8192": "qkv", "57344x8192": "gate and up", "8192x28672": "down"}
TOKENS = (16, 64, 1, 4, 8, 32)
_ALL = (16, 64)  # with so many all schedules are timed
_ROUNDS, _CALLS = 15, 200
_FLUSHED = 512 * 2**20  # bytes: more than the L2 cache of any GPU, and a time in which Python launches what follows


class Linear8(nn.Module):
    """x [tokens, inputs] times a weight [outputs, inputs], both float8, with a scale for a tensor or one for each row."""

    def __init__(self, outputs: int, inputs: int, rows: bool = False) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(outputs, inputs, device=_device()).to(torch.float8_e4m3fn))
        self.register_buffer("scale", torch.rand((1, outputs) if rows else (), device=_device()) + 0.5)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch._scaled_mm(x, self.weight.t(), scale, self.scale, out_dtype=torch.bfloat16)


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def tutorial_kernel(
    x_ptr,
    w_ptr,
    x_scale_ptr,
    w_scale_ptr,
    out_ptr,
    M,
    N,
    K,
    ROW_SCALES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """out [M, N] = x [M, K] @ w [N, K].T, a tile a program."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < M, other=0.0)
        w = tl.load(w_ptr + ks[:, None] + cols[None, :] * K)
        acc = tl.dot(x, w, acc)
    if ROW_SCALES:
        acc *= tl.load(x_scale_ptr + rows, mask=rows < M, other=0.0)[:, None] * tl.load(w_scale_ptr + cols)[None, :]
    else:
        acc *= tl.load(x_scale_ptr) * tl.load(w_scale_ptr)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.bfloat16), mask=rows[:, None] < M)


def tutorial(module: Linear8, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    (m, k), n = x.shape, module.weight.shape[0]
    out = torch.empty(m, n, dtype=torch.bfloat16, device=x.device)
    block = max(16, triton.next_power_of_2(m))
    grid = (triton.cdiv(m, block), triton.cdiv(n, 64))
    tutorial_kernel[grid](
        x, module.weight, scale, module.scale, out, m, n, k,
        ROW_SCALES=scale.dim() == 2, BLOCK_M=block, BLOCK_N=64, BLOCK_K=128, num_warps=4, num_stages=4,
    )  # fmt: skip
    return out


def candidates(module: Linear8, inputs: list[torch.Tensor], folder: Path) -> dict[str, nn.Module]:
    """The synthesizer's kernels by their labels, without those that replay themselves."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    exported = capture(module, tuple(inputs))
    made = synthesize(module, exported, class_name="Linear8", import_from="fp8_gemm", gpu=gpu)
    found: dict[str, nn.Module] = {}
    for one in made:
        if one.kept or "CUDA graph" in one.variant or "columns" in one.variant:
            continue
        kernel = written(one.source, folder, module)
        assert kernel._in_envelope(*inputs)
        found[one.variant or "default"] = kernel
    return found


def baselines(module: Linear8, inputs: list[torch.Tensor]) -> dict[str, Callable[[], torch.Tensor]]:
    x, scale = inputs
    half, weight = x.to(torch.float16), module.weight.to(torch.float16)
    return {
        "cuBLAS fp8": lambda: module(x, scale),
        "cuBLAS fp16": lambda: half @ weight.t(),
        "Triton's tutorial": lambda: tutorial(module, x, scale),
    }


def graph_of(call: Callable[[], torch.Tensor]) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def medians(calls: dict[str, Callable[[], Any]], clean: bool = False) -> dict[str, float]:
    """The median microseconds of calls that take turns."""
    return {name: statistics.median(times) for name, times in in_turn(calls, _ROUNDS, _FLUSHED, clean=clean).items()}


def in_a_row(call: Callable[[], Any]) -> float:
    """Microseconds a call of many, the GPU waited for at the end."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(_CALLS):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / _CALLS * 1e6


def exact(module: Linear8, inputs: list[torch.Tensor]) -> torch.Tensor:
    """The product in float64, some outputs at a time."""
    x, scale = inputs[0].to(torch.float64), inputs[1].double()
    parts = [x @ part.to(torch.float64).t() for part in module.weight.split(8192)]
    return torch.cat(parts, 1) * scale * module.scale.double()


def sort_of(label: str) -> str:
    """A schedule's label without what follows from the number of tokens: the columns of its tile, its stages."""
    return re.sub(r"(\d+) x \d+ x (\d+)( exchanged)? tiles, (\d+) warps?, .*", r"\1 x \2, \4 warps", label)


def measured(name: str, tokens: int, rows: bool, only: str | None, folder: Path) -> Iterator[dict[str, Any]]:
    """A row for each way; ``only``: of the synthesizer's the default and those of this sort."""
    outputs, inputs_ = map(int, name.split("x"))
    torch.manual_seed(0)
    module = Linear8(outputs, inputs_, rows).eval()
    x = torch.randn(tokens, inputs_, device="cuda").to(torch.float8_e4m3fn)
    inputs = [x, torch.rand((tokens, 1) if rows else (), device="cuda") + 0.5]
    wanted = exact(module, inputs)
    half = wanted / (inputs[1] * module.scale)  # of the product in float16, which has no scales
    ways = baselines(module, inputs)
    made = candidates(module, inputs, folder)
    first = next(iter(made))
    for label, kernel in made.items():
        if only is None or sort_of(label) == only or label == first:
            ways[f"ours: {label}"] = lambda kernel=kernel: kernel(*inputs)
    graphs, errors = {}, {}
    for way, call in list(ways.items()):
        try:
            aim = half if way == "cuBLAS fp16" else wanted
            errors[way] = float((call().double() - aim).abs().max() / aim.abs().max())
            graphs[way] = graph_of(call)
        except Exception as problem:  # a size that cuBLAS does not take, shared memory that a schedule lacks
            del ways[way]
            yield {"weight": name, "tokens": tokens, "way": way, "problem": str(problem).splitlines()[0][:200]}
    direct = medians(ways)
    replays = {way: graph.replay for way, graph in graphs.items() if way in ways}
    replayed, clean = medians(replays), medians(replays, clean=True)
    for way, call in ways.items():
        yield {
            "weight": name,
            "tokens": tokens,
            "rows": rows,
            "way": way,
            "default": way == f"ours: {first}",
            "direct_us": round(direct[way], 2),
            "graph_us": round(replayed[way], 2),
            "clean_us": round(clean[way], 2),
            "call_us": round(in_a_row(call), 2),
            "error": errors[way],
        }


def shown(rows: list[dict[str, Any]]) -> str:
    """A table: microseconds from a graph of each baseline, of the default and of the fastest schedule."""
    lines = ["| weight | tokens | cuBLAS fp16 | cuBLAS fp8 | tutorial | default | fastest | schedule |"]
    lines.append("| --- | --: | --: | --: | --: | --: | --: | --- |")
    pairs = sorted(
        {(row["weight"], row["tokens"]) for row in rows}, key=lambda pair: ([*SHAPES].index(pair[0]), pair[1])
    )
    for weight, tokens in pairs:
        here = [row for row in rows if (row["weight"], row["tokens"]) == (weight, tokens) and "graph_us" in row]
        known = {row["way"]: row["graph_us"] for row in here}
        ours = sorted((row for row in here if row["way"].startswith("ours")), key=lambda row: row["graph_us"])
        figures = [known.get(way) for way in ("cuBLAS fp16", "cuBLAS fp8", "Triton's tutorial")]
        figures += [
            next((row["graph_us"] for row in ours if row["default"]), None),
            ours[0]["graph_us"] if ours else None,
        ]
        best = ours[0]["way"].removeprefix("ours: ") if ours else ""
        cells = " | ".join("" if one is None else f"{one:.1f}" for one in figures)
        lines.append(f"| {weight} | {tokens} | {cells} | {best} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--tokens", default=",".join(map(str, TOKENS)), help="how many, with commas between")
    parser.add_argument("--rows", action="store_true", help="a scale for each row of both")
    parser.add_argument("--out", type=Path, help="where the rows go, too")
    parser.add_argument("--seconds", type=float, default=140.0, help="after so many nothing further is begun")
    given = parser.parse_args()
    sys.modules["fp8_gemm"] = sys.modules["__main__"]
    began, rows = time.monotonic(), []

    def told(row: dict[str, Any]) -> None:
        print(json.dumps(row), flush=True)
        if given.out:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")

    told({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__})
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        for name in given.names or SHAPES:
            fastest: str | None = None
            for tokens in map(int, given.tokens.split(",")):
                if time.monotonic() - began > given.seconds:
                    told({"weight": name, "tokens": tokens, "problem": "no time was left"})
                    continue
                only = None if tokens in _ALL else fastest
                found = []
                for row in measured(name, tokens, given.rows, only, Path(folder)):
                    told(row)
                    found.append(row)
                rows += found
                ours = [row for row in found if row["way"].startswith("ours") and "graph_us" in row]
                if tokens == 16 and ours:
                    best = min(ours, key=lambda row: row["graph_us"])
                    fastest = sort_of(best["way"].removeprefix("ours: "))
                torch.cuda.empty_cache()
    print(shown(rows))


if __name__ == "__main__":
    main()
