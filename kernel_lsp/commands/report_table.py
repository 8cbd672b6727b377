"""Reports as one table for people. What was not measured says so, and why."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from kernel_lsp import atomic_write, candidate_notes, claims, envelope_sizes, schema, speedup
from kernel_lsp.commands.run_jobs import WANTED, Task
from kernel_lsp.commands.wrapping import PIPED, table_width
from kernel_lsp.errors.surface import adapted
from kernel_lsp.jobs import sources
from kernel_lsp.speedup import skipped_text

_GOOD, _BAD, _DIM, _DATED = "green", "red", "dim", "yellow"
NOT_COMPILED = "not compiled"
_OURS = ("recall", "synthesizer")  # generators that run no model


def print_reports(
    tasks: Sequence[Task],
    picture: Path | None = None,
    title: str = "kernel-lsp",
    *,
    page: str = "",
    more: str = "--json",
    files: bool = True,
) -> None:
    """Print the table, the reasons of what did not work, and where the files went; save it as SVG, with a title, if asked to.

    ``page``, ``more`` and ``files`` as in ``Surroundings``.
    """
    console = Console(width=table_width(sys.stdout))
    _print(console, tasks, Surroundings(console.width, page, more, files))
    if picture is not None:  # as wide as it is without a terminal
        recorder = Console(file=io.StringIO(), record=True, width=PIPED)
        _print(recorder, tasks, Surroundings(more=more))
        save_picture(recorder, picture, title)


def _print(console: Console, tasks: Sequence[Task], at: Surroundings) -> None:
    columns, one_line = columns_for(tasks, console.width)
    if len(tasks) > 1 or any(shown(task) is not None for task in tasks):
        console.print(_drawn(tasks, columns, one_line))
    first: dict[str, str] = {}  # of an error, the class that it was said of
    for task, name in zip(tasks, names(tasks), strict=True):
        reason = reason_of(task)
        if reason:
            if task.error is not None and not task.skipped and first.setdefault(reason, name) != name:
                reason = f"as {first[reason]}."
            mark = f"[{_GOOD}]·[/]" if is_good(task) else f"[{_DATED}]↻[/]" if is_outdated(task) else f"[{_BAD}]✗[/]"
            console.print(f"{mark} [bold]{escape(name)}[/]: {escape(adapted(reason))}", highlight=False)
        for line in [*example_lines(task), *recorded_lines(task), *source_lines(task)]:
            console.print(f"  {escape(adapted(line))}", highlight=False, style="dim")
    for line in [*before_lines(tasks), *footer(tasks, columns, at)]:
        console.print(escape(adapted(line)), highlight=False, style="dim")


def save_picture(console: Console, picture: Path, title: str = "kernel-lsp") -> None:
    """Save what a console has recorded as SVG."""
    svg = console.export_svg(title=title)
    # A picture that loads nothing from anywhere: the reader's own monospaced font does.
    atomic_write.write(picture, re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


def table_of(tasks: Sequence[Task], width: int = PIPED) -> RenderableType:
    """One row a task, as wide as ``width`` columns of text at most: names stay whole, columns are left out.

    Where the names leave no room for any column, each has a line of its own above its row.
    """
    return _drawn(tasks, *columns_for(tasks, width))


@dataclass(frozen=True)
class Surroundings:
    """Where the lines below the table stand.

    Attributes:
        width: of a line, in columns of text.
        page: the report page that was written, as the user would name it; "" without one.
        more: the option that shows everything that was not checked.
        files: whether they say where the kernel files are.
    """

    width: int = PIPED
    page: str = ""
    more: str = "--json"
    files: bool = True


@dataclass(frozen=True)
class Column:
    """A column of the table; ``cell`` gives markup."""

    header: str
    cell: Callable[[Task], str]
    justify: Literal["left", "right"] = "right"


def columns_for(tasks: Sequence[Task], width: int) -> tuple[list[Column], bool]:
    """The columns that have something to say and fit, and whether names do, too, on the same line."""
    validated = [entry for task in tasks if (entry := shown(task)) is not None]
    timed = any(entry.measurement is not None and entry.measurement.shapes for entry in validated)
    compiled = any(compiled_text(entry.verdict.kernels) != NOT_COMPILED for entry in validated)
    whole = [RESULT, OPS, ERRORS, *([COMPILED] if compiled else []), *([TIMES, SPEEDUP] if timed else []), SECONDS]
    choices = [whole]
    for column in (COMPILED, ERRORS, SECONDS, OPS, ERROR, TIMES):
        last = choices[-1]
        if column is ERRORS:
            choices.append([ERROR if one is ERRORS else one for one in last])
        elif column in last:
            choices.append([one for one in last if one is not column])
    for one_line in (True, False):
        for columns in choices:
            if _width_of(_drawn(tasks, columns, one_line, whole_names=True)) <= width:
                return columns, one_line
    return choices[-1], False


def _width_of(drawn: RenderableType) -> int:
    console = Console(width=1000, file=io.StringIO())
    return console.measure(drawn).maximum


def _drawn(
    tasks: Sequence[Task], columns: Sequence[Column], one_line: bool, whole_names: bool = False
) -> RenderableType:
    """The table; its name column wraps where ``whole_names`` is not asked for and even a line of its own is too short."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    if one_line:
        table.add_column("module", overflow="fold", no_wrap=whole_names)
    for column in columns:
        header = column.header + (_compiled_for(tasks) if column is COMPILED else "")
        table.add_column(header, justify=column.justify, no_wrap=True)
    for task, name in zip(tasks, names(tasks), strict=True):
        table.add_row(*([escape(name)] if one_line else []), *(column.cell(task) for column in columns))
    return table if one_line or whole_names else _TwoLines(table, names(tasks))


