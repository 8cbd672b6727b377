"""Reports as one table for people: its columns and their cells. What was not measured says so."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from kernel_lsp import candidate_notes, packed_weights, schema, speedup
from kernel_lsp.commands.run_jobs import WANTED, Task
from kernel_lsp.commands.wrapping import PIPED

GOOD, BAD, DATED = "green", "red", "yellow"
_DIM = "dim"
NOT_COMPILED = "not compiled"


def table_of(tasks: Sequence[Task], width: int = PIPED) -> RenderableType:
    """One row a task, as wide as ``width`` columns of text at most: names stay whole, columns are left out.

    Where the names leave no room for any column, each has a line of its own above its row.
    """
    return drawn(tasks, *columns_for(tasks, width))


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
            if _width_of(drawn(tasks, columns, one_line, whole_names=True)) <= width:
                return columns, one_line
    return choices[-1], False


def _width_of(drawn: RenderableType) -> int:
    console = Console(width=1000, file=io.StringIO())
    return console.measure(drawn).maximum


def drawn(
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
        return _no_kernel(task)
    verdict = validated.verdict
    status: str = "regressed" if report and report.regression else verdict.status
    precision = speedup.precision_words(verdict.held_to) if verdict.status in schema.CORRECT else ""
    status += f" · {precision}" if precision else ""
    status += f" · {packed_weights.LABEL}" if verdict.keeps_packed_weights and verdict.status in schema.CORRECT else ""
    if is_outdated(task):
        return f"[{DATED}]out of date[/]"
    return f"[{GOOD if is_good(task) else BAD}]{status}[/]"


def _no_kernel(task: Task) -> str:
    if not task.began:
        return f"[{_DIM}]not run[/]"
    if task.skipped:
        return f"[{_DIM}]skipped[/]"
    return f"[{BAD}]{'cancelled' if _cancelled(task) else task.nothing}[/]"


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


def names(tasks: Sequence[Task]) -> list[str]:
    """The class's name where it tells the tasks apart, else the file's with it."""
    short = [
        task.name.partition("::")[2] or (task.report.target.class_name if task.report else "") or task.name
        for task in tasks
    ]
    return [name if short.count(name) == 1 else task.name for name, task in zip(short, tasks, strict=True)]


def _cancelled(task: Task) -> bool:
    return task.job is not None and task.job.state == "cancelled"
