"""How fast the model host loads and samples a model of KernelLLM's shape, against the time its weights take to read.

    python benchmarks/model_host.py [--interpreter PYTHON] [--scratch FOLDER] [--samples 1,10,20] [--layers 32 …]

Makes a Llama of 8B parameters (the configuration of Llama-3.1-8B, which KernelLLM has) with random weights in a scratch
folder (16 GB), talks to a real model host, prints a table and writes benchmarks/results/model-host-<device>.md. On a CPU
try it small: --layers 2 --hidden 256 --vocabulary 1000 --tokens 50 --prompt 100 --samples 1,4 --no-write.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
from support import random_llama  # noqa: E402

from kernel_lsp.jobs.client import Worker  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
HOST = ROOT / "kernel_lsp" / "modelhost" / "__main__.py"
#: bytes per second that the makers name for the memory of these GPUs
PEAKS = {"H100 80GB HBM3": 3.35e12, "H100 PCIe": 2.0e12, "H200": 4.8e12, "A100-SXM4-80GB": 2.04e12}


def drop_from_page_cache(folder: Path) -> None:
    """So that the next load reads from the disk, as the first one after a pull or a reboot does."""
    for file in folder.glob("*.safetensors"):
        fd = os.open(file, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


class GpuMemory(threading.Thread):
    """The most memory that was in use on the first GPU, from nvidia-smi; ``None`` where there is none."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: float | None = None
        self.running = True

    def run(self) -> None:
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"]
        while self.running and shutil.which("nvidia-smi"):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                self.most = max(self.most or 0.0, float(done.stdout.split()[0]) * (1 << 20) / 1e9)
            time.sleep(0.5)

    def end(self) -> str:
        self.running = False
        self.join()
        return "–" if self.most is None else f"{self.most:.1f} GB"


async def measure(options: argparse.Namespace, model: Path) -> dict[str, Any]:
    worker = Worker([options.interpreter], ROOT, main=HOST)
    wanted = {"backend": "transformers", "model": str(model), "device": "auto", "dtype": "bf16"}
    measured: dict[str, Any] = {"loads": [], "rows": []}
    prompt = random_llama.prompt(options.prompt)
    try:
        drop_from_page_cache(model)
        hello = await worker.start()
        measured["packages"] = hello["packages"]
        for name in ("disk, imports included", "page cache"):
            began = time.monotonic()
            loaded = await worker.request("load", wanted, seconds=400, stage="loading")
            measured["loads"].append((name, time.monotonic() - began))
            print(f"loaded ({name}): {measured['loads'][-1][1]:.1f} s {loaded}", flush=True)
            if name == "disk, imports included":
                await worker.request("unload", {}, seconds=60, stage="unloading")
        measured["context"] = loaded
        for samples in [1, *options.samples]:  # the first is a warm-up: kernels are compiled, libraries initialised
            warm_up = not measured["rows"] and "warm_up" not in measured
            tokens = 64 if warm_up else options.tokens
            row = await sample(worker, prompt, samples, tokens)
            print(f"{'warm-up' if warm_up else 'measured'}: {row}", flush=True)
            if warm_up:
                measured["warm_up"] = row
            else:
                measured["rows"].append(row)
    finally:
        await worker.close()
        print("\n".join(list(worker._stderr)[-20:]), file=sys.stderr)
    return measured


async def sample(worker: Worker, prompt: str, samples: int, tokens: int) -> dict[str, Any]:
    """One request; ``step`` is the milliseconds of a step from the progress of its middle (a fifth to four fifths)."""
    points: list[tuple[float, int]] = []

    def on_event(name: str, data: Any) -> None:
        if name == "progress" and "tokens" in data:
            points.append((time.monotonic(), data["tokens"] / samples))

    params = {
        "prompt": prompt,
        "samples": samples,
        "temperature": 0.6,
        "top_p": 0.95,
        "max_tokens": tokens,
        "seed": 1,
        "ignore_eos": True,
    }
    memory = GpuMemory()
    memory.start()
    began = time.monotonic()
    result = await worker.request("generate", params, seconds=600, stage="sampling", on_event=on_event)
    seconds = time.monotonic() - began
    middle = [(t, n) for t, n in points if 0.2 * tokens <= n <= 0.8 * tokens]
    (t0, n0), (t1, n1) = (middle[0], middle[-1]) if len(middle) > 1 else ((0, 0), (seconds, tokens))
    return {
        "samples": samples,
        "tokens": tokens,
        "seconds": seconds,
        "first": result["first_token"],
        "rate": result["tokens"] / seconds,
        "prompt": result["prompt_tokens"],
        "step": (t1 - t0) / max(n1 - n0, 1) * 1e3,
        "memory": memory.end(),
    }


