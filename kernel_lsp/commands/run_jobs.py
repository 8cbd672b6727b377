"""Running jobs from the command line: one after the other, with a progress bar on standard error."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_lsp import schema
from kernel_lsp.commands import preflight
from kernel_lsp.commands.wrapping import say
from kernel_lsp.errors import (
    ArgumentChanged,
    AttributeAssigned,
    Cancelled,
    NoCandidates,
    NoExampleInputs,
    NotExportable,
    NothingToLower,
    NotWritable,
    UserError,
)
from kernel_lsp.errors.surface import adapted
from kernel_lsp.jobs import Job, Jobs
from kernel_lsp.settings import Settings, load

WANTED, WRONG, NOT_VALIDATED = 0, 1, 2  # exit statuses
INTERRUPTED = 130

#: what is said of a kernel file for which there is no verdict: the file itself is there, or was expected
NOT_VALIDATED_WORDS = "not validated"


@dataclass
class Task:
    """One line of the table: what is asked for, and what came of it. ``job`` is None where it could not even begin."""

    name: str  # as shown: "samples/rms_norm.py::RMSNorm"
    submit: Callable[[Jobs], Job] | None
    job: Job | None = None
    error: UserError | None = None
    source: Path | None = None  # the file that holds the class
    may_fail: bool = False
    of_folder: bool = False  # found in a folder, not named by the user
    part: bool = False  # not named by the user, and another class of its file instantiates it
    strict: bool = False  # a class without example inputs counts, also one of a folder
    nothing: str = "no kernel"  # what the table and the counter say where nothing came of it

    @property
    def report(self) -> schema.Report | None:
        """What is known by now; None where no job began."""
        return self.job.report if self.job else None

    @property
    def began(self) -> bool:
        """Whether anything came of it: not where the user interrupted the command before its turn."""
        return self.job is not None or self.error is not None

    @property
    def skipped(self) -> bool:
        """Whether it has no example inputs and needs none: the user named its folder or its file, and it is a part of a class there."""
        return (self.of_folder or self.part) and not self.strict and isinstance(self.error, NoExampleInputs)

    @property
    def folded(self) -> bool:
        """Whether it has no row of its own: a part of another class that was skipped."""
        return self.part and self.skipped

    def status(self) -> int:
        """The exit status that this task alone would give."""
        if self.skipped:
            return WANTED
        if isinstance(
            self.error,
            (NoCandidates, NotExportable, ArgumentChanged, AttributeAssigned, NothingToLower, NotWritable),
        ):
            return WRONG  # validated as far as can be: no kernel was found
        if self.error is not None or self.report is None:
            return NOT_VALIDATED
        return WANTED if self.report.chosen is not None and not self.report.regression else WRONG

    def to_json(self) -> dict[str, Any]:
        """The report with its ``error`` (null where there is none), its reasons in the words of this command."""
        report = schema.to_json(self.report or schema.Report(schema.Target("", self.name)))
        error = self.error if self.began else Cancelled()
        return with_adapted_reasons(report) | {"error": error.to_json() if error else None}


class Bar:
    """The progress bar; without a terminal, one line a job."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.console = Console(stderr=True)
        self.total, self.done = total, 0
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[name]}"),
            BarColumn(bar_width=24),
            TextColumn("[dim]{task.description}", markup=True),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.row = self.bar.add_task("", total=100 * total, name="")

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        """Show a job's stage, and its share of the whole."""
        name = f"{job.target.class_name} ({self.done + 1}/{self.total})" if self.total > 1 else job.target.class_name
        self.bar.update(self.row, completed=100 * self.done + percentage, description=_escaped(message), name=name)

    def verdict(self, job: Job) -> None:
        """Nothing is shown before a job is over."""
        pass

    def finished(self, job: Job) -> None:
        """Count the job, and print its line where there is no terminal: the reasons come at the end."""
        seconds = (job.report.seconds.get("report") if job.report else None) or 0.0
        took = f" ({seconds:.1f} s)" if seconds >= 0.05 else ""  # before any work nothing is taken
        self.count(job.target.class_name, f"{_status(job)}{took}", job.error)

    def count(self, name: str, words: str, error: UserError | None) -> None:
        """Count what is over, and print its line where there is no terminal; the reason of a single error stands alone."""
        self.done += 1
        self.bar.update(self.row, completed=100 * self.done)
        if not self.console.is_terminal and (error is None or self.total > 1):
            print(f"[{self.done}/{self.total}] {name}: {words}", file=sys.stderr, flush=True)


