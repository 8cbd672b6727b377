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
import json
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
sys.path.insert(0, str(ROOT))

from kernel_lsp.jobs.client import Worker  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
HOST = ROOT / "kernel_lsp" / "modelhost" / "__main__.py"
#: bytes per second that the makers name for the memory of these GPUs
PEAKS = {"H100 80GB HBM3": 3.35e12, "H100 PCIe": 2.0e12, "H200": 4.8e12, "A100-SXM4-80GB": 2.04e12}


# ---- run in the interpreter that has torch and transformers -------------------------------------------------------


def make_model(folder: Path, layers: int, hidden: int, vocabulary: int) -> dict[str, Any]:
    """Write config, tokenizer and random bf16 weights in shards of about 2 GB; measure how fast the device copies."""
    import torch
    from safetensors.torch import save_file
    from transformers import LlamaConfig, LlamaForCausalLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    heads = 32 if hidden >= 1024 else 4
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=hidden * 7 // 2,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 4,
        max_position_embeddings=131072,
        rms_norm_eps=1e-5,
        bos_token_id=vocabulary - 2,
        eos_token_id=vocabulary - 1,
        tie_word_embeddings=False,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        dtype="bfloat16",
        architectures=["LlamaForCausalLM"],
    )
    config.save_pretrained(folder)
    write_tokenizer(folder, vocabulary)
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in LlamaForCausalLM(config).state_dict().items()}
    torch.manual_seed(0)
    shard: dict[str, Any] = {}
    placed, number, embedding = {}, 1, 0
    for i, (name, shape) in enumerate(shapes.items()):
        weight = torch.empty(shape, dtype=torch.bfloat16, device=device)
        shard[name] = (weight.normal_(0, 0.02) if len(shape) > 1 else weight.fill_(1)).cpu()
        embedding += shape.numel() * 2 if "embed_tokens" in name else 0
        placed[name] = f"model-{number:05}.safetensors"
        if sum(t.nbytes for t in shard.values()) > 2e9 or i == len(shapes) - 1:
            save_file(shard, folder / placed[name], metadata={"format": "pt"})
            shard, number = {}, number + 1
    total = sum(shape.numel() * 2 for shape in shapes.values())
    index = {"metadata": {"total_size": total}, "weight_map": placed}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    made = {"bytes": total, "embedding": embedding, "torch": torch.__version__, "device": "CPU", "copy": None}
    if device == "cuda":
        made.update(device=torch.cuda.get_device_name(), copy=copy_rate())
    return made


def copy_rate() -> float:
    """Bytes per second (read and written) of a device-to-device copy of 2 GB, best of 10."""
    import torch

    source = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(10):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) / 1e3)
    return 2 * source.numel() / best


def write_tokenizer(folder: Path, vocabulary: int) -> None:
    """A byte-level tokenizer without merges (one id a byte), padded to the vocabulary's size with words of its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = sorted(pre_tokenizers.ByteLevel.alphabet())
    words += [f"Ġword{i}" for i in range(vocabulary - len(words) - 2)] + ["<|begin_of_text|>", "<|eot_id|>"]
    bpe = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<|begin_of_text|>", eos_token="<|eot_id|>", clean_up_tokenization_spaces=False
    ).save_pretrained(folder)


# ---- run here ------------------------------------------------------------------------------------------------------


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
    prompt = ("x = torch.relu(x + 1)\n" * (options.prompt // 21 + 1))[: options.prompt]
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
    shape = f"{options.layers} layers, hidden {options.hidden}, vocabulary {options.vocabulary}"

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
            f"A Llama of KernelLLM's shape ({shape}) with random bf16 weights, {made['bytes'] / 1e9:.2f} GB; {made['device']}, "
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
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--vocabulary", type=int, default=128256)
    parser.add_argument("--no-write", action="store_true", help="only print the table")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        made = make_model(options.make, options.layers, options.hidden, options.vocabulary)
        print(json.dumps(made))
        return 0
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="kernel-lsp-model-"))
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        began = time.monotonic()
        command = [options.interpreter, __file__, "--make", str(scratch), "--layers", str(options.layers)]
        command += ["--hidden", str(options.hidden), "--vocabulary", str(options.vocabulary)]
        # A process of its own, so that nothing of it is left on the GPU.
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        made = json.loads(output.splitlines()[-1])
        print(f"made {made['bytes'] / 1e9:.2f} GB of weights in {time.monotonic() - began:.0f} s", flush=True)
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
