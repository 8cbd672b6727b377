"""Estimates beside measured speedups: over the problems of KernelBench, without a GPU.

    python benchmarks/estimates.py KERNELBENCH [--results benchmarks/results/kernelbench-nvidia-h100-80gb-hbm3.jsonl] [--seconds 60] [--only 50_]

KERNELBENCH is a checkout, or a folder with ``level1`` and so on. Each problem is estimated in a process of its own that ends after
``--seconds``, for the GPU that the results were measured on. Speedups are those over eager. Writes benchmarks/results/estimates.md: Spearman's rank
correlation, overall and by level, and a row for each problem. Problems that need real tensors to be looked at are left out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from kernel_lsp import candidate_notes, schema  # noqa: E402
from kernel_lsp.errors import UserError  # noqa: E402
from kernel_lsp.estimating.estimate import estimate  # noqa: E402
from kernel_lsp.estimating.kernels import way  # noqa: E402
from kernel_lsp.estimating.operators import eager  # noqa: E402
from kernel_lsp.evaluation import results_file  # noqa: E402
from kernel_lsp.specimen import faking  # noqa: E402
from kernel_lsp.specimen.looking import attempt, imported  # noqa: E402
from kernel_lsp.suites import kernelbench  # noqa: E402
from kernel_lsp.synthesis.schedule.target import target  # noqa: E402

MEASURED = ROOT / "benchmarks" / "results" / "kernelbench-nvidia-h100-80gb-hbm3.jsonl"
OUT = ROOT / "benchmarks" / "results" / "estimates.md"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--results", type=Path, default=MEASURED)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.folder is None:
        print("estimates.py: name the folder of KernelBench")
        return 0
    measured, gpu = measurements(options.results)
    rows = []
    for found in kernelbench.read([options.folder]):
        problem = found.problem
        if problem.id not in measured or options.only not in problem.name:
            continue
        began = time.monotonic()
        row = {"id": problem.id, "level": problem.level, **measured[problem.id]}
        answer = in_a_process(Path(found.file), problem.class_name, gpu, row, options.seconds)
        row["seconds"] = round(time.monotonic() - began, 1)
        rows.append(row | answer)
        print(json.dumps(rows[-1]), flush=True)
    text = table(rows, gpu)
    options.out.write_text(text)
    print(text.split("| problem")[0])
    return 0


def measurements(path: Path) -> tuple[dict[str, dict[str, Any]], str]:
    """Problem → measured microseconds and operators that stayed with torch; and the GPU's name."""
    found: dict[str, dict[str, Any]] = {}
    gpu = ""
    for record in results_file.read(path).records:
        report = schema.from_json(schema.Report, record.report)
        if report is None or report.chosen is None:
            continue
        chosen = report.candidates[report.chosen]
        shapes = chosen.measurement.shapes if chosen.measurement is not None else []
        if not shapes or shapes[0].eager is None or shapes[0].kernel is None:
            continue
        gpu = report.device.name if report.device is not None else gpu
        eager, kernel = shapes[0].eager.median, shapes[0].kernel.median
        kept = sorted({name.partition(".default")[0] for name in _kept(chosen.candidate)})
        halves = "float16" in chosen.candidate.arithmetic
        found[record.problem.id] = {
            "measured_eager": eager,
            "measured_kernel": kernel,
            "measured_kept": kept,
            "measured_halves": halves,
        }
    return found, gpu


def _kept(candidate: schema.Candidate) -> list[str]:
    """The operators that stayed with torch; records of before have them in the note alone."""
    if candidate.kept:
        return list(candidate.kept)
    return [".".join(name.split(".")[:2]) for name in candidate_notes.kept(candidate.note)]