def _status(job: Job) -> str:
    """``ok``, ``wrong``, …, as the table has it; of a job without a verdict why."""
    report = job.report
    if isinstance(job.error, NoExampleInputs):
        return "no example inputs"
    if job.state == "cancelled":
        return "cancelled"
    if report is None or not report.candidates:
        return "no kernel" if job.kind == "generate" else NOT_VALIDATED_WORDS
    if report.regression:
        return "regressed"
    return report.candidates[report.chosen if report.chosen is not None else 0].verdict.status


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def given(options: Any, further: dict[str, Any] | None = None) -> dict[str, Any]:
    """The settings that the command line gives, by name; None stands for "not given".

    ``further``: settings that no option of the command line gives; a group's in a dictionary.
    """
    cli: dict[str, Any] = {
        "interpreter": options.interpreter,
        "device": getattr(options, "device", None),
        "seconds": getattr(options, "seconds", None),
        "samples": getattr(options, "samples", None),
        "overwrite": getattr(options, "overwrite", None) or None,
        "thorough": getattr(options, "thorough", None) or None,
        "bounds": getattr(options, "bounds", None),
        "precision": getattr(options, "precision", None),
        "keep_packed_weights": getattr(options, "keep_packed_weights", None),
    }
    if getattr(options, "generator", None):
        cli["generators"] = comma_separated(options.generator)
    return cli | (further or {})


def comma_separated(text: str) -> list[str]:
    """The parts of an option's value between commas, without spaces around them and without empty ones."""
    return [word.strip() for word in text.split(",") if word.strip()]


def settings_from(
    options: Any, further: dict[str, Any] | None = None, *, tolerant: bool = False
) -> Callable[[Path], Settings]:
    """The settings for a file, the command line's on top; what is wrong with them is said once, on standard error.

    The function raises UserError where anything is wrong with them. ``tolerant``: only for what the command line gives; a
    wrong line of pyproject.toml is left out then.
    """
    cli = given(options, further)
    said: set[str] = set()

    def settings_for(path: Path) -> Settings:
        settings, problems = load(path, cli=cli)
        for problem in problems:
            if problem.path == "command line":
                raise problem
        last = problems[-1] if problems and not tolerant else None
        for problem in problems:
            if problem is not last and str(problem) not in said:
                said.add(str(problem))
                say(problem)
        if last is not None:
            raise last  # the caller prints it
        return settings

    return settings_for


def run_tasks(
    tasks: list[Task], settings_for: Callable[[Path], Settings], bar: Bar | None = None, *, write: bool = False
) -> bool:
    """Run the tasks one after the other and fill them in; False if the user interrupted. ``write``: kernel files are.

    Raises:
        UserError: what would fail for each of them, see ``preflight``. Nothing was begun.
    """
    preflight.check_settings([task.source for task in tasks if task.source], settings_for, write=write)
    bar = bar or Bar(len(tasks))
    with bar.bar:
        return asyncio.run(_run_tasks(tasks, settings_for, bar))


async def _run_tasks(tasks: list[Task], settings_for: Callable[[Path], Settings], bar: Bar) -> bool:
    jobs = Jobs(settings_for, bar)
    this = asyncio.current_task()
    assert this is not None
    with contextlib.suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    first = next((task.source for task in tasks if task.source is not None), None)
    try:
        if first is not None:
            await preflight.check_device(jobs, first, settings_for(first))
        for task in tasks:
            if task.submit is None:
                bar.count(task.name, task.nothing, task.error)
                continue
            task.job = task.submit(jobs)
            assert task.job.task is not None
            await asyncio.wait([task.job.task])
            task.error = task.job.error
        return True
    except asyncio.CancelledError:
        return False  # Ctrl-C: asyncio.run cancels this task; what is known so far is still shown
    finally:
        await jobs.close()
        for task in tasks:
            if task.job is not None:
                task.error = task.error or task.job.error


def with_adapted_reasons(document: Any) -> Any:
    """JSON data with every ``reason``, ``why`` and warning in it adapted to the surface; the data itself stays as it is."""
    if isinstance(document, list):
        return [with_adapted_reasons(one) for one in document]
    if not isinstance(document, dict):
        return document
    return {
        key: adapted(value)
        if key in ("reason", "why") and isinstance(value, str)
        else [adapted(text) for text in value]
        if key == "warnings"
        else with_adapted_reasons(value)
        for key, value in document.items()
    }


def say_warnings(tasks: list[Task]) -> None:
    """Each warning of the tasks' reports, once."""
    for warning in dict.fromkeys(text for task in tasks if task.report for text in task.report.warnings):
        say(f"warning: {adapted(warning)}")


def print_json(document: Any) -> None:
    """One JSON document on standard output. JSON has no NaN and no infinity: they become null."""
    json.dump(schema.finite(document), sys.stdout, ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def exit_status(tasks: list[Task]) -> int:
    """1 if any kernel is wrong, else 2 if any could not be validated, else 0; tasks that may fail do not count."""
    statuses = {task.status() for task in tasks if not task.may_fail}
    return next((status for status in (WRONG, NOT_VALIDATED) if status in statuses), WANTED)


def refuse(error: UserError, as_json: bool) -> int:
    """Say that nothing was begun, and why; returns the exit status."""
    if as_json:
        print_json({"error": error.to_json()})
    say(error)
    return NOT_VALIDATED


def finish(tasks: list[Task], completed: bool, options: Any, document: Any, page: str = "") -> int:
    """Print the result, as JSON or as a table, and return the exit status. ``page``: the report page that was written."""
    if options.json:
        print_json(document)
    else:
        from kernel_lsp.commands.print_reports import print_reports

        print_reports(tasks, options.svg, page=page)
    say_warnings(tasks)
    if not completed:
        say("cancelled")
        return INTERRUPTED
    return exit_status(tasks)
