"""What each part of the synthesizer is worth on KernelBench: kernels with everything, and with one part switched off.

    python benchmarks/ablation.py KERNELBENCH [--problem 1:50,2:42] [--sample 30 --seed 1] [--workers N] [--out FILE]
    python benchmarks/ablation.py --table FILE
    python benchmarks/ablation.py KERNELBENCH --dry

On a machine with a CUDA GPU. KERNELBENCH is a checkout, or a folder with ``level1`` and so on. Without ``--problem`` it is a sample over levels 1 to 3,
as many of each level as that has a share in all problems. Each problem has a process of its own: its module is exported and synthesized for this GPU as it is, and once
for each part (``benchmarks/support/ablated.py``) without it. Of each way the first candidates that are right are raced, at most as many as a validation times, and the fastest of each
is timed, all in turn with eager (``kernel_lsp.validation.timing``). A candidate is right where its output is eager's within a relative norm of 1e-2: this is
no validation. A way of which none is right has failed. A way without a kernel counts as eager: then the class would run that.

Problems are synthesized and compiled side by side, as many as the GPU's memory has room for, and one times alone (``kernel_lsp.worker.gpu_lock``). The file gets a line of JSON a problem;
problems that it has times of are left out. ``--dry`` counts kernels instead, for a named GPU, without one: nothing is compiled.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import torch  # noqa: E402
from support import ablated  # noqa: E402
from support.ablated import EVERYTHING, PARTS, Way  # noqa: E402
from support.sampling import chosen  # noqa: E402

from kernel_lsp.errors import UserError  # noqa: E402
from kernel_lsp.schema import MOST_TIMED  # noqa: E402
from kernel_lsp.specimen import faking  # noqa: E402
from kernel_lsp.specimen.looking import Seen, attempt, imported  # noqa: E402
from kernel_lsp.suites import kernelbench  # noqa: E402
from kernel_lsp.suites.found import Found  # noqa: E402

#: candidates that a generation asks the synthesizer for, and those of them that are right that it times
_ASKED, _TIMED = 10, MOST_TIMED
_TIMING_SECONDS = 1.0
_SEED = 42
#: bytes that a problem takes beside its tensors, and how often it has these: inputs that rotate, results, what lies between
_BESIDE, _OFTEN = 3 << 30, 5
#: the part of the GPU's memory that problems side by side may take by that estimate
_ROOM = 0.9
_NAME = "problem_of_kernelbench"


@dataclass
class Running:
    """A problem's process. ``need``: bytes of the GPU's memory, once it has said so; ``admitted``: it uses them."""

    found: Found
    process: Any
    pipe: multiprocessing.connection.Connection
    need: int | None = None
    admitted: bool = False
    beside: bool = False  # another one used the GPU at the same time


@dataclass
class Asked:
    """What all problems are asked."""

    gpu: str
    parts: list[str]
    seconds: float
    candidates: int = _ASKED  # of each way
    dry: bool = False
    memory: int = 0  # bytes of the GPU
    beyond: float | None = None  # microseconds that events show beyond the work between them
    folder: str = ""  # of the GPU's lock
    versions: dict[str, str] = field(default_factory=dict)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--problem", default="", metavar="LEVEL:NUMBER[,…]", help="these only")
    parser.add_argument("--sample", type=int, default=30, help="as many problems, over levels 1 to 3 (default: 30)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--without", default=",".join(PARTS), metavar="PART[,PART]", help=f"of {', '.join(PARTS)}")
    parser.add_argument(
        "--candidates", type=int, default=_ASKED, help="of each way, at most (default: as a generation)"
    )
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1) - 1))
    parser.add_argument("--seconds", type=float, default=240.0, help="for one problem, without waiting for the GPU")
    parser.add_argument("--until", type=float, default=math.inf, help="seconds after which no problem is begun")
    parser.add_argument("--out", type=Path, default=Path("ablation.jsonl"))
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the table of a file, run nothing")
    parser.add_argument("--dry", action="store_true", help="count kernels, without a GPU")
    parser.add_argument("--gpu", default="H100", help="with --dry: the GPU that kernels are for")
    options = parser.parse_args()
    if options.table is not None:
        print(table(read(options.table)))
        return 0
    if options.folder is None:
        print("ablation.py: name the folder of KernelBench")
        return 0
    parts = options.without.split(",")
    if unknown := set(parts) - PARTS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    problems = chosen(kernelbench.read([options.folder]), options.problem, options.sample, options.seed)
    torch.set_num_threads(1)  # processes are forked from here, each with a core of its own
    # Asking CUDA whether there is a GPU would keep them from using one.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        asked = Asked(options.gpu, parts, options.seconds, options.candidates, options.dry, folder=folder)
        if options.dry:
            run(problems, asked, options.workers, options.until, lambda found, line: print(shown(line), flush=True))
            return 0
        there = _alone_in_a_process(_device, options.seconds)
        if "error" in there:
            print(f"ablation.py: {there['error']}", file=sys.stderr)
            return 1
        for name, value in there.items():
            setattr(asked, name, value)
        done = {line["problem"] for line in read(options.out) if "ways" in line} if options.out.exists() else set()
        problems = [one for one in problems if one.problem.path not in done]
        with options.out.open("a", encoding="utf-8") as out:

            def keep(found: Found, line: dict[str, Any]) -> None:
                out.write(json.dumps(line) + "\n")
                out.flush()
                print(f"{time.monotonic() - began:6.1f} s  {shown(line)}", flush=True)

            began = time.monotonic()
            run(problems, asked, options.workers, options.until, keep)
    print(table(read(options.out)))
    return 0


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a file, the last one of each problem."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [*{line["problem"]: line for line in lines}.values()]


# -- processes ----------------------------------------------------------------------------------------------------------


def run(
    problems: list[Found], asked: Asked, workers: int, until: float, keep: Callable[[Found, dict[str, Any]], None]
) -> None:
    """Run all problems, ``workers`` at once, and those that lacked memory beside others once more alone."""
    from kernel_lsp.worker.specimen import warm_up

    with contextlib.redirect_stdout(sys.stderr):
        warm_up()
    began, running = time.monotonic(), list[Running]()
    try:
        again = _run(problems, running, asked, workers, began + until, keep)
        _run(again, running, asked, 1, began + until, keep)
    finally:
        for one in running:
            _end(one)


def _run(
    problems: list[Found],
    running: list[Running],
    asked: Asked,
    workers: int,
    until: float,
    keep: Callable[[Found, dict[str, Any]], None],
) -> list[Found]:
    """Run all problems; gives those that lacked memory beside others. ``until``: when no further one is begun."""
    waiting, again = [*problems], list[Found]()
    while waiting or running:
        if time.monotonic() > until:
            waiting.clear()
        while waiting and len(running) < workers:
            running.append(_started(waiting.pop(0), asked))
        _admit(running, asked.memory * _ROOM)
        for pipe in multiprocessing.connection.wait([one.pipe for one in running], 5.0):
            one = next(one for one in running if one.pipe is pipe)
            answer = _heard(one)
            if "need" in answer:
                one.need = answer["need"]
                continue
            running.remove(one)
            _end(one)
            if one.beside and "OutOfMemory" in json.dumps(answer):
                again.append(one.found)
            else:
                keep(one.found, {"problem": one.found.problem.path, **answer})
    return again


def _started(found: Found, asked: Asked) -> Running:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_answer, args=(there, _problem, (found, asked), asked.seconds), daemon=False)
    process.start()
    there.close()
    return Running(found, process, here)


def _admit(running: list[Running], room: float) -> None:
    """Let those use the GPU that fit beside the ones that do, or one that does not fit alone."""
    for one in running:
        others = [other for other in running if other.admitted]
        taken = sum(other.need or 0 for other in others)
        if one.need is not None and not one.admitted and (not others or taken + one.need <= room):
            one.admitted = True
            with contextlib.suppress(OSError):
                one.pipe.send("go")
            for other in others:
                one.beside = other.beside = True


def _heard(one: Running) -> dict[str, Any]:
    try:
        return dict(one.pipe.recv())
    except EOFError:
        one.process.join()
        if one.process.exitcode == -signal.SIGALRM:
            return {"error": "not done in time"}
        return {"error": f"its process ended with {one.process.exitcode}"}


def _end(one: Running) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(one.process.pid, signal.SIGKILL)  # and what it has started
    one.process.join()
    one.pipe.close()


def _alone_in_a_process(function: Callable[..., dict[str, Any]], seconds: float) -> dict[str, Any]:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_answer, args=(there, function, (), seconds))
    process.start()
    there.close()
    try:
        return dict(here.recv())
    except EOFError:
        return {"error": "the process that looks at the GPU ended"}
    finally:
        process.join()


def _answer(pipe: Any, function: Callable[..., dict[str, Any]], given: tuple[Any, ...], seconds: float) -> None:
    """Send what ``function`` gives, or what went wrong, and end this process."""
    os.setsid()
    os.dup2(2, 1)  # what modules print
    _put_off(seconds)
    try:
        found = function(pipe, *given)
    except Exception as error:
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:300]}
    pipe.send(found)
    os._exit(0)  # and not what was begun before the fork


def _put_off(seconds: float) -> None:
    """End this process so much later: the signal ends it, wherever it is."""
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    signal.setitimer(signal.ITIMER_REAL, left + seconds)


# -- one problem, in its process ----------------------------------------------------------------------------------------


def _device(pipe: Any) -> dict[str, Any]:
    """The fields of ``Asked`` that the GPU tells."""
    import triton

    from kernel_lsp.validation import timing

    if not torch.cuda.is_available():
        return {"error": "there is no CUDA GPU here; --dry does without"}
    torch.zeros(1, device="cuda")
    name = torch.cuda.get_device_name()
    versions = {"device": name, "torch": torch.__version__, "triton": triton.__version__}
    memory = torch.cuda.get_device_properties(0).total_memory
    return {"gpu": name, "memory": memory, "beyond": timing.overhead_by_spans(), "versions": versions}


def _problem(pipe: Any, found: Found, asked: Asked) -> dict[str, Any]:
    began = time.monotonic()
    seen = _seen(found)
    sys.modules[_NAME] = seen.user_module
    names = {"class_name": found.problem.class_name, "import_from": _NAME, "gpu": asked.gpu}
    ways = ablated.ways(seen.module, seen.exported, asked.candidates, asked.parts, **names)
    spent = {"synthesis": round(time.monotonic() - began, 2)}
    line: dict[str, Any] = {"level": found.problem.level, "trait": found.problem.trait}
    if asked.dry:
        counted = {name: _counted(way, ways[EVERYTHING]) for name, way in ways.items()}
        if "tuning" in counted:
            counted["tuning"]["same"] = len(ways[EVERYTHING].candidates) < 2
        return {**line, "ways": counted, "spent": spent}
    pipe.send({"need": min(int(asked.memory * _ROOM), _BESIDE + _OFTEN * (seen.specimen.bytes or 0))})
    waiting = time.monotonic()
    pipe.recv()
    _put_off(time.monotonic() - waiting)
    return {**line, **asked.versions, **_measured(seen, ways, asked, spent)}


def _seen(found: Found) -> Seen:
    given = {"path": str(found.file), "class_name": found.problem.class_name, "inputs": None, "threads": 1}
    quiet = lambda *_: None  # noqa: E731
    both = imported(given, quiet)
    try:
        seen = attempt(given, quiet, *both, fake=True)
    except (faking.NeedsValues, UserError):
        seen = attempt(given, quiet, *both, fake=False)
    if isinstance(seen.exported, UserError):
        raise seen.exported
    return seen


def _counted(way: Way, everything: Way) -> dict[str, Any]:
    """Of a way what is known without a GPU: its first candidate's launches and operators of torch, how many are replayed."""
    if not way.candidates:
        return {"why": way.why, "same": not everything.candidates}
    kernels, calls = ablated.launches(way.candidates[0])
    replayed = sum(map(ablated.is_replayed, way.candidates))
    return {
        "kernels": kernels,
        "torch": calls,
        "variant": way.candidates[0].variant,
        "candidates": len(way.candidates),
        "replayed": replayed,
        "same": way.sources == everything.sources,
        **_faults(way),
    }


