"""Adds records of ``kernel-lsp eval kernelbench`` to benchmarks/results/ and writes the table there again.

    python tools/keep_kernelbench.py KERNELBENCH STAND_INS RESULTS.jsonl…

KERNELBENCH: the folder with level1/ to level3/. STAND_INS: the times of torch.compile that ``--stand-ins`` was given. A record
replaces the one of the same problem and mode where it is newer. What only whoever ran it can use is left out of the records:
sources of kernels, the compiler's figures, schedules that were tried, the modules' parameters, checks that passed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kernel_lsp.evaluation import results_file

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


def main(kernelbench: str, stand_ins: str, *new: str) -> None:
    (kept,) = RESULTS.glob("kernelbench-nvidia-*.jsonl")
    header = kept.read_text().split("\n", 1)[0]
    records = [record for path in [kept, *map(Path, new)] for record in results_file.read(path).records]
    latest = [slim(record.to_json()) for record in results_file.merged(records).values()]
    kept.write_text("\n".join([header, *(json.dumps(record, ensure_ascii=False) for record in latest)]) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "scores.md"
        command = [sys.executable, "-m", "kernel_lsp", "eval", "kernelbench", kernelbench, *AS_KEPT]
        command += ["--stand-ins", stand_ins, "--resume", str(kept), "--markdown", str(page)]
        subprocess.run(command, check=True)
        table = page.read_text()
    before = kept.with_suffix(".md").read_text()
    introduction = before[: before.index("\nDevice: ")]
    kept.with_suffix(".md").write_text(introduction + table[table.index("\nDevice: ") :])
    print(f"{kept.with_suffix('.md')} is written; bring its introduction up to date")


if __name__ == "__main__":
    main(*sys.argv[1:])
