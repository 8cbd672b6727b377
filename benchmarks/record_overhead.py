"""What ``kernel-lsp record`` costs a training step: steps with and without it, in turn, in one process.

    python benchmarks/record_overhead.py [--steps N] [--small]

A Llama of transformers, every class of its layers recorded, forward, backward and AdamW. On a GPU in bfloat16 at a
usual size, and at one where the host's launches take longer than the GPU's work; ``--small`` for a CPU, on one thread,
by the processor time of the process: other programs on the machine change it less than the clock.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from kernel_lsp.recording.hook import calls

CLASSES = ["LlamaForCausalLM", "LlamaModel", "LlamaDecoderLayer", "LlamaAttention", "LlamaMLP", "LlamaRMSNorm"]


def model_of(hidden: int, layers: int, device: str) -> torch.nn.Module:
    config = LlamaConfig(
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(hidden // 64, 1),
        vocab_size=8000,
    )
    return LlamaForCausalLM(config).to(device, torch.bfloat16 if device == "cuda" else torch.float32)


def measure(
    name: str, hidden: int, layers: int, batch: int, length: int, steps: int, recorder: Any, plain: Any
) -> None:
    """Print the ratio of steps with and without, at the 20th percentile, and an interval by resampling the pairs."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model_of(hidden, layers, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(0, 8000, (batch, length), device=device)
    noting = torch.nn.Module.__call__

    def step(call: Any) -> float:
        torch.nn.Module.__call__ = call
        clock = time.perf_counter if device == "cuda" else time.process_time
        began = clock()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()
        return clock() - began

    for _ in range(6):  # the first calls of each class are all looked at
        step(noting)
    first = [step(noting) for _ in range(2)]
    pairs = []
    for i in range(steps):
        order = (plain, noting) if i % 2 else (noting, plain)
        times = {call: step(call) for call in order}
        pairs.append((times[plain], times[noting]))
    torch.nn.Module.__call__ = noting

    def ratio(chosen: list[tuple[float, float]]) -> float:
        return _fast(b for _, b in chosen) / _fast(a for a, _ in chosen)

    again = sorted(ratio(random.choices(pairs, k=len(pairs))) for _ in range(1000))
    plainly = _fast(a for a, _ in pairs) * 1e3
    print(
        f"{name}: step {plainly:.2f} ms, with record {ratio(pairs):.4f} times as long "
        f"(95 %: {again[25]:.4f}–{again[975]:.4f}; {steps} pairs; first steps {first[0] * 1e3:.2f} ms)",
        flush=True,
    )


def _fast(times: Iterable[float]) -> float:
    """The 20th percentile: what other programs take from the processor's caches is in the slow steps."""
    return statistics.quantiles(times, n=5)[0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    plain = torch.nn.Module.__call__
    with tempfile.TemporaryDirectory() as folder:
        recorder = calls.install({"folder": folder, "root": folder, "classes": CLASSES})
        if options.small or not torch.cuda.is_available():
            torch.set_num_threads(1)
            measure("cpu, 4 layers of 256, 2 × 64", 256, 4, 2, 64, options.steps, recorder, plain)
            measure("cpu, 8 layers of 64, 1 × 16", 64, 8, 1, 16, 3 * options.steps, recorder, plain)
        else:
            measure("gpu, 16 layers of 1024, 8 × 1024", 1024, 16, 8, 1024, options.steps, recorder, plain)
            measure("gpu, host-bound: 16 layers of 256, 1 × 64", 256, 16, 1, 64, 3 * options.steps, recorder, plain)
        took = time.perf_counter() - recorder.began
        print(f"looking at {recorder.samples} calls took {recorder.spent:.3f} s of {took:.1f} s")
        recorder.stop()


if __name__ == "__main__":
    main()