class _TwoLines:
    """A table whose rows, of one line each, stand below the name of their class."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self._table, self._names = table, names

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._table, options, pad=False)
        while lines and not "".join(segment.text for segment in lines[-1]).strip():
            lines.pop()
        head = len(lines) - len(self._names)
        for i, line in enumerate(lines):
            if i >= head:
                yield Text(self._names[i - head], style="bold", overflow="fold")
            yield Segments([*line, Segment.line()])
        yield Segment.line()


def _result(task: Task) -> str:
    validated, report = shown(task), task.report
    if validated is None:
        status = "cancelled" if _cancelled(task) else "skipped" if task.skipped else "no kernel"
        return f"[{_DIM if task.skipped else _BAD}]{status}[/]"
    verdict = validated.verdict
    status = "regressed" if report and report.regression else verdict.status
    precision = speedup.precision_words(verdict.held_to) if verdict.status in schema.CORRECT else ""
    status += f" · {precision}" if precision else ""
    if is_outdated(task):
        return f"[{_DATED}]out of date[/]"
    return f"[{_GOOD if is_good(task) else _BAD}]{status}[/]"


def _of_validated(text: Callable[[schema.Validated], str]) -> Callable[[Task], str]:
    """A cell about the candidate that stands for the task; "–" where there is none."""

    def cell(task: Task) -> str:
        validated = shown(task)
        return text(validated) if validated is not None else "–"

    return cell


def _seconds(task: Task) -> str:
    seconds = task.report.seconds.get("report") if task.report else None
    return f"{seconds:.1f}" if seconds is not None else "–"


RESULT = Column("result", _result, "left")
OPS = Column("ops in\nTriton", _of_validated(lambda one: ops_text(one.candidate.note)), "left")
ERRORS = Column("error (eager's)", _of_validated(lambda one: errors_text(one.verdict)))
ERROR = Column("error", _of_validated(lambda one: errors_text(one.verdict, eager=False)))
COMPILED = Column("registers / spills,\nshared in bytes", _of_validated(lambda one: compiled_text(one.verdict.kernels)))
TIMES = Column("µs: eager /\ncompile / kernel", _of_validated(lambda one: times_text(one.measurement)))
SPEEDUP = Column("speedup over\neager / compile", _of_validated(lambda one: speedup_text(one.measurement)))
SECONDS = Column("s", _seconds)


def _compiled_for(tasks: Sequence[Task]) -> str:
    """`` for sm_90``, below the header of ``COMPILED``: what the kernels were compiled for."""
    validated = [entry for task in tasks if (entry := shown(task)) is not None]
    targets = {kernel.target: None for entry in validated for kernel in entry.verdict.kernels if kernel.target}
    return f"\nfor {', '.join(targets).replace('cuda:', 'sm_')}" if targets else ""


def ops_text(note: str) -> str:
    """``6 of 6`` from the synthesizer's note; of a language model's candidate it is not known."""
    found = candidate_notes.in_triton(note)
    return "{} of {}".format(*found) if found else "–"


def is_good(task: Task) -> bool:
    """Whether a task ended as a command that succeeds wants it."""
    return task.status() == WANTED


def is_outdated(task: Task) -> bool:
    """Whether the class was changed away from its kernel: the kernel was right when it was written."""
    validated = shown(task)
    return validated is not None and validated.verdict.status == "outdated"


def shown(task: Task) -> schema.Validated | None:
    """The candidate that stands for the task: the chosen one, or the first."""
    report = task.report
    if report is None or not report.candidates:
        return None
    return report.candidates[report.chosen if report.chosen is not None else 0]


def errors_text(verdict: schema.Verdict, eager: bool = True) -> str:
    """Relative error against the float64 oracle on the example inputs, and eager's own."""
    error, of_eager = speedup.errors_on_the_example(verdict)
    if error is None:
        return "–"
    return f"{error:.1e}" + (f" ({of_eager:.1e})" if eager and of_eager is not None else "")


