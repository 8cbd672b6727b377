"""Draw the recorded times of samples/ on a GPU, as the table that ``make demo`` prints.

    python tools/samples_picture.py [RESULTS.json] [--output PICTURE.svg]

Reads what benchmarks/samples.py wrote and measures nothing. Writes docs/images/<name of the results>.svg unless told.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kernel_lsp import errors, schema
from kernel_lsp.commands.print_reports import print_reports
from kernel_lsp.commands.run_jobs import Task
from kernel_lsp.jobs.job import Job

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "samples-nvidia-h100-80gb-hbm3.json"
IMAGES = ROOT / "docs" / "images"


def tasks_of(results: Path) -> list[Task]:
    """The recorded reports as what the command line has after a run. A class without a kernel may fail, as in make demo."""
    tasks = []
    for recorded in json.loads(results.read_text("utf-8")):
        problem = recorded.pop("error")
        report = schema.from_json(schema.Report, recorded)
        name = f"{report.target.uri}::{report.target.class_name}"
        job = Job("", "generate", report.target, ROOT / report.target.uri, report=report, state="done")
        error = errors.from_json(problem) if problem else None
        tasks.append(Task(name, None, job, error, may_fail=error is not None))
    return tasks


def caption(tasks: list[Task]) -> str:
    """The device and the versions that the times are of."""
    device = next(task.report.device for task in tasks if task.report and task.report.device)
    return f"{device.name}, Python {device.python}, torch {device.torch}, Triton {device.triton}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    tasks = tasks_of(options.results)
    picture = options.output or IMAGES / f"{options.results.stem}.svg"
    print_reports(tasks, picture, title=f"kernel-lsp generate samples: {caption(tasks)}")


if __name__ == "__main__":
    main()
