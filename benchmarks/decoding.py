"""Sampling by the model host against transformers' own ways, on a model of KernelLLM's shape: tokens per second in one run.

    python benchmarks/decoding.py [--engines ours,static,continuous,continuous-graphs] [--samples 1,20] [--tokens 300]
        [--seconds 150] [--scratch FOLDER] [--out FILE] [--attention NAME] [--layers 32 …]

*ours* is what ``kernel_lsp/modelhost`` does. *static* is ``generate`` with ``cache_implementation="static"``, which compiles the decode
step by itself (``num_return_sequences`` samples of one prompt). *continuous* is transformers' continuous batching with as many equal
prompts as samples, as it is by default; *continuous-graphs* the same with CUDA graphs asked for, which by default it uses with Flash
Attention alone. ``--attention`` is what these two load the model with (``flash_attention_4``); by default they take Flash Attention if it is installed.

Writes a Llama of 8B parameters with random weights (16 GB) to a scratch folder, which each engine loads in a process of its own, in
this interpreter, and samples twice for each number of samples: another prompt first, in which everything is compiled, then the one
that is measured. Every sample has all of its tokens. A result is printed, and written to ``--out``, as soon as it is there; an
engine that takes longer than ``--seconds`` loses only what it has not measured. Prints a table and writes
benchmarks/results/decoding-<device>.md. Needs torch, transformers and accelerate, nothing else of kernel-lsp's. On a CPU
(without CUDA graphs) try it small: --layers 2 --hidden 256 --vocabulary 1000 --tokens 30 --prompt 100 --samples 1,4 --no-write.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import logging
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
from support import random_llama  # noqa: E402

from kernel_lsp.child_processes import die_with, kill_group  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
TEMPERATURE, TOP_P = 0.6, 0.95
#: of continuous batching's cache, its default; and the default of the most tokens that it computes at once
BLOCK, BATCH_TOKENS = 256, 8192


# ---- the engines, each run in a process of its own ---------------------------------------------------------------------


@dataclass
class Sampled:
    """``tokens`` of all samples; ``marks``: (time in seconds, how many tokens every sample had then); ``note``: how it went."""

    tokens: int
    marks: list[tuple[float, float]] = field(default_factory=list)
    note: str = ""


class Ours:
    """The model host's backend, called as its process calls it."""

    def __init__(self, options: argparse.Namespace) -> None:
        from kernel_lsp.modelhost import transformers_backend
        from kernel_lsp.modelhost.request import Request

        self.options, self.request = options, Request
        params = {"model": str(options.model), "device": "auto", "dtype": "bf16"}
        self.model = transformers_backend.load(params, Request("load", params, lambda *_: None))

    def close(self) -> None:
        """Nothing is kept from one request to the next but compiled kernels."""

    def prepare(self, samples: int) -> None:
        pass

    def sample(self, prompt: str, samples: int, seed: int) -> Sampled:
        marks = []

        def emit(event: str, data: Any) -> None:
            if event == "progress" and "tokens" in data:
                marks.append((time.perf_counter(), data["tokens"] / samples))

        params = {
            "prompt": prompt,
            "samples": samples,
            "temperature": TEMPERATURE,
            "top_p": TOP_P,
            "max_tokens": self.options.tokens,
            "seed": seed,
            "ignore_eos": True,
        }
        result = self.model.generate(params, self.request("generate", params, emit))
        return Sampled(result["tokens"], marks)