def _faults(way: Way) -> dict[str, Any]:
    """How many ways to write kernels ended in an error of the synthesizer's, and the first of them."""
    found = {json.dumps(fault, sort_keys=True): fault for one in way.candidates for fault in one.faults}
    return {"faults": len(found), "first_fault": next(iter(found))[:300]} if found else {}


def _measured(seen: Seen, ways: dict[str, Way], asked: Asked, spent: dict[str, float]) -> dict[str, Any]:
    """The line of a problem: eager's time, and of each way the fastest candidate with its time, in microseconds."""
    from support import gpu_times

    from kernel_lsp.worker import gpu_lock

    began = at = time.monotonic()
    lock = gpu_lock.begin(asked.folder, torch.device("cuda:0"), lambda *_: None, _put_off)

    def spending(what: str) -> None:
        nonlocal at
        spent[what] = round(time.monotonic() - at, 2)
        at = time.monotonic()

    torch.manual_seed(_SEED)
    with torch.device("cuda"):
        module = seen.cls(*seen.user_module.get_init_inputs()).eval().cuda()
        args = tuple(x.cuda() if isinstance(x, torch.Tensor) else x for x in seen.user_module.get_inputs())
    spending("inputs")
    sources = [source for way in ways.values() for source in way.sources]
    with torch.no_grad(), gpu_times.scratch() as folder:
        found = gpu_times.Candidates(module, args, sources, folder)
        found.compile()
        spending("compile")
        found.check()
        spending("check")
        right = {name: found.right(way.sources, 1 if name == "tuning" else _TIMED) for name, way in ways.items()}
        torch.cuda.empty_cache()
        with gpu_lock.alone(lock):  # and shared until this process ends, so that it leaves the GPU while none times
            spending("wait")
            taken = found.race(list(dict.fromkeys(source for of in right.values() for source in of)))
            best = {name: gpu_times.fastest(of, taken) for name, of in right.items() if of}
            found.keep(set(best.values()))
            spending("race")
            eager, times = found.timed(_TIMING_SECONDS, asked.beyond)
            torch.cuda.empty_cache()  # for those that time next
            spending("time")
    everything = ways[EVERYTHING]
    lines: dict[str, Any] = {}
    for name, way in ways.items():
        lines[name] = {"same": way.sources == everything.sources, "candidates": len(way.candidates), **_faults(way)}
        if name == "tuning":
            lines[name]["same"] = len(right[EVERYTHING]) < 2
        if off := [found.problems[source] for source in way.sources if source in found.problems]:
            lines[name] |= {"dropped": len(off), "first_dropped": off[0]}
        if name in best:
            one = next(one for one in way.candidates if one.source == best[name])
            kernels, calls = ablated.launches(one)
            lines[name] |= {
                "us": round(times[one.source], 3),
                "kernels": kernels,
                "torch": calls,
                "variant": one.variant,
            }
            lines[name] |= {"error": found.errors[one.source], "timed": len(right[name])}
        elif way.candidates:
            lines[name]["failed"] = off[0] if off else "none is right"
        else:
            lines[name]["why"] = way.why
    spent["all"] = round(time.monotonic() - began + spent["synthesis"], 2)
    return {"eager_us": round(eager, 3), "ways": lines, "spent": spent}


