"""``--html FILE``: the report page of the generated kernels."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernel_lsp import atomic_write, kernel_file
from kernel_lsp.analysis import module_classes
from kernel_lsp.commands.run_jobs import Task
from kernel_lsp.errors import NotAKernelFile, ReportNotWritten
from kernel_lsp.report_page import Facts, page, pages


def check_all(*paths: Path | None) -> None:
    """``check`` for each file that was asked for."""
    for path in paths:
        if path is not None:
            check(path)


def check(path: Path) -> None:
    """Find out before a minute of work whether a file can be written. No folder is made for it.

    Raises:
        ReportNotWritten: it cannot, or its folder is not there.
    """
    if not os.path.lexists(path.parent):
        raise ReportNotWritten(path=str(path), detail=f"there is no folder {path.parent}")
    with user_error(path):
        there = os.path.lexists(path)
        with path.open("ab"):
            pass
        if not there:
            path.unlink()


def write(path: Path, tasks: Sequence[Task]) -> None:
    """One report, or several with an index. A task that failed has a page that says why.

    Raises:
        ReportNotWritten: one of the files cannot be written.
    """
    facts = [facts_of(task) for task in tasks]
    write_text(path, page(facts[0]) if len(facts) == 1 else pages(facts))


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8, whole or not at all.

    Raises:
        ReportNotWritten: the system refuses.
    """
    with user_error(path):
        atomic_write.write(path, text)


@contextlib.contextmanager
def user_error(path: Path) -> Iterator[None]:
    """Within this context what the system says of a file that cannot be written becomes the user's error.

    Raises:
        ReportNotWritten: the file cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise ReportNotWritten(path=str(path), detail=error.strerror or error) from None


def facts_of(task: Task) -> Facts:
    """What a task's report says, with the texts of the class and its kernel."""
    error = str(task.error) if task.error is not None else ""
    if task.report is None:
        name = task.name.partition("::")[2] or task.name
        return Facts(name, error=error or "It was not reached: the command was interrupted.", module_path=task.name)
    facts = Facts.of_report(task.report, error)
    facts.skipped = task.skipped
    if task.job is not None:
        add_module(facts, task.job.path)
    if task.report.file:
        with contextlib.suppress(NotAKernelFile):
            facts.add_kernel(kernel_file.read(Path(task.report.file)), shown(Path(task.report.file)))
    return facts


def shown(path: Path) -> str:
    """A path as a user would say it: from here on."""
    path = Path(os.path.abspath(path))
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def add_module(facts: Facts, path: Path) -> None:
    """The class's own text, where its file can be read."""
    facts.module_path = shown(path)
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return
    found = next((c for c in module_classes(text, path) if c.name == facts.class_name), None)
    if found is not None:
        facts.add_module(text, found.whole_range.start.line, found.whole_range.end.line)
