"""Adds records of ``kernel-lsp eval kernelbench`` to benchmarks/results/ and writes the table there again.

    python tools/keep_kernelbench.py KERNELBENCH STAND_INS RESULTS.jsonl…

KERNELBENCH: the folder with level1/ to level3/. STAND_INS: the times of torch.compile that ``--stand-ins`` was given. Each device
has its own file, and another for modules in training mode; records of several are refused. A record replaces the one of the same problem and mode where it is newer. Where torch.compile
was not timed, a time of STAND_INS is taken if eager agrees. What only the user who ran it needs is left out of the records:
sources of kernels, the compiler's figures, schedules that were tried, the modules' parameters, checks that passed.
After records in eval mode on an H100 run benchmarks/families.py, too: its table is of the same ones.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kernel_lsp import schema
from kernel_lsp.evaluation import results_file, stand_ins
from kernel_lsp.evaluation.records import Record

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
#: with these a run compares with the kept ones
AS_KEPT = ["--baseline", "none", "--seconds", "60"]
#: of a report's specimen
_OF_THE_MODULE = ("parameters", "settings", "attributes", "state", "graph", "forward", "sources")


def slim(record: dict[str, Any]) -> dict[str, Any]:
    """A record as JSON without what is left out."""
    report = record.get("report") or {}
    if "tried" in report:
        report["tried"] = []
    specimen = report.get("specimen") or {}
    for name in _OF_THE_MODULE:
        if specimen.get(name):
            specimen[name] = type(specimen[name])()
    for one in report.get("candidates", []):
        one["candidate"] |= {"source": "", "answer": ""}
        verdict = one.get("verdict") or {}
        verdict.pop("checks", None)
        if "kernels" in verdict:
            verdict["kernels"] = []
    return record


def filled(record: Record, times: dict[str, dict[str, float]], mark: str) -> Record:
    """A record with the time of torch.compile that ``times`` have for it, where it has none of its own."""
    report, stand_in = record.read_report(), times.get(record.problem.id)
    if report is None or stand_in is None or stand_ins.fill(report, stand_in, mark) != "filled":
        return record
    return dataclasses.replace(record, report=schema.to_json(report))


def device_of(records: list[Record]) -> str:
    """The name of the device that the records are of.

    Raises:
        SystemExit: they are of several, or do not say.
    """
    names = sorted({record.versions.get("device", "") for record in records})
    if len(names) != 1 or not names[0]:
        found = ", ".join(name or "none named" for name in names) or "no records"
        sys.exit(
            f"The records must be of one device, and these are of: {found}. Give those of each device on their own."
        )
    return names[0]


def mode_of(records: list[Record]) -> str:
    """The mode of the modules that the records are of.

    Raises:
        SystemExit: they are of both.
    """
    modes = sorted({record.mode for record in records})
    if len(modes) > 1:
        sys.exit(
            f"The records must be of one mode, and these are of {' and '.join(modes)}. Give those of each on their own."
        )
    return modes[0]


def main(kernelbench: str, times: str, *new: str) -> None:
    contents = [results_file.read(Path(path)) for path in new]
    found = [record for one in contents for record in one.records]
    device, mode = device_of(found), mode_of(found)
    name = f"kernelbench {'' if mode == 'eval' else mode} {device}"
    kept = RESULTS / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.jsonl"
    if kept.exists():
        contents.insert(0, results_file.read(kept))
    records = [record for one in contents for record in one.records]
    device_of(records)
    known, mark = stand_ins.read(Path(times), mode), stand_ins.mark(Path(times))
    merged = [filled(record, known, mark) for record in results_file.merged(records).values()]
    lines = [contents[0].header, *(slim(one.to_json()) for one in merged)]
    kept.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "scores.md"
        command = [sys.executable, "-m", "kernel_lsp", "eval", "kernelbench", kernelbench, "--mode", mode, *AS_KEPT]
        # Those without a record would be run here, on another device.
        problems = ",".join(
            f"{record.problem.level}:{record.problem.number}" for record in results_file.read(kept).records
        )
        command += ["--problem", problems, "--stand-ins", times, "--resume", str(kept), "--markdown", str(page)]
        subprocess.run(command, check=True)
        table = page.read_text()
    results = kept.with_suffix(".md")
    before = results.read_text() if results.exists() else table
    introduction = before[: before.index("\nDevice: ")]
    results.write_text(introduction + table[table.index("\nDevice: ") :])
    print(f"{results} is written; bring its introduction up to date")


if __name__ == "__main__":
    main(*sys.argv[1:])
