"""What confinement and the unusual inputs add to the time to the first verdict.

    python benchmarks/confinement.py [--only rms_norm,softmax] [--rounds 7] [--device cuda]

Two warm workers take turns with every sample in samples/: one with all layers, one with KERNEL_LSP_WITHOUT_LAYERS naming
those that can be switched off. The layers that cannot be (limits, environment, descriptors, capabilities) are timed by
themselves, with all others, in a process that enters them. The unusual inputs (NaN, infinities, offsets, other settings, …)
are checks of their own, each announced by the worker when it begins: their share is the time from there to the next.
All are medians of one run; load on the machine meets both workers alike. Processor time, of all of a worker's processes for
the whole request, hardly depends on load. Writes benchmarks/results/confinement-<device>.json and .md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_lsp.analysis import module_classes
from kernel_lsp.jobs.client import Worker

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
OFF = "landlock,namespace,seccomp,cgroup,rlimits"
SECONDS = 300.0

#: how the checks are named that came with the unusual inputs
UNUSUAL = (
    *("NaN among the inputs", "infinities among", "a large offset", "cancelling values", "whole and half numbers"),
    *("large integers", "integers at their ends", "a negative integer", "with ", "one row of", "all rows of"),
    *("huge values", "every autotuned configuration", "many calls", "small parameters"),
)

ENTER = """
import os, sys, tempfile, time
from kernel_lsp.confinement import cgroup, entering, layers
group = cgroup.make(f"kernel-lsp-benchmark-{os.getpid()}")
found = layers.look(group)
folder = tempfile.mkdtemp()
if os.fork() == 0:
    began = time.perf_counter()
    entering.enter(entering.Bounds(folder, [folder]), found, [])
    print(time.perf_counter() - began, flush=True)
    os._exit(0)
os.wait()
cgroup.remove(group)
__import__("shutil").rmtree(folder)
"""


def entering(rounds: int) -> float:
    """Median seconds in which a process takes on all layers."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", ENTER]
    return statistics.median(
        float(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
        for _ in range(rounds)
    )


def processor_seconds(pid: int) -> float:
    """What a process and all below it, also those that have ended, have spent."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    spent = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return spent + sum(processor_seconds(int(child)) for child in below)


@dataclass
class Run:
    """Seconds of one request: to the first verdict, in checks on unusual inputs before it, of processors in all."""

    verdict: float
    unusual: float
    processor: float
    status: str


async def first_verdict(worker: Worker, given: dict[str, Any]) -> Run:
    assert worker.pid
    spent = processor_seconds(worker.pid)
    began = time.monotonic()
    stages: list[tuple[float, str]] = []
    verdicts: list[tuple[float, str]] = []

    def on_event(name: str, data: Any) -> None:
        now = time.monotonic() - began
        if name == "progress" and not verdicts:
            stages.append((now, data["message"]))
        elif name == "verdict" and not verdicts:
            verdicts.append((now, data["status"]))

    await worker.request("validate", given, seconds=SECONDS, stage="validating", on_event=on_event)
    end, status = verdicts[0]
    ends = [at for at, _ in stages[1:]] + [end]
    unusual = sum(until - at for (at, name), until in zip(stages, ends, strict=True) if name.startswith(UNUSUAL))
    return Run(end, unusual, processor_seconds(worker.pid) - spent, status)


async def measure(names: list[str], rounds: int, device: str) -> dict[str, dict[str, Any]]:
    """Sample's class → medians; progress goes to standard error."""
    workers = {
        "with": Worker([sys.executable]),
        "without": Worker(["env", f"KERNEL_LSP_WITHOUT_LAYERS={OFF}", sys.executable]),
    }
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for worker in workers.values():
                await worker.ready()
            for name in names:
                path = Path(folder) / f"{name}.py"
                path.write_text((ROOT / "samples" / path.name).read_text())
                class_name = module_classes(path.read_text(), path)[-1].name
                about = {"path": str(path), "class_name": class_name, "device": device}
                asked = await workers["with"].request(
                    "synthesize", about, seconds=SECONDS, stage="synthesizing", on_event=None
                )
                given = {**about, "source": asked["candidates"][0]["source"], "measure": "none", "seconds": SECONDS}
                taken: dict[str, list[Run]] = {which: [] for which in workers}
                for number in range(rounds + 1):
                    for which in sorted(workers, reverse=bool(number % 2)):
                        one = await first_verdict(workers[which], given)
                        if number:  # the first round fills caches
                            taken[which].append(one)
                found[class_name] = summary(taken)
                print(class_name, found[class_name], file=sys.stderr, flush=True)
        finally:
            for worker in workers.values():
                await worker.close()
    return found


def summary(taken: dict[str, list[Run]]) -> dict[str, Any]:
    def median(what: str, which: str) -> float:
        return round(statistics.median(getattr(run, what) for run in taken[which]), 3)

    def added(what: str) -> float:
        pairs = zip(taken["with"], taken["without"], strict=True)
        return round(statistics.median(getattr(a, what) - getattr(b, what) for a, b in pairs), 3)

    return {
        "status": sorted({run.status for runs in taken.values() for run in runs}),
        "with": median("verdict", "with"),
        "without": median("verdict", "without"),
        "added": added("verdict"),
        "unusual_inputs": median("unusual", "with"),
        "processor_with": median("processor", "with"),
        "processor_without": median("processor", "without"),
        "processor_added": added("processor"),
    }


def device_name(device: str) -> str:
    if device == "interpreter":
        return "Triton interpreter CPU"
    import torch

    return torch.cuda.get_device_name(device)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of files in samples/, with commas between them")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="interpreter")
    options = parser.parse_args()
    files = sorted(path.stem for path in (ROOT / "samples").glob("*.py") if path.stem != "sorted_unique")
    names = [name for name in options.only.split(",") if name] or files
    load = os.getloadavg()[0]
    entered = entering(max(options.rounds, 7))
    found = asyncio.run(measure(names, options.rounds, options.device))
    middle = {
        key: round(statistics.median(one[key] for one in found.values()), 3)
        for key in next(iter(found.values()))
        if key != "status"
    }
    about = {
        "date": str(datetime.date.today()),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load": round(load, 1),
        "rounds": options.rounds,
        "entering": round(entered, 4),
        "device": device_name(options.device),
    }
    columns = ("without", "with", "added", "unusual_inputs", "processor_without", "processor_with", "processor_added")
    rows = [
        f"| {name} | {', '.join(one['status'])} | " + " | ".join(f"{one[key]:.2f}" for key in columns) + " |"
        for name, one in (*found.items(), ("median", {"status": [], **middle}))
    ]
    lines = [
        "# What confinement and the unusual inputs cost",
        "",
        f"Seconds to the first verdict on a warm worker, medians of {options.rounds} in turn; {about['device']}, Python "
        f"{about['python']}, {about['cpus']} CPUs, load average before it began {about['load']}, {about['date']}. Written by "
        "benchmarks/confinement.py, whose first lines say what is compared. *Added*: the median of the differences between "
        f"neighbouring runs. *Without*: without {OFF}. *Processor*: of the whole request.",
        "",
        f"A process enters all layers in {entered * 1000:.1f} ms.",
        "",
        "| module | result | without | with all | added | unusual inputs | processor without | with all | added |",
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: |",
        *rows,
    ]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"confinement-{about['device'].lower().replace(' ', '-')}"
    file.with_suffix(".json").write_text(json.dumps({**about, "median": middle, "samples": found}, indent=1) + "\n")
    file.with_suffix(".md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