def compiled_text(kernels: Sequence[schema.CompiledKernel]) -> str:
    """Registers, spills and shared memory: the greatest of each over a candidate's kernels."""
    parts = []
    for quantity in ("registers", "spills", "shared"):
        values = [value for kernel in kernels if (value := getattr(kernel, quantity)) is not None]
        parts.append(size_text(max(values)) if values else "–")
    return " / ".join(parts) if any(part != "–" for part in parts) else NOT_COMPILED


def size_text(value: int) -> str:
    """A number of elements; from 10240 on in multiples of 1024, as ``16K``."""
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
    return " / ".join(f"{ratio:.2f}×" if ratio else "–" for ratio in speedup.speedups(measurement))


def reason_of(task: Task) -> str:
    """Why there is no good kernel; "" where there is one."""
    if task.skipped:
        return "skipped, since it has no example inputs."
    if task.error is not None:
        return str(task.error)
    validated, report = shown(task), task.report
    if report is None or validated is None:
        return "not reached"
    if report.regression:
        return report.regression
    return "" if validated.verdict.status == "ok" else validated.verdict.reason or report.why


def only_where_lines(tasks: Sequence[Task]) -> list[str]:
    """The sizes at which kernels are fixed though their modules take others."""
    lines = []
    for task, name in zip(tasks, _prefixes(tasks), strict=True):
        validated = shown(task)
        specimen = task.report.specimen if task.report is not None else None
        if validated is not None and validated.verdict.status in schema.CORRECT:
            text = envelope_sizes.only_where(validated.candidate.source, specimen)
            lines += [f"{name.rstrip()}: {text[0].lower()}{text[1:]}" if name else text] if text else []
    return lines


def skipped_line(tasks: Sequence[Task]) -> str:
    """How many checks verdicts left out, where some did."""
    parts = []
    for task, name in zip(tasks, _prefixes(tasks), strict=True):
        validated = shown(task)
        text = (
            skipped_text(validated.verdict)
            if validated is not None and validated.verdict.status in schema.CORRECT
            else ""
        )
        parts += [f"{name}{text}"] if text else []
    return f"Checks: {'; '.join(parts)} (--thorough makes all of them)." if parts else ""


#: relative error of eager from which on its answer tells little of a kernel's
_USELESS = 0.1