class _Transformers:
    """A model loaded by transformers, which no token ends."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.options, self.cuda = options, torch.cuda.is_available()
        more: dict[str, Any] = {"device_map": "cuda"} if self.cuda else {}
        if options.attention and options.engine != "static":
            more["attn_implementation"] = options.attention
        self.model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16, **more).eval()
        self.model.generation_config.eos_token_id = self.model.config.eos_token_id = None
        self.tokenizer = AutoTokenizer.from_pretrained(options.model)

    def prepare(self, samples: int) -> None:
        pass

    def ids(self, prompt: str) -> list[int]:
        ids: list[int] = self.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        return [self.tokenizer.bos_token_id, *ids]

    def settings(self, **more: Any) -> Any:
        from transformers import GenerationConfig

        sampling = {"do_sample": True, "temperature": TEMPERATURE, "top_p": TOP_P, "top_k": 0}
        return GenerationConfig(max_new_tokens=self.options.tokens, pad_token_id=0, **sampling, **more)


class Static(_Transformers):
    """``generate`` with a static cache: the prompt is read as it is, a decode step is compiled with CUDA graphs."""

    def close(self) -> None:
        """Forget what was compiled for another number of samples, which would have sizes left open in what is compiled next."""
        import torch

        torch.compiler.reset()
        torch._dynamo.utils.counters.clear()
        if hasattr(self.model, "_compiled_call"):
            del self.model._compiled_call

    def sample(self, prompt: str, samples: int, seed: int) -> Sampled:
        import torch
        from transformers import CompileConfig, LogitsProcessor, LogitsProcessorList

        marks: list[tuple[float, float]] = []

        class Clock(LogitsProcessor):
            def __call__(self, input_ids: Any, scores: Any) -> Any:
                marks.append((time.perf_counter(), len(marks)))
                return scores

        settings = self.settings(cache_implementation="static", num_return_sequences=samples)
        if not self.cuda:  # a GPU's default, said to hold here too
            settings.compile_config = CompileConfig()
            settings.compile_config._compile_all_devices = True
        ids = torch.tensor([self.ids(prompt)], device=self.model.device)
        torch.manual_seed(seed)
        made = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=settings,
            logits_processor=LogitsProcessorList([Clock()]),
        ).cpu()
        counted = torch._dynamo.utils.counters
        note = (
            f"{counted['stats']['unique_graphs']} graphs compiled, {sum(counted['graph_break'].values())} graph breaks, "
            f"{counted['inductor']['cudagraph_skips']} without CUDA graphs"
        )
        return Sampled(made.shape[0] * (made.shape[1] - ids.shape[1]), marks, note)


class Continuous(_Transformers):
    """Continuous batching: a manager that goes on running, with a cache for as many requests as there are samples."""

    manager: Any = None

    def prepare(self, samples: int) -> None:
        from transformers import ContinuousBatchingConfig

        needed = samples * (math.ceil((self.options.prompt + 1 + self.options.tokens) / BLOCK) + 1)
        graphs: dict[str, Any] = {}
        if self.options.engine == "continuous-graphs":
            # Reads are padded to a multiple of the interval; 16,384 by default, which is all of one sample's cache.
            graphs = {"use_cuda_graph": True, "kv_padding_interval_size": 2048}
        self.manager = self.model.init_continuous_batching(
            generation_config=self.settings(eos_token_id=-1),
            continuous_batching_config=ContinuousBatchingConfig(
                block_size=BLOCK,
                num_blocks=max(needed, 2 * BATCH_TOKENS // BLOCK),
                max_batch_tokens=BATCH_TOKENS,
                max_requests_per_batch=samples,
                **graphs,
            ),
        )
        self.manager.warmup()
        self.manager.start()

    def sample(self, prompt: str, samples: int, seed: int) -> Sampled:
        import torch

        torch.manual_seed(seed)
        self.manager.add_requests([self.ids(prompt)] * samples, self.options.tokens, record_timestamps=True)
        results: list[Any] = []
        while len(results) < samples:
            result = self.manager.get_result(timeout=1)
            if result is not None and result.error:
                raise RuntimeError(result.error)
            if result is not None and result.is_finished():
                results.append(result)
            elif result is None and not self.manager.is_running():
                raise RuntimeError(
                    f"continuous batching has ended: {self.manager.background_thread_status.fatal_error}"
                )
        marks = [(at, float(i + 1)) for i, at in enumerate(results[-1].timestamps or [])]
        used = self.manager.continuous_batching_config
        note = (
            f"{self.model.config._attn_implementation}, CUDA graphs (prefill, decode) {used.use_cuda_graph}, "
            f"asynchronous {used.use_async_batching}"
        )
        return Sampled(sum(len(result.generated_tokens) for result in results), marks, note)

    def close(self) -> None:
        if self.manager is not None:
            self.manager.stop(block=True, timeout=10)
            self.manager = None


ENGINES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "ours": Ours,
    "static": Static,
    "continuous": Continuous,
    "continuous-graphs": Continuous,
}


def run_engine(options: argparse.Namespace) -> int:
    """Load one engine and print a row for each number of samples, as JSON."""
    die_with(os.getppid())
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    began = time.perf_counter()
    import torch
    import transformers

    about: dict[str, Any] = {
        "engine": options.engine,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "import_seconds": round(time.perf_counter() - began, 2),
    }
    failed, engine = False, None
    for samples in options.samples:
        try:
            if engine is None:
                began = time.perf_counter()
                engine = ENGINES[options.engine](options)
                about["load_seconds"] = round(time.perf_counter() - began, 2)
            row = about | measure(options, engine, samples)
        except Exception as error:
            traceback.print_exc()
            row = about | {"samples": samples, "error": f"{type(error).__name__}: {str(error).strip()}"}
            failed = True
        print(json.dumps(row), flush=True)
    sys.stderr.flush()
    os._exit(int(failed))  # threads and compilers that are still there are not worth waiting for


def measure(options: argparse.Namespace, engine: Any, samples: int) -> dict[str, Any]:
    import torch

    cuda = torch.cuda.is_available()
    prompt = random_llama.prompt(options.prompt)
    engine.close()
    gc.collect()
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def timed(work: Callable[[], Any]) -> tuple[Any, float]:
        began = time.perf_counter()
        result = work()
        if cuda:
            torch.cuda.synchronize()
        return result, time.perf_counter() - began

    # Another prompt of the same length: what is kept of the first request's is not to save reading the second's.
    _, prepared = timed(lambda: engine.prepare(samples))
    _, first = timed(lambda: engine.sample("#" + prompt[1:], samples, seed=1))
    sampled, seconds = timed(lambda: engine.sample(prompt, samples, seed=2))
    if sampled.tokens != samples * options.tokens:
        raise RuntimeError(f"{sampled.tokens} tokens instead of {samples * options.tokens}")
    return {
        "samples": samples,
        "tokens": options.tokens,
        "prompt": options.prompt + 1,
        "seconds": seconds,
        "rate": sampled.tokens / seconds,
        "step": step(sampled.marks, options.tokens),
        "first_seconds": prepared + first,
        "memory": torch.cuda.max_memory_reserved() / 1e9 if cuda else None,
        "note": sampled.note,
    }


def step(marks: list[tuple[float, float]], tokens: int) -> float | None:
    """Milliseconds for one more token of every sample, in the middle of a request: from a fifth of the tokens to four fifths."""
    middle = [(at, n) for at, n in marks if 0.2 * tokens <= n <= 0.8 * tokens]
    if len(middle) < 2 or middle[0][1] == middle[-1][1]:
        return None
    return (middle[-1][0] - middle[0][0]) / (middle[-1][1] - middle[0][1]) * 1e3


# ---- the run as a whole ------------------------------------------------------------------------------------------------


def rows_of(engine: str, options: argparse.Namespace, model: Path, take: Callable[[dict[str, Any]], None]) -> None:
    """Run an engine for at most ``options.seconds``; ``take`` gets a row for each number of samples, measured or not."""
    command = [sys.executable, __file__, "--engine", engine, "--model", str(model)]
    command += ["--samples", ",".join(map(str, options.samples)), "--tokens", str(options.tokens)]
    command += ["--prompt", str(options.prompt), *(["--attention", options.attention] if options.attention else [])]
    began, missing = time.monotonic(), list(options.samples)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def read() -> None:
        for line in process.stdout or ():
            if line.startswith('{"engine"'):
                row = json.loads(line)
                missing.remove(row["samples"])
                take(row)
            else:
                print(line, end="", file=sys.stderr)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        error = f"ended with status {process.wait(options.seconds)}"
    except subprocess.TimeoutExpired:
        error = f"not done after {options.seconds:.0f} s"
    finally:
        kill_group(process.pid)  # what it started, too: the compiler's processes
        process.wait()
    reader.join(10)
    for samples in missing:
        take({"engine": engine, "samples": samples, "error": error})
    print(f"{engine}: {time.monotonic() - began:.0f} s in all", flush=True)


def table(options: argparse.Namespace, made: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    ours = {row["samples"]: row["rate"] for row in rows if row["engine"] == "ours" and "rate" in row}
    version = next((f"transformers {row['transformers']}, " for row in rows if "transformers" in row), "")

    def cells(row: dict[str, Any]) -> list[str]:
        if "rate" not in row:
            brief = row["error"].splitlines()[0][:160].replace("|", "\\|")
            return [*["–"] * 6, brief]
        than = f"{row['rate'] / ours[row['samples']]:.2f}" if row["samples"] in ours else "–"
        memory = "–" if row["memory"] is None else f"{row['memory']:.1f} GB"
        one = "–" if row["step"] is None else f"{row['step']:.2f}"
        numbers = [f"{row['seconds']:.2f}", f"{row['rate']:.0f}", than, one, f"{row['first_seconds']:.1f}", memory]
        return [*numbers, row["note"].replace("|", "\\|")]

    body = [
        f"| {row['samples']} | {row['engine']} | {' | '.join(cells(row))} |"
        for samples in options.samples
        for row in rows
        if row["samples"] == samples
    ]
    return "\n".join(
        [
            f"# Ways to sample on {made['device']}",
            "",
            f"A Llama of KernelLLM's shape ({random_llama.shape(options)}) with random bf16 weights, {made['bytes'] / 1e9:.2f} GB; {made['device']}, "
            f"torch {made['torch']}, {version}{datetime.date.today()}. Written by `python benchmarks/decoding.py`.",
            "",
            f"One request: so many samples of {options.tokens} tokens of one prompt of {options.prompt + 1}, no sample ending early, "
            f"temperature {TEMPERATURE}, top_p {TOP_P}. *ours*: the model host. *static*: `generate` with a static cache and its compiled decode. "
            "*continuous*: continuous batching of equal prompts as it is by default, with a cache of the size needed; "
            "*continuous-graphs*: with CUDA graphs asked for. Each in a process of its own. *Seconds*, *tokens/s*: of the second request, the "
            "prompt included. *Of ours*: these tokens/s over ours. *Step*: milliseconds for one more token of every sample in the "
            "middle of that request. *First*: seconds of the first request, compiling and capturing included. *Memory*: the most "
            "that torch held on the GPU.",
            "",
            "| samples | engine | seconds | tokens/s | of ours | step, ms | first, s | memory | |",
            "| --: | --- | --: | --: | --: | --: | --: | --: | --- |",
            *body,
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(ENGINES))
    parser.add_argument("--samples", type=lambda text: [int(n) for n in text.split(",")], default=[1, 20])
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--prompt", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=150, help="how long an engine may take, loading included")
    parser.add_argument("--scratch", type=Path, help="where 16 GB can be written; kept if given")
    parser.add_argument(
        "--out", type=Path, help="a file to which each result is appended as it comes, a JSON object a line"
    )
    parser.add_argument("--attention", help="what continuous batching's model is loaded with")
    random_llama.add_shape(parser)
    parser.add_argument("--no-write", action="store_true", help="only print the table")
    parser.add_argument("--engine", choices=list(ENGINES), help=argparse.SUPPRESS)
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        return run_engine(options)
    if unknown := set(options.engines) - set(ENGINES):
        parser.error(f"no such engine: {', '.join(sorted(unknown))}")
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="kernel-lsp-model-"))
    scratch.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []

    def take(row: dict[str, Any]) -> None:
        rows.append(row)
        line = json.dumps(row)
        print(line, flush=True)
        if options.out:
            with options.out.open("a") as out:
                out.write(line + "\n")

    try:
        made = random_llama.make(sys.executable, scratch, options)
        for engine in options.engines:
            rows_of(engine, options, scratch, take)
    finally:
        if options.scratch is None:
            shutil.rmtree(scratch, ignore_errors=True)
    text = table(options, made, rows)
    print(text)
    if not options.no_write:
        RESULTS.mkdir(exist_ok=True)
        slug = re.sub(r"[^a-z0-9]+", "-", f"decoding {made['device']}".lower()).strip("-")
        (RESULTS / f"{slug}.md").write_text(text)
    return int(any("error" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
