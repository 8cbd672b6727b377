"""KernelBench's problems of which KernelAgent has published kernels, in bfloat16 as it times them: our kernels, and the seconds they took.

    python benchmarks/duel.py KERNELBENCH [--out FILE] [--seconds S]
    python benchmarks/duel.py --table FILE
    python benchmarks/duel.py KERNELBENCH --dry

On a machine with a CUDA GPU. The problems are copied to a folder with their inputs and parameters in bfloat16, and ``kernel-lsp eval kernelbench`` runs them one after the other, with
torch.compile in its default mode and nothing kept from before. FILE is its results file; what it has is not run again. Published factors are
those of docs/evaluation.md, over torch.compile or eager in bfloat16 on an H100, after about an hour of search for each. Four of the five
problems are known by name. ``--dry`` writes and counts kernels for an H100, without one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from kernel_lsp import schema  # noqa: E402
from kernel_lsp.evaluation import results_file  # noqa: E402
from kernel_lsp.suites import kernelbench  # noqa: E402
from kernel_lsp.suites.found import Found  # noqa: E402

#: number of level 1 → what the published kernel gains
PUBLISHED = {43: 3.4, 77: 2.6, 82: 2.95, 36: 2.3}

#: what a copy says beyond the problem's own text
_IN_BFLOAT16 = """

# In bfloat16: what follows is not KernelBench's.
_inputs_in_float32, _init_in_float32 = get_inputs, Model.__init__


def get_inputs():
    return [x.to(torch.bfloat16) if isinstance(x, torch.Tensor) else x for x in _inputs_in_float32()]


def _init(self, *args, **kwargs):
    _init_in_float32(self, *args, **kwargs)
    self.to(torch.bfloat16)


Model.__init__ = _init
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=Path("duel.jsonl"))
    parser.add_argument("--seconds", type=float, default=120.0, help="time budget of each problem")
    parser.add_argument("--device", default="cuda", help="as of kernel-lsp eval (default: cuda)")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the table of a results file, run nothing")
    parser.add_argument("--dry", action="store_true", help="count kernels, without a GPU")
    options = parser.parse_args()
    if options.table is not None:
        print(table(options.table))
        return 0
    if options.folder is None:
        print("duel.py: name the folder of KernelBench")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copies = written(kernelbench.read([options.folder]), Path(folder))
        if options.dry:
            counted(copies)
            return 0
        command = [
            sys.executable,
            "-m",
            "kernel_lsp.cli",
            "eval",
            "kernelbench",
            folder,
            "--mode",
            "eval",
            "--device",
            options.device,
        ]
        command += [
            "--generator",
            "synthesizer",
            "--baseline",
            "default",
            "--workers",
            "1",
            "--seconds",
            str(options.seconds),
        ]
        command += ["--resume" if options.out.exists() else "--results", str(options.out)]
        ended = subprocess.run(command, cwd=ROOT, env=os.environ | {"KERNEL_LSP_STORE": ""}, check=False).returncode
    if options.out.exists():
        print(table(options.out))
    return ended


def written(problems: list[Found], folder: Path) -> list[Found]:
    """The problems of ``PUBLISHED`` as copies in bfloat16, in ``folder``/level1."""
    level = folder / "level1"
    level.mkdir()
    for one in problems:
        if one.problem.level == 1 and one.problem.number in PUBLISHED:
            (level / one.file.name).write_text(one.file.read_text("utf-8") + _IN_BFLOAT16, "utf-8")
    return kernelbench.read([folder])


def counted(copies: list[Found]) -> None:
    """Print what is proposed for each, with the dtypes of its inputs and parameters."""
    import torch
    from support import ablated

    from kernel_lsp.errors import UserError
    from kernel_lsp.specimen.looking import attempt, imported

    torch.set_num_threads(1)
    quiet = lambda *_: None  # noqa: E731
    for one in copies:
        given = {"path": str(one.file), "class_name": "Model", "inputs": None, "threads": 1}
        seen = attempt(given, quiet, *imported(given, quiet), fake=True)
        if isinstance(seen.exported, UserError):
            raise seen.exported
        dtypes = {spec.dtype for spec in [*seen.specimen.inputs, *seen.specimen.parameters, *seen.specimen.outputs]}
        names: dict[str, Any] = {"class_name": "Model", "import_from": one.file.stem, "gpu": "H100"}
        way = ablated.ways(seen.module, seen.exported, 10, [], **names)[ablated.EVERYTHING]
        print(f"{one.problem.id} ({', '.join(sorted(dtypes))}): {len(way.candidates)} candidates {way.why}")
        for candidate in way.candidates:
            kernels, calls = ablated.launches(candidate)
            print(f"    {kernels} kernels, {calls} of torch  {candidate.variant}")


def table(path: Path) -> str:
    """A row a problem: times in microseconds, speedups, error against float64, and seconds, beside the published factor."""
    rows = [
        "| problem (bfloat16) | eager | torch.compile | kernel | over eager | over torch.compile | published | error (eager's) | "
        "seconds to the first verdict | to the kernel | with torch.compile |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    device = ""
    for record in sorted(results_file.read(path).records, key=lambda one: one.problem.number or 0):
        number, report = record.problem.number, schema.from_json(schema.Report, record.report)
        name = f"level 1 #{number} {record.problem.name.partition('_')[2].strip('_')}"
        if report is None or report.chosen is None:
            rows.append(f"| {name} | {record.status}: {record.reason} |" + " |" * 9)
            continue
        device = ", ".join(f"{key} {value}" for key, value in record.versions.items() if value)
        chosen = report.candidates[report.chosen]
        verdict, shapes = chosen.verdict, chosen.measurement.shapes if chosen.measurement is not None else []
        shape = shapes[0] if shapes else schema.ShapeMeasurement([])
        kernel = shape.kernel

        def over(other: schema.Timing | None, kernel: schema.Timing | None = kernel) -> str:
            return f"{other.median / kernel.median:.2f}×" if other and kernel else "–"

        times = (f"{one.median:.1f}" if one else "–" for one in (shape.eager, shape.compiled, kernel))
        errors = " ".join(f"{one:.1e}" if one is not None else "–" for one in (verdict.error, verdict.eager_error))
        first, measured = (report.seconds.get(stage) for stage in ("verdict", "measurement"))
        spent = (f"{one:.1f}" if one is not None else "–" for one in (first, measured, record.seconds))
        published = f"{PUBLISHED[number]}×" if number in PUBLISHED else "–"
        figures = [*times, over(shape.eager), over(shape.compiled), published, errors.replace(" ", " (") + ")", *spent]
        rows.append(f"| {name} | {' | '.join(figures)} |")
    return "\n".join([device, "", *rows])


if __name__ == "__main__":
    sys.exit(main())
