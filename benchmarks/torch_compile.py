"""Times eager and torch.compile on the problems of KernelBench, many at once: compiled side by side, timed one at a time.

``python benchmarks/torch_compile.py FOLDER FILE [--level N[,N]] [--sample N --seed S] [--mode MODE] [--workers N] [--seconds S]`` on a machine with a
CUDA GPU.
FILE gets a line a problem as ``kernel-lsp eval --stand-ins`` reads them; problems that it has times of are left out. Each problem has a
process of its own, as torch.compile's time in an evaluation has: the same rotation of inputs, the same interleaving with eager, the same
clock (kernel_lsp.validation.timing). Inputs and parameters are drawn on the GPU. One times while no other process of these uses the
GPU (kernel_lsp.worker.gpu_lock): it waits for those that compile, and those that begin wait for it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from support.sampling import chosen

from kernel_lsp import schema
from kernel_lsp.suites import kernelbench
from kernel_lsp.suites.found import Found
from kernel_lsp.validation import timing
from kernel_lsp.worker import gpu_lock

_SETS = 3  # of inputs that the rounds rotate through, as in an evaluation
_TIMING_SECONDS = 0.6
_SEED = 42


def _beyond() -> dict[str, Any]:
    """What CUDA's events show beyond the work between them, in microseconds: the same for all problems."""
    torch.zeros(1, device="cuda")
    return {"beyond": timing.overhead_by_spans()}


def _measured(
    file: Path, mode: str, folder: str, beyond: float | None, waited: Callable[[float], None]
) -> dict[str, Any]:
    """Times in milliseconds; CUDA is begun here. ``folder``: of the GPU's lock; ``waited`` is called with the seconds that it took to get."""
    torch.set_num_threads(1)
    spec = importlib.util.spec_from_file_location("problem", file)
    assert spec is not None and spec.loader is not None
    problem = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(problem)
    lock = gpu_lock.begin(folder, torch.device("cuda:0"), lambda *_: None, waited)
    torch.manual_seed(_SEED)
    with torch.device("cuda"):
        module = problem.Model(*problem.get_init_inputs()).eval().cuda()
        args = [one.cuda() if isinstance(one, torch.Tensor) else one for one in problem.get_inputs()]
    compiled = torch.compile(module, mode=None if mode == "default" else mode)

    def of_compile(given: Any, more: Any) -> Any:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(*given, **more)

    with torch.no_grad():
        began = time.monotonic()
        of_compile(args, {})
        torch.cuda.synchronize()
        seconds = time.monotonic() - began
        calls: dict[str, timing.Call] = {"eager": lambda given, more: module(*given, **more), "compiled": of_compile}
        with gpu_lock.alone(lock):  # and shared until this process ends, so that it leaves the GPU while none times
            found = _timed(calls, tuple(args), beyond)
            torch.cuda.empty_cache()  # for those that time next
    eager, compile_ = found["eager"].median / 1e3, found["compiled"].median / 1e3
    return {"eager_ms": round(eager, 5), "compile_ms": round(compile_, 5), "compile_seconds": round(seconds, 1)}


def _timed(calls: dict[str, timing.Call], args: tuple[Any, ...], beyond: float | None) -> dict[str, schema.Timing]:
    inputs = timing.rotated(args, {}, _SETS)
    for given, more in inputs:
        calls["compiled"](given, more)
    return timing.interleaved(calls, inputs, seconds=_TIMING_SECONDS, beyond=beyond)


def _in_a_process(asked: list[str], seconds: float) -> dict[str, Any]:
    """What this file answers to ``asked``, in a process of its own: CUDA forbids a fork, and a problem may end it."""
    command = [sys.executable, __file__, "--one", str(seconds), *asked]
    with tempfile.TemporaryFile("w+") as out:  # a pipe would be open for as long as a compiler that it has started
        process = subprocess.Popen(command, stdout=out, start_new_session=True)
        try:
            process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        out.seek(0)
        lines = out.read().splitlines()
    if process.returncode == -signal.SIGALRM:
        return {"error": f"not done in {seconds:.0f} s"}
    return dict(json.loads(lines[-1])) if lines else {"error": f"ended with {process.returncode}"}


def _put_off(seconds: float) -> None:
    """End this process so much later: the signal ends it, wherever it is."""
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    signal.setitimer(signal.ITIMER_REAL, left + seconds)


def _answer(seconds: str, file: str, mode: str, folder: str, beyond: str) -> None:
    """Print the times of one problem, or what went wrong; without a ``file``, what the clock adds."""
    _put_off(float(seconds))
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what modules print
            found = _measured(Path(file), mode, folder, json.loads(beyond), _put_off) if file else _beyond()
    except Exception as error:
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:300]}
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--level", default="3,1,2", help="in this order: level 3 compiles longest")
    parser.add_argument("--problem", default="", metavar="LEVEL:NUMBER[,…]", help="these only")
    parser.add_argument("--sample", type=int, default=0, help="as many problems, over levels 1 to 3 (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--mode", default="default", choices=["default", "reduce-overhead", "max-autotune"])
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1) - 1))
    parser.add_argument("--seconds", type=float, default=180.0, help="for one problem, without waiting for the GPU")
    parser.add_argument("--until", type=float, default=3600.0, help="seconds after which no problem is begun")
    options = parser.parse_args()
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # the problems already fill the processors
    done = set()
    if options.file.exists():
        lines = [json.loads(line) for line in options.file.read_text("utf-8").splitlines()]
        done = {line["problem"] for line in lines if line.get("compile_ms")}
    levels = [int(level) for level in options.level.split(",")]
    problems = kernelbench.read([options.folder])
    if options.problem or options.sample:
        problems = chosen(problems, options.problem, options.sample, options.seed)
    problems = [one for one in problems if one.problem.level in levels and one.problem.path not in done]
    problems.sort(key=lambda one: levels.index(one.problem.level or 0))
    began = time.monotonic()
    beyond = _in_a_process(["", "", "", ""], options.seconds).get("beyond")
    with tempfile.TemporaryDirectory() as folder, options.file.open("a", encoding="utf-8") as out:

        def keep(one: Found, again: bool) -> Found | None:
            if time.monotonic() - began > options.until:
                return None
            asked = [str(one.file), options.mode, folder, json.dumps(beyond)]
            answer = _in_a_process(asked, options.seconds)
            if again and "OutOfMemory" in answer.get("error", ""):  # others were there, too
                return one
            out.write(json.dumps({"problem": one.problem.path, "mode": options.mode, **answer}) + "\n")
            out.flush()
            print(f"{time.monotonic() - began:6.1f} s  {one.problem.path}: {answer}", flush=True)
            return None

        with ThreadPoolExecutor(options.workers) as pool:
            left = [one for one in pool.map(lambda one: keep(one, True), problems) if one is not None]
        for one in left:
            keep(one, False)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _answer(*sys.argv[2:])
    else:
        main()