def in_a_process(path: Path, class_name: str, gpu: str, row: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The estimate as JSON data, or why there is none. Warm: torch is imported once, here."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, path, class_name, gpu, row), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(seconds):
            return {"why": f"took more than {seconds:.0f} s"}
        return here.recv()  # type: ignore[no-any-return]
    except EOFError:
        return {"why": "its process ended"}
    finally:
        process.kill()
        process.join()


def _answer(there: Any, path: Path, class_name: str, gpu: str, row: dict[str, Any]) -> None:
    given = {"path": str(path), "class_name": class_name, "inputs": None, "threads": 1}
    quiet = lambda *_: None  # noqa: E731
    try:
        seen = attempt(given, quiet, *imported(given, quiet), fake=True)
        if isinstance(seen.exported, UserError):
            raise seen.exported
        found = estimate(seen.exported, class_name=class_name, gpu=gpu, least_bytes=seen.specimen.bytes)
        answer = {**schema.to_json(found), "why": found.missing, "like": None}
        if found.speedup is not None:
            answer["like"] = _like(seen.exported, gpu, row)
        there.send(answer)
    except (UserError, faking.NeedsValues) as error:
        there.send({"why": str(error).replace(str(path), path.name)})
    except Exception as error:
        traceback.print_exc()
        there.send({"why": f"{type(error).__name__}: {error}".splitlines()[0]})


def _like(exported: Any, gpu: str, row: dict[str, Any]) -> float | None:
    """The seconds of the kernel that was measured: with the same operators left to torch, and products of the same sort."""
    left = frozenset(row["measured_kept"])
    try:
        found = way(exported, eager(exported).operators, target(gpu), "Model", left=left, halves=row["measured_halves"])
    except Exception:  # it cannot be written so any more
        return None
    return found.seconds


# -- what came of it --------------------------------------------------------------------------------------------------


def ranks(values: list[float]) -> list[float]:
    """The place of each value in their order, from 1; equal ones share the mean of their places."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for place in order[first : last + 1]:
            result[place] = (first + last) / 2 + 1
        first = last + 1
    return result


def spearman(pairs: list[tuple[float, float]]) -> float | None:
    """Spearman's rank correlation; None of fewer than three pairs, or where one side is constant."""
    if len(pairs) < 3:
        return None
    left, right = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    if len(set(left)) == 1 or len(set(right)) == 1:
        return None
    return statistics.correlation(left, right)


def _measured(row: dict[str, Any]) -> float:
    return row["measured_eager"] / row["measured_kernel"]  # type: ignore[no-any-return]


def _as_measured(row: dict[str, Any]) -> float:
    return row["eager"] / (row["like"] * 1e6)  # type: ignore[no-any-return]


def table(rows: list[dict[str, Any]], gpu: str) -> str:
    with_both = [row for row in rows if row.get("speedup")]
    lines = [
        f"# Estimated beside measured speedups over eager, {gpu}",
        "",
        "Written by `python benchmarks/estimates.py KERNELBENCH`; docs/performance.md says how it is read.",
        "",
        "Rank correlations. *As now*: the kernels that the synthesizer would write now. *As measured*: what was measured was left to torch, and products are of the",
        "sort that was measured; where the synthesizer cannot write that any more, the problem is left out there.",
        "",
        "| problems | estimated | speedup, as now | speedup, as measured | eager's time | kernel's time, as measured | median of estimated / measured speedup, as measured |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    groups = [("all", with_both)]
    groups += [(f"level {n}", [r for r in with_both if r["level"] == n]) for n in sorted({r["level"] for r in rows})]
    for name, group in groups:
        same = [r for r in group if r["like"]]
        found = [
            spearman([(r["speedup"], _measured(r)) for r in group]),
            spearman([(_as_measured(r), _measured(r)) for r in same]),
            spearman([(r["eager"], r["measured_eager"]) for r in group]),
            spearman([(r["like"], r["measured_kernel"]) for r in same]),
        ]
        shown = " | ".join("" if one is None else f"{one:.2f}" for one in found)
        off = f"{statistics.median([_as_measured(r) / _measured(r) for r in same]):.2f}" if same else ""
        lines.append(f"| {name} | {len(group)} | {shown} | {off} |")
    lines += [
        "",
        "| problem | launches | traffic / least | eager µs: estimated | measured | kernel µs: as now | as measured | measured | speedup: as now | as measured | measured |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows:
        eager, kernel = row["measured_eager"], row["measured_kernel"]
        if not row.get("speedup"):
            lines.append(
                f"| {row['id']} | {row['why']} | | | {eager:.0f} | | | {kernel:.0f} | | | {_measured(row):.2f} |"
            )
            continue
        least = f"{row['bytes'] / row['least_bytes']:.1f}" if row["least_bytes"] else ""
        like = (f"{row['like'] * 1e6:.0f}", f"{_as_measured(row):.2f}") if row["like"] else ("", "")
        lines.append(
            f"| {row['id']} | {row['launches']} | {least} | {row['eager']:.0f} | {eager:.0f} | {row['kernel']:.0f} "
            f"| {like[0]} | {kernel:.0f} | {row['speedup']:.2f} | {like[1]} | {_measured(row):.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
