"""Reports as one table for people. What was not measured says so, and why."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernel_lsp import schema
from kernel_lsp.commands.running import Task

_NO_GPU = "not measured: no CUDA GPU"
_GOOD, _BAD = "green", "red"


def print_reports(tasks: Sequence[Task], picture: Path | None = None) -> None:
    """Print the table, the reasons of what did not work, and where the files went; save it as SVG if asked to."""
    console = Console(record=picture is not None, width=150 if picture else None)
    console.print(table_of(tasks))
    for task in tasks:
        reason = reason_of(task)
        if reason:
            console.print(f"[{_BAD}]✗[/] [bold]{escape(_short(task))}[/]: {escape(reason)}", highlight=False)
    for line in footer(tasks):
        console.print(escape(line), highlight=False, style="dim")
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        console.save_svg(str(picture), title="kernel-lsp generate samples/")


def table_of(tasks: Sequence[Task]) -> Table:
    table = Table(header_style="bold", row_styles=["", "dim"] if len(tasks) > 30 else None)
    table.add_column("module")
    table.add_column("result")
    table.add_column("in Triton")
    table.add_column("error (eager's)", justify="right")
    table.add_column("regs / spills / shared", justify="right")
    table.add_column("eager / compile / kernel µs", justify="right")
    table.add_column("speedup", justify="right")
    table.add_column("s", justify="right")
    for task in tasks:
        table.add_row(*row(task))
    return table


def row(task: Task) -> list[str]:
    """The cells of one task."""
    judged = shown(task)
    report = task.report
    seconds = report.seconds.get("report") if report else None
    last = f"{seconds:.1f}" if seconds is not None else ""
    if judged is None:
        return [escape(_short(task)), f"[{_BAD}]{'cancelled' if _cancelled(task) else 'none'}[/]", *[""] * 5, last]
    verdict = judged.verdict
    colour = _GOOD if verdict.status in schema.CORRECT and not (report and report.regression) else _BAD
    status = "regressed" if report and report.regression else verdict.status
    return [
        escape(_short(task)),
        f"[{colour}]{status}[/]",
        re.sub(r"\s*ops? in Triton", "", judged.candidate.note) or "–",
        errors_text(verdict),
        compiled_text(verdict.kernels),
        times_text(judged.measurement),
        speedup_text(judged.measurement),
        last,
    ]


def shown(task: Task) -> schema.Judged | None:
    """The candidate that stands for the task: the chosen one, or the first."""
    report = task.report
    if report is None or not report.candidates:
        return None
    return report.candidates[report.chosen if report.chosen is not None else 0]


def errors_text(verdict: schema.Verdict) -> str:
    if verdict.error is None:
        return "–"
    return f"{verdict.error:.1e}" + (f" ({verdict.eager_error:.1e})" if verdict.eager_error is not None else "")


def compiled_text(kernels: Sequence[schema.CompiledKernel]) -> str:
    """Registers, spills and shared memory: the greatest of each over a candidate's kernels."""
    parts = []
    for quantity in ("registers", "spills", "shared"):
        values = [value for kernel in kernels if (value := getattr(kernel, quantity)) is not None]
        parts.append(size_text(max(values)) if values else "–")
    return " / ".join(parts) if any(part != "–" for part in parts) else "not compiled"


def size_text(value: int) -> str:
    return f"{value / 1024:.0f}K" if value >= 10240 else str(value)


def times_text(measurement: schema.Measurement | None) -> str:
    """Medians at the example inputs, the first of the shapes."""
    shape = measurement.shapes[0] if measurement and measurement.shapes else None
    if shape is None:
        return _not_measured(measurement)
    times = (shape.eager, shape.compiled, shape.kernel)
    return " / ".join(f"{time.median:.1f}" if time else "–" for time in times)


def speedup_text(measurement: schema.Measurement | None) -> str:
    """``2.31× eager · 1.24× compile``, or why there is none."""
    shape = measurement.shapes[0] if measurement and measurement.shapes else None
    if shape is None or shape.kernel is None or not shape.kernel.median:
        return "no CUDA GPU" if _not_measured(measurement) == _NO_GPU else "–"
    parts = []
    if shape.eager:
        parts.append(f"{shape.eager.median / shape.kernel.median:.2f}× eager")
    if shape.compiled:
        parts.append(f"{shape.compiled.median / shape.kernel.median:.2f}× compile")
    return " · ".join(parts) or "–"


def _not_measured(measurement: schema.Measurement | None) -> str:
    missing = measurement.missing if measurement else ""
    return _NO_GPU if not missing or "GPU" in missing else "not measured"


def reason_of(task: Task) -> str:
    """Why there is no good kernel; "" where there is one."""
    if task.error is not None:
        return str(task.error)
    judged, report = shown(task), task.report
    if report is None or judged is None:
        return "not reached"
    if report.regression:
        return report.regression
    return "" if judged.verdict.status == "ok" else judged.verdict.reason or report.why


def footer(tasks: Sequence[Task]) -> list[str]:
    """Device and versions, what could not be checked here, and where the files are."""
    reports = [task.report for task in tasks if task.report is not None]
    lines = []
    for device in {_device_text(report.device): None for report in reports if report.device}:
        lines.append(f"Judged on {device}.")
    limits = {limit: None for task in tasks if (judged := shown(task)) for limit in judged.verdict.limits}
    lines += list(limits)[:4]
    folders = {os.path.relpath(os.path.dirname(report.file)): None for report in reports if report.file}
    if folders:
        count = sum(report.file is not None for report in reports)
        lines.append(f"{count} kernel file{'s' if count != 1 else ''} in {', '.join(f'{name}/' for name in folders)}")
    return lines


def _device_text(device: schema.Device | None) -> str:
    if device is None:
        return ""
    versions = [f"{name} {version}" for name in ("python", "torch", "triton") if (version := getattr(device, name))]
    return ", ".join([device.name, *versions])


def _short(task: Task) -> str:
    """The class's name where there is one: the file's name says little more."""
    return task.name.partition("::")[2] or (task.report.target.class_name if task.report else "") or task.name


def _cancelled(task: Task) -> bool:
    return task.job is not None and task.job.state == "cancelled"