# -- tables -------------------------------------------------------------------------------------------------------------


def shown(line: dict[str, Any]) -> str:
    """A problem for people."""
    if "ways" not in line:
        return f"{line['problem']}: {line.get('error')}"
    rows = [f"{line['problem']}" + (f": eager {line['eager_us']:.1f} µs" if "eager_us" in line else "")]
    for name, way in line["ways"].items():
        if "kernels" not in way:
            rows.append(f"    {name:11} {way.get('failed') or 'no kernel: ' + way['why']}")
            continue
        figures = (
            f"{way['us']:10.1f} µs" if "us" in way else f"{way['candidates']:3} candidates, {way['replayed']} replayed"
        )
        same = "  (the same)" if way["same"] and name != EVERYTHING else ""
        same += f"  {way['faults']} errors: {way['first_fault']}" if "faults" in way else ""
        rows.append(
            f"    {name:11} {figures}, {way['kernels']:3} kernels, {way['torch']:2} of torch  {way['variant'][:70]}{same}"
        )
    return "\n".join(rows)


def speedup(line: dict[str, Any], name: str) -> float | None:
    """Over eager; 1 where a way has no kernel, None where it failed."""
    way = line["ways"].get(name)
    if way is None or "failed" in way:
        return None
    return line["eager_us"] / way["us"] if "us" in way else 1.0


