"""Reports as one table for people. What was not measured says so, and why."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernel_lsp import figures, schema
from kernel_lsp.commands.running import WANTED, Task
from kernel_lsp.errors.surface import words
from kernel_lsp.figures import skipped_text
from kernel_lsp.jobs import sources

_GOOD, _BAD, _DIM = "green", "red", "dim"
_WIDTH = 132  # of a picture, and of what is piped into a file
_NARROW, _NARROWER = 118, 100  # a terminal with fewer columns gets fewer of ours


def print_reports(tasks: Sequence[Task], picture: Path | None = None) -> None:
    """Print the table, the reasons of what did not work, and where the files went; save it as SVG if asked to."""
    console = Console(record=picture is not None)
    if picture is not None or not console.is_terminal:
        console.width = _WIDTH
    console.print(table_of(tasks, console.width))
    for task, name in zip(tasks, names(tasks), strict=True):
        reason = reason_of(task)
        if reason:
            mark = f"[{_GOOD}]·[/]" if is_good(task) else f"[{_BAD}]✗[/]"
            console.print(f"{mark} [bold]{escape(name)}[/]: {escape(reason)}", highlight=False)
        before = task.report.before if task.report is not None else ""
        said = [f"Its file {before}."] if before else []
        for line in [*said, *recorded_lines(task), *skipped_lines(task), *source_lines(task)]:
            console.print(f"  {escape(words(line))}", highlight=False, style="dim")
    for line in footer(tasks):
        console.print(escape(line), highlight=False, style="dim")
    if picture is not None:
        save_picture(console, picture)


def save_picture(console: Console, picture: Path) -> None:
    """Save what a console has recorded as SVG."""
    svg = console.export_svg(title="kernel-lsp")
    # A picture that loads nothing from anywhere: the reader's own monospaced font does.
    picture.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), "utf-8")


def table_of(tasks: Sequence[Task], width: int = _WIDTH) -> Table:
    """One row a task. What does not fit into ``width`` columns of text is left out, not broken up."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("module", overflow="fold")
    table.add_column("result", no_wrap=True)
    table.add_column("ops in\nTriton", no_wrap=True)
    table.add_column("error (eager's)" if width >= _NARROW else "error", justify="right", no_wrap=True)
    if width >= _NARROWER:
        table.add_column("registers /\nspills / shared", justify="right", no_wrap=True)
    table.add_column("µs: eager /\ncompile / kernel", justify="right", no_wrap=True)
    table.add_column("speedup over\neager / compile", justify="right", no_wrap=True)
    table.add_column("s", justify="right", no_wrap=True)
    for task, name in zip(tasks, names(tasks), strict=True):
        table.add_row(escape(name), *row(task, width))
    return table


def row(task: Task, width: int = _WIDTH) -> list[str]:
    """The cells of one task after its name."""
    judged, report = shown(task), task.report
    seconds = report.seconds.get("report") if report else None
    last = f"{seconds:.1f}" if seconds is not None else "–"
    compiled = [compiled_text(judged.verdict.kernels) if judged else "–"] if width >= _NARROWER else []
    if judged is None:
        status = "cancelled" if _cancelled(task) else "skipped" if task.skipped else "no kernel"
        return [f"[{_DIM if task.skipped else _BAD}]{status}[/]", "–", "–", *compiled, "–", "–", last]
    verdict = judged.verdict
    status = "regressed" if report and report.regression else verdict.status
    words = figures.precision_words(verdict.held_to) if verdict.status in schema.CORRECT else ""
    status += f" · {words}" if words else ""
    return [
        f"[{_GOOD if is_good(task) else _BAD}]{status}[/]",
        ops_text(judged.candidate.note),
        errors_text(verdict, width >= _NARROW),
        *compiled,
        times_text(judged.measurement),
        speedup_text(judged.measurement),
        last,
    ]


def ops_text(note: str) -> str:
    """``6 of 6`` from the synthesizer's note; of a language model's candidate it is not known."""
    found = re.match(r"\d+ of \d+", note)
    return found.group() if found else "–"


def is_good(task: Task) -> bool:
    return task.status() == WANTED


def shown(task: Task) -> schema.Judged | None:
    """The candidate that stands for the task: the chosen one, or the first."""
    report = task.report
    if report is None or not report.candidates:
        return None
    return report.candidates[report.chosen if report.chosen is not None else 0]


def errors_text(verdict: schema.Verdict, eager: bool = True) -> str:
    """Largest relative error against the float64 oracle, and eager's own."""
    if verdict.error is None:
        return "–"
    return f"{verdict.error:.1e}" + (
        f" ({verdict.eager_error:.1e})" if eager and verdict.eager_error is not None else ""
    )


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
        return "not measured"
    times = (shape.eager, shape.compiled, shape.kernel)
    return " / ".join(f"{time.median:.1f}" if time else "–" for time in times)


