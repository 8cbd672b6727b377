"""The table of docs/transformers.md from what ``kernel-lsp generate benchmarks/transformers_modules --json`` printed into the file named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def row(report: dict[str, Any]) -> str:
    """One module: status, ops in Triton, errors, kernels and what stayed with torch."""
    file, name = Path(report["target"]["uri"]).name, report["target"]["class_name"]
    if report["error"] or not report["candidates"]:
        return f"| {file} | {name} | cannot | | | | | |"
    validated = report["candidates"][report["chosen"] or 0]
    verdict, note = validated["verdict"], validated["candidate"]["note"]
    lowered, _, kept = note.partition(" ops in Triton")
    kept = kept.removeprefix("; torch runs ").replace("aten.", "").replace(".default", "") or "nothing"
    errors = " | ".join("" if e is None else f"{e:.1e}" for e in (verdict["error"], verdict["eager_error"]))
    return f"| {file} | {name} | {verdict['status']} | {lowered} | {errors} | {verdict['launches']} | {kept} |"


def main() -> None:
    reports = json.loads(Path(sys.argv[1]).read_text("utf-8"))["reports"]
    print("| file | module | result | ops in Triton | error | eager's error | kernels | stays with torch |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for report in reports:
        print(row(report))
    for report in reports:
        if report["error"]:
            print(f"\n- {report['target']['class_name']}: {report['error']['message']}")


if __name__ == "__main__":
    main()