def errors_line(tasks: Sequence[Task]) -> str:
    """The checks of the largest errors, where these were not on the example inputs, of which the table tells."""
    of_check: dict[str, list[str]] = {}
    useless = []
    for task, name in zip(tasks, names(tasks), strict=True):
        validated = shown(task)
        check = speedup.error_check_words(validated.verdict) if validated is not None else ""
        if validated is None or not check:
            continue
        if len(tasks) == 1:
            return f"Largest error: {_largest(validated.verdict)}, in the check “{check}”."
        of_check.setdefault(check, []).append(name)
        error, of_eager = validated.verdict.error or 0.0, validated.verdict.eager_error or 0.0
        useless += [name] if of_eager > max(_USELESS, error / 3) else []
    if not of_check:
        return ""
    told = "; ".join(f"{check} ({', '.join(of)})" for check, of in of_check.items())
    said = f"Largest errors in other checks than the example inputs: {told}."
    return said + (f" Eager's own is of that size: {', '.join(useless)}." if useless else "")


def _largest(verdict: schema.Verdict) -> str:
    """``1.1 (eager's 1.1)``."""
    of_eager = f" (eager's {verdict.eager_error:.2g})" if verdict.eager_error is not None else ""
    return f"{verdict.error:.2g}{of_eager}"


def _prefixes(tasks: Sequence[Task]) -> list[str]:
    """The names with which a line below the table begins what it says of a class; "" for the only one."""
    return [f"{name} " for name in names(tasks)] if len(tasks) > 1 else [""] * len(tasks)


def before_lines(tasks: Sequence[Task]) -> list[str]:
    """What was known of the kernel files before, where it adds to the table: each thing once, with the classes that it is true of."""
    of: dict[str, list[str]] = {}
    for task, name in zip(tasks, names(tasks), strict=True):
        if task.report is not None and task.report.before and not _found_again(task, task.report.before):
            of.setdefault(task.report.before, []).append(name)
    if len(tasks) == 1:
        return [f"The kernel file {before}." for before in of]
    return [f"{', '.join(classes)}: the kernel file {before}." for before, classes in of.items()]


def _found_again(task: Task, before: str) -> bool:
    """Whether this machine found the same of the kernel as it is now, without a time; ``before`` ends with that, in brackets."""
    validated = shown(task)
    if validated is None:
        return False
    return before.endswith(f"({claims.figure(claims.Claim(validated.verdict, validated.measurement))})")


def example_lines(task: Task) -> list[str]:
    """What was found with each example, where there are several, and why a kernel has not all of them."""
    validated = shown(task)
    lines = speedup.example_lines(validated.verdict) if validated is not None else []
    return [f"{names([task])[0]}, {line}" for line in lines]


def recorded_lines(task: Task) -> list[str]:
    """What the speedup over eager is about where recorded shapes were timed, and which were not."""
    validated = shown(task)
    measurement = validated.measurement if validated is not None else None
    if measurement is None or measurement.recorded is None:
        return []
    name, lines = names([task])[0], []
    ratio, words = speedup.speedups(measurement)[0], speedup.mix_words(measurement)
    if ratio and words:
        share = speedup.mix_share(measurement)
        part = f" ({share:.0%} of its time there)".replace("%", " %") if share else ""
        lines.append(f"{name}: {speedup.factor(ratio)} {words}{part}; the times are at the example's shapes.")
    if measurement.recorded.left_out:
        left_out = "; ".join(measurement.recorded.left_out)
        lines.append(f"{name}: recorded from {measurement.recorded.source} and not timed: {left_out}.")
    return lines


def source_lines(task: Task) -> list[str]:
    """What each source came up with, where a language model was among them, or should have been."""
    report = task.report
    others = [source for source in report.sources if source.generator not in _OURS] if report is not None else []
    if report is None or not any(source.model or source.problem for source in others):
        return []
    told = str(task.error).rstrip(".") if task.error else None  # said already
    lines = [f"{part}." for part in sources.words(report) if not (told and told in part)]
    for source in report.sources:
        if source.model:
            rate = f", {source.tokens_per_second:.0f} tokens/s" if source.tokens_per_second else ""
            seconds = ", ".join(f"{stage} {time:.1f} s" for stage, time in source.seconds.items())
            lines.append(f"{source.model} on {source.device}: {source.tokens} tokens{rate}; {seconds}.")
    return lines


