"""Seconds from the command to the first verdict and to the full report, per sample, cold and warm.

    python benchmarks/generate.py [--device auto] [--only rms_norm,softmax] [--warm-only]

Cold: a worker that has yet to start, and empty caches of Triton and Inductor. Warm: a worker that has generated for
another module before, and no kernel of this module in any cache: what the second press of the button costs.
Writes benchmarks/results/generate-<device>.json and .md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import platform
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from kernel_lsp import schema
from kernel_lsp.analysis import module_classes
from kernel_lsp.jobs import Job, Jobs
from kernel_lsp.settings import load

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"

WARM_UP = """
import torch

class WarmUp(torch.nn.Module):
    def forward(self, x):
        return x.sigmoid() - x

def get_inputs():
    return [torch.randn(16, 128)]
"""


class Clock:
    """Takes the time of each job's first verdict."""

    def __init__(self) -> None:
        self.verdicts: dict[str, float] = {}

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        pass

    def verdict(self, job: Job) -> None:
        self.verdicts.setdefault(job.id, time.monotonic())

    def finished(self, job: Job) -> None:
        pass


async def press(jobs: Jobs, clock: Clock, path: Path, class_name: str) -> dict[str, Any]:
    """Generate once and return the seconds it took, and what came of it."""
    began = time.monotonic()
    job = jobs.submit("generate", schema.Target(path.as_uri(), class_name), path, write=False)
    assert job.task is not None and job.report is not None
    await asyncio.wait([job.task])
    ended = time.monotonic()
    first = clock.verdicts.get(job.id)
    report = job.report
    status = report.candidates[report.chosen].verdict.status if report.chosen is not None else "none"
    device = schema.to_json(report.device) if report.device else None
    return {
        "first_verdict": round(first - began, 2) if first else None,
        "report": round(ended - began, 2),
        "status": status,
        "error": job.error.to_json() if job.error else None,
        "device": device,
    }


async def run(samples: list[tuple[Path, str]], device: str, cold: bool) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {class_name: {} for _, class_name in samples}

    def new_jobs(cache: str) -> tuple[Jobs, Clock]:
        os.environ["TRITON_CACHE_DIR"] = os.path.join(cache, "triton")
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(cache, "inductor")
        clock = Clock()
        return Jobs(lambda path: load(path, cli={"device": device})[0], clock), clock

    with tempfile.TemporaryDirectory() as folder:
        warm_up = Path(folder) / "warm_up.py"
        warm_up.write_text(WARM_UP)
        jobs, clock = new_jobs(folder)
        await press(jobs, clock, warm_up, "WarmUp")
        for path, class_name in samples:
            rows[class_name]["warm"] = await press(jobs, clock, path, class_name)
            print(class_name, "warm", rows[class_name]["warm"]["first_verdict"], flush=True)
        await jobs.close()
    for path, class_name in samples if cold else []:
        with tempfile.TemporaryDirectory() as folder:
            jobs, clock = new_jobs(folder)
            rows[class_name]["cold"] = await press(jobs, clock, path, class_name)
            print(class_name, "cold", rows[class_name]["cold"]["first_verdict"], flush=True)
            await jobs.close()
    return rows


def markdown(data: dict[str, Any]) -> str:
    def seconds(row: dict[str, Any], kind: str, key: str) -> str:
        value = row.get(kind, {}).get(key)
        return "–" if value is None else f"{value:.1f}"

    device = data["device"]
    lines = [
        "# Seconds from the command to the verdict",
        "",
        f"{device.get('name', 'no device')}, Python {device.get('python')}, torch {device.get('torch')}, Triton "
        f"{device.get('triton')}, {data['cpus']} CPUs ({data['cpu']}), load average before it began {data['load']}, {data['date']}. Written by benchmarks/generate.py, "
        "whose first lines say what cold and warm mean.",
        "",
        "| module | result | warm: first verdict | warm: report | cold: first verdict | cold: report |",
        "| --- | --- | --: | --: | --: | --: |",
    ]
    for name, row in data["samples"].items():
        cells = [seconds(row, kind, key) for kind in ("warm", "cold") for key in ("first_verdict", "report")]
        error = row["warm"]["error"]
        result = error["code"] if error else row["warm"]["status"]
        lines.append(f"| {name} | {result} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", default="", help="file names without .py, comma separated")
    parser.add_argument("--warm-only", action="store_true")
    options = parser.parse_args()
    wanted = set(filter(None, options.only.split(",")))
    files = [path for path in sorted((ROOT / "samples").glob("*.py")) if not wanted or path.stem in wanted]
    samples = [(path, found.name) for path in files for found in module_classes(path.read_text("utf-8"), path)]
    load_average = round(os.getloadavg()[0], 1)  # of other programs: these figures suffer from it
    rows = asyncio.run(run(samples, options.device, not options.warm_only))
    devices = [row["warm"].pop("device") for row in rows.values()]
    for row in rows.values():
        row.get("cold", {}).pop("device", None)
    device: dict[str, Any] = next(filter(None, devices), {})
    data: dict[str, Any] = {
        "device": device,
        "cpus": os.cpu_count(),
        "load": load_average,
        "cpu": platform.processor() or platform.machine(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "samples": rows,
    }
    name = re.sub(r"[^a-z0-9]+", "-", device.get("name", "none").lower()).strip("-")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"generate-{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    (RESULTS / f"generate-{name}.md").write_text(markdown(data))
    print(markdown(data))


if __name__ == "__main__":
    main()