def table(lines: list[dict[str, Any]]) -> str:
    """For each part the geomean of the speedup over eager with everything and without it, where it changes anything, and over all."""
    timed = [one for one in lines if "eager_us" in one and "us" in one["ways"][EVERYTHING]]
    if not timed:
        return "Nothing was timed."
    head = f"{timed[0].get('device', '')}, torch {timed[0].get('torch', '')}, triton {timed[0].get('triton', '')}"
    rows = [
        f"{head}; {len(timed)} problems with a kernel, {len(lines) - len(timed)} without a time.",
        "",
        "Geomeans of the speedup over eager.",
        "",
        "| without | problems whose candidates it changes | with everything | without it | without ÷ with | all: with everything | all: without it | failed without it |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for part in PARTS:
        of = [one for one in timed if part in one["ways"]]
        both = [(one, speedup(one, EVERYTHING), speedup(one, part)) for one in of]
        failed = sum(without is None for _, _, without in both)
        pairs = [(one, w, wo) for one, w, wo in both if w is not None and wo is not None]
        if not pairs:
            continue
        changed = [(w, wo) for one, w, wo in pairs if not one["ways"][part]["same"]]
        every = [(w, wo) for _, w, wo in pairs]
        figures = [*_geomeans(changed), *_geomeans(every)[:2]]
        rows.append(f"| {part} | {len(changed)} | {' | '.join(figures)} | {failed} |")
    return "\n".join(rows)


def _geomeans(pairs: list[tuple[float, float]]) -> list[str]:
    """Of the first, of the second, and the second over the first."""
    if not pairs:
        return ["–"] * 3
    with_, without = (statistics.geometric_mean(of) for of in zip(*pairs, strict=True))
    return [f"{with_:.2f}×", f"{without:.2f}×", f"{without / with_:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