def speedup_text(measurement: schema.Measurement | None) -> str:
    """``2.31× / 1.24×``, or why there is none. The first is over the recorded shapes, where some were timed."""
    shape = measurement.shapes[0] if measurement and measurement.shapes else None
    if shape is None or shape.kernel is None or not shape.kernel.median:
        missing = measurement.missing if measurement else ""
        return "no CUDA GPU" if "no CUDA GPU" in missing else "not measured"
    return " / ".join(f"{ratio:.2f}×" if ratio else "–" for ratio in figures.speedups(measurement))


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


def skipped_lines(task: Task) -> list[str]:
    """How many checks a verdict left out, where it did."""
    judged = shown(task)
    skipped = skipped_text(judged.verdict) if judged is not None and judged.verdict.status in schema.CORRECT else ""
    return [f"{names([task])[0]}: checks: {skipped}; --thorough makes all of them."] if skipped else []


def recorded_lines(task: Task) -> list[str]:
    """What the speedup over eager is about where recorded shapes were timed, and which were not."""
    judged = shown(task)
    measurement = judged.measurement if judged is not None else None
    if measurement is None or measurement.recorded is None:
        return []
    name, lines = names([task])[0], []
    ratio, words = figures.speedups(measurement)[0], figures.mix_words(measurement)
    if ratio and words:
        share = figures.mix_share(measurement)
        part = f" ({share:.0%} of its time there)".replace("%", " %") if share else ""
        lines.append(f"{name}: {figures.factor(ratio)} {words}{part}; the times are at the example's shapes.")
    if measurement.recorded.left_out:
        left_out = "; ".join(measurement.recorded.left_out)
        lines.append(f"{name}: recorded from {measurement.recorded.source} and not timed: {left_out}.")
    return lines


def source_lines(task: Task) -> list[str]:
    """What each source came up with, where a language model was among them."""
    report = task.report
    if report is None or not any(source.model or source.problem for source in report.sources):
        return []
    told = str(task.error).rstrip(".") if task.error else None  # said already
    lines = [f"{part}." for part in sources.words(report) if not (told and told in part)]
    for source in report.sources:
        if source.model:
            rate = f", {source.tokens_per_second:.0f} tokens/s" if source.tokens_per_second else ""
            seconds = ", ".join(f"{stage} {time:.1f} s" for stage, time in source.seconds.items())
            lines.append(f"{source.model} on {source.device}: {source.tokens} tokens{rate}; {seconds}.")
    return lines


def footer(tasks: Sequence[Task]) -> list[str]:
    """Device and versions, what was not measured or checked here, and where the files are."""
    reports = [task.report for task in tasks if task.report is not None]
    judged = [entry for task in tasks if (entry := shown(task)) is not None]
    lines = []
    for device in {_device_text(report.device): None for report in reports if report.device}:
        lines.append(f"Validated on this machine: {device}.")
    targets = {kernel.target: None for entry in judged for kernel in entry.verdict.kernels if kernel.target}
    if targets:
        what = "Registers a thread, bytes of spills a thread, bytes of shared memory a block"
        lines.append(
            f"{what}: the most of any kernel of the module, compiled for {', '.join(targets)}.".replace("cuda:", "sm_")
        )
    measured = [entry.measurement for entry in judged if entry.measurement is not None]
    for missing in {text: None for one in measured for text in (one.missing, one.compiled_missing) if text}:
        lines.append(f"Not measured: {missing.rstrip('.')}.")
    limits = judged[0].verdict.limits if judged else []
    limits = [limit for limit in limits if all(limit in entry.verdict.limits for entry in judged)]
    if limits:
        lines.append(f"Not checked here: {'; '.join(limits)}.")
    files = [report.file for report in reports if report.file]
    folders = {os.path.relpath(os.path.dirname(file)): None for file in files}
    if files:
        count = f"{len(files)} kernel file{'s' if len(files) != 1 else ''}"
        lines.append(f"{count} in {', '.join(f'{name}/' for name in folders)}")
    return lines


def _device_text(device: schema.Device | None) -> str:
    if device is None:
        return ""
    versions = [f"{name} {version}" for name in ("python", "torch", "triton") if (version := getattr(device, name))]
    return ", ".join([device.name, *versions])


def names(tasks: Sequence[Task]) -> list[str]:
    """The class's name where it tells the tasks apart, else the file's with it."""
    short = [
        task.name.partition("::")[2] or (task.report.target.class_name if task.report else "") or task.name
        for task in tasks
    ]
    return [name if short.count(name) == 1 else task.name for name, task in zip(short, tasks, strict=True)]


def _cancelled(task: Task) -> bool:
    return task.job is not None and task.job.state == "cancelled"