def table(options: argparse.Namespace, made: dict[str, Any], measured: dict[str, Any]) -> str:
    peak = next((rate for name, rate in PEAKS.items() if name in made["device"]), None)
    read = made["bytes"] - made["embedding"]
    packages = measured["packages"]

    def floor(rate: float | None) -> str:
        return "–" if rate is None else f"{read / rate * 1e3:.2f} ms"

    def share(step: float, rate: float | None) -> str:
        return "–" if rate is None else f"{read / rate * 1e3 / step:.0%}"

    rows = [
        f"| {row['samples']} | {row['tokens']} | {row['seconds']:.1f} | {row['first'] * 1e3:.0f} | {row['rate']:.0f} | "
        f"{row['step']:.2f} | {share(row['step'], peak)} / {share(row['step'], made['copy'])} | {row['memory']} |"
        for row in measured["rows"]
    ]
    loads = "; ".join(f"{seconds:.1f} s from the {name}" for name, seconds in measured["loads"])
    last = measured["rows"][-1]
    total = measured["loads"][-1][1] + last["seconds"]
    copy = "–" if made["copy"] is None else f"{made['copy'] / 1e12:.2f} TB/s"
    named = "–" if peak is None else f"{peak / 1e12:.2f} TB/s"
    return "\n".join(
        [
            f"# The model host on {made['device']}",
            "",
            f"A Llama of KernelLLM's shape ({random_llama.shape(options)}) with random bf16 weights, {made['bytes'] / 1e9:.2f} GB; {made['device']}, "
            f"torch {packages['torch']}, transformers {packages['transformers']}, {datetime.date.today()}. Written by "
            "`python benchmarks/model_host.py`.",
            "",
            f"Loading: {loads}. Loading from the page cache and {last['samples']} samples of {last['tokens']} tokens together: "
            f"**{total:.1f} s**.",
            "",
            f"One request a row, a prompt of {last['prompt']} tokens, no sample ending early, temperature 0.6, top_p 0.95. *Step*: "
            "milliseconds for one more token of every sample, choosing it included, in the middle of the request. A step reads "
            f"all weights but the embedding table, {read / 1e9:.2f} GB: at least {floor(peak)} at the memory's named rate ({named}), "
            f"{floor(made['copy'])} at the measured rate of a copy ({copy}). *Roofline*: that over the step, for each rate. "
            "*Memory*: the most in use on the GPU.",
            "",
            "| samples | tokens each | seconds | first token, ms | tokens/s | step, ms | roofline named / copy | memory |",
            "| --: | --: | --: | --: | --: | --: | --: | --: |",
            *rows,
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interpreter", default=sys.executable, help="the Python that has torch and transformers")
    parser.add_argument("--scratch", type=Path, help="where 16 GB can be written; kept if given")
    parser.add_argument("--samples", type=lambda text: [int(n) for n in text.split(",")], default=[1, 10, 20])
    parser.add_argument("--tokens", type=int, default=1500)
    parser.add_argument("--prompt", type=int, default=1000)
    random_llama.add_shape(parser)
    parser.add_argument("--no-write", action="store_true", help="only print the table")
    options = parser.parse_args()
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="kernel-lsp-model-"))
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        made = random_llama.make(options.interpreter, scratch, options)
        text = table(options, made, asyncio.run(measure(options, scratch)))
    finally:
        if options.scratch is None:
            shutil.rmtree(scratch, ignore_errors=True)
    print(text)
    if not options.no_write:
        RESULTS.mkdir(exist_ok=True)
        slug = re.sub(r"[^a-z0-9]+", "-", f"model host {made['device']}".lower()).strip("-")
        (RESULTS / f"{slug}.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
