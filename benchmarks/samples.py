"""Every sample on this GPU: correct, and its time against eager, torch.compile and the roofline.

    python benchmarks/samples.py [FOLDER] [--interpreter PYTHON]

Runs ``kernel-lsp generate FOLDER --json`` (samples/ unless told) and writes benchmarks/results/<folder>-<device>.json
and .md. Exit status 1 where a kernel is wrong, or there is no GPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def generate(folder: str, interpreter: str | None) -> list[dict[str, Any]]:
    """The reports of every class in ``folder``; progress goes to standard error."""
    command = [sys.executable, "-m", "kernel_lsp.cli", "generate", folder, "--json", "--device", "cuda", "--no-write"]
    if interpreter:
        command += ["--interpreter", interpreter]
    output = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout
    document = json.loads(output)
    reports: list[dict[str, Any]] = document.get("reports", [document])
    return reports


def time_of(timing: dict[str, Any] | None) -> str:
    """Median and half the distance between the 20th and 80th percentile."""
    return "–" if not timing else f"{timing['median']:.1f} ± {(timing['high'] - timing['low']) / 2:.1f}"


def row(report: dict[str, Any]) -> str:
    name = report["target"]["class_name"]
    if report.get("chosen") is None:
        reason = (report.get("error") or {}).get("message") or report.get("why") or "no kernel"
        return f"| {name} | {reason} |" + " |" * 9
    validated = report["candidates"][report["chosen"]]
    verdict, shape = validated["verdict"], (validated["measurement"]["shapes"] or [{}])[0]
    kernel, eager, compiled = shape.get("kernel"), shape.get("eager"), shape.get("compiled")
    graph = shape.get("kernel_graph")

    def ratio(other: dict[str, Any] | None) -> str:
        return f"{other['median'] / kernel['median']:.2f}×" if other and kernel else "–"

    def share(name: str) -> str:
        return f"{shape[name]:.0%}" if shape.get(name) else "–"

    errors = f"{verdict['error']:.1e} ({verdict['eager_error']:.1e})"
    status = verdict["status"] + (f", {validated['candidate']['variant']}" if validated["candidate"]["variant"] else "")
    return (
        f"| {name} | {status} | {validated['candidate']['note'].partition(' ops')[0]} | {errors} | {time_of(eager)} | "
        f"{time_of(compiled)} | {time_of(kernel)} | {time_of(graph)} | {ratio(eager)} | {ratio(compiled)} | "
        f"{share('roofline_share')} / {share('bandwidth_share')} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="samples")
    parser.add_argument("--interpreter")
    options = parser.parse_args()
    reports = generate(options.folder, options.interpreter)
    device = next((r["device"] for r in reports if r.get("device") and r["device"]["kind"] == "cuda"), None)
    if device is None:
        print("no CUDA GPU here, or nothing was generated", file=sys.stderr)
        return 1
    lines = [
        f"# {options.folder}/ on {device['name']}",
        "",
        f"{device['name']} (capability {device['capability']}, copies {device['copy_bandwidth'] / 1e12:.2f} TB/s), Python "
        f"{device['python']}, torch {device['torch']}, Triton {device['triton']}, {datetime.date.today()}. Written by "
        f"`python benchmarks/samples.py {options.folder}`.",
        "",
        "Microseconds: median ± half the distance between the 20th and 80th percentile, eager, torch.compile and the kernel "
        "interleaved in one process, L2 flushed, inputs rotated. *Replayed*: the kernel from a CUDA graph. *Roofline*: the "
        "share of what bytes and FLOPs need at the device's measured rates; *copy*: least bytes over time, as a share of the "
        "measured copy bandwidth. Error is relative to the float64 oracle, eager's own in parentheses.",
        "",
        "| module | result | ops in Triton | error (eager's) | eager | torch.compile | kernel | replayed | over eager "
        "| over compile | roofline / copy |",
        "| --- | --- | --- | --- | --: | --: | --: | --: | --: | --: | --: |",
        *(row(report) for report in reports),
    ]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", f"{options.folder} {device['name']}".lower()).strip("-")
    for report in reports:
        report["target"]["uri"] = (
            report["target"]["uri"].rsplit("/", 2)[-2] + "/" + report["target"]["uri"].rsplit("/", 1)[-1]
        )
        for validated in report["candidates"]:
            validated["candidate"]["source"] = ""  # long, and written anew by the same command
    (RESULTS / f"{slug}.json").write_text(json.dumps(reports, indent=1) + "\n")
    (RESULTS / f"{slug}.md").write_text(text)
    print(text)
    wrong = [r for r in reports if r["candidates"] and r["chosen"] is None]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