def footer(tasks: Sequence[Task], columns: Sequence[Column], at: Surroundings | None = None) -> list[str]:
    """Once for all of them: the device, what the ``columns`` cannot say, what was not measured or checked, the files."""
    at = at or Surroundings()
    validated = [entry for task in tasks if (entry := shown(task)) is not None]
    devices = {_device_text(task.report.device): None for task in tasks if task.report and shown(task)}
    lines = [f"Validated on {device}." for device in devices if device]
    lines += only_where_lines(tasks)
    checks = [errors_line(tasks) if {ERROR, ERRORS} & {*columns} else "", skipped_line(tasks)]
    lines += [" ".join(filter(None, checks))] if len(tasks) == 1 else checks
    lines += [f"Not measured: {why.rstrip('.')}." for why in missing(tasks)]
    limits = validated[0].verdict.limits if validated else []
    limits = [limit for limit in limits if all(limit in entry.verdict.limits for entry in validated)]
    lines += [limits_line(limits, at)] if limits else []
    lines += not_compiled_lines(tasks)
    return [line for line in [*lines, _files_line(tasks if at.files else [], at.page)] if line]


def limits_line(limits: Sequence[str], at: Surroundings) -> str:
    """``Not checked: races; the example's sizes; 2 more: --json.``: what fits into one line, each thing once."""
    brief = list(dict.fromkeys(text for limit in limits if (text := _brief(limit))))
    line = ""
    for count in range(len(brief), 0, -1):
        rest = len(brief) - count
        line = f"Not checked: {'; '.join(brief[:count])}" + (f"; {rest} more: {at.more}." if rest else ".")
        if len(line) <= at.width:
            break
    return line


def not_compiled_lines(tasks: Sequence[Task]) -> list[str]:
    """Why kernels have no registers though they were validated without a GPU: each reason once, with the classes."""
    of: dict[str, list[str]] = {}
    for task, prefix in zip(tasks, _prefixes(tasks), strict=True):
        validated = shown(task)
        for limit in validated.verdict.limits if validated is not None else []:
            if limit.startswith(schema.NOT_COMPILED):
                of.setdefault(limit.removeprefix(schema.NOT_COMPILED).rstrip("."), []).append(prefix.strip())
    lines = []
    for why, classes in of.items():
        which = f" ({', '.join(classes)})" if all(classes) else ""
        lines.append(f"Not compiled for a GPU{which}: {why}.")
    return lines


def _files_line(tasks: Sequence[Task], page: str) -> str:
    """Where the kernel files are, and the report page if there is one."""
    files = [os.path.relpath(task.report.file) for task in tasks if task.report is not None and task.report.file]
    parts = []
    if files and len(tasks) == 1:
        parts.append(f"The kernel is {files[0]}.")
    elif files:
        folders = ", ".join(dict.fromkeys(f"{os.path.dirname(file) or '.'}/" for file in files))
        parts.append(f"{len(files)} kernel file{'s' if len(files) != 1 else ''} in {folders}.")
    return " ".join([*parts, *([f"The report is {page}."] if page else [])])


def missing(tasks: Sequence[Task]) -> list[str]:
    """Why something was not measured, each reason once."""
    validated = [entry for task in tasks if (entry := shown(task)) is not None]
    measured = [entry.measurement for entry in validated if entry.measurement is not None]
    return list(dict.fromkeys(text for one in measured for text in (one.missing, one.compiled_missing) if text))


#: limits that many verdicts have, and how the table says them
_BRIEF = {
    "races between program instances": "races",
    "precision of tf32 products and of fast approximations": "TF32 and fast math",
    "sizes of the example inputs": "the example's sizes",
    "the strides of its output": "output strides",
    "the strides of its output for inputs in another memory layout": "output strides",
    "time": "",  # what was not measured has a line of its own
    schema.NOT_COMPILED.removesuffix(": "): "",  # so has this
}


def _brief(limit: str) -> str:
    """A limit without its reasons, which the report and the JSON document have; "" for what is said elsewhere."""
    text = re.sub(r" \([^()]*\)", "", limit)
    return _BRIEF.get(found, found) if (found := text.partition(": ")[0]) in _BRIEF else text


def _device_text(device: schema.Device | None) -> str:
    if device is None:
        return ""
    versions = [f"{name} {version}" for name in ("torch", "triton") if (version := getattr(device, name))]
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
