"""Reports as text for people: the table, the reasons of what did not work, and the lines below."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from kernel_lsp import atomic_write
from kernel_lsp.commands.report_lines import (
    Surroundings,
    before_lines,
    example_lines,
    footer,
    not_run_line,
    reason_of,
    recorded_lines,
    source_lines,
)
from kernel_lsp.commands.report_table import BAD, DATED, GOOD, columns_for, drawn, is_good, is_outdated, names, shown
from kernel_lsp.commands.run_jobs import Task
from kernel_lsp.commands.wrapping import PIPED, table_width
from kernel_lsp.errors.surface import adapted


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
        console.print(drawn(tasks, columns, one_line))
    first: dict[str, str] = {}  # of an error, the class that it was said of
    for task, name in zip(tasks, names(tasks), strict=True):
        reason = reason_of(task)
        if reason:
            if task.error is not None and not task.skipped and first.setdefault(reason, name) != name:
                reason = f"as {first[reason]}."
            mark = f"[{GOOD}]·[/]" if is_good(task) else f"[{DATED}]↻[/]" if is_outdated(task) else f"[{BAD}]✗[/]"
            words = adapted(reason)
            names_it = words.startswith(f"{name} ")  # a file's message may; once is enough
            words = words.removeprefix(name) if names_it else f": {words}"
            console.print(f"{mark} [bold]{escape(name)}[/]{escape(words)}", highlight=False)
        for line in [*example_lines(task), *recorded_lines(task), *source_lines(task)]:
            console.print(f"  {escape(adapted(line))}", highlight=False, style="dim")
    for line in filter(None, [not_run_line(tasks, at), *before_lines(tasks), *footer(tasks, columns, at)]):
        console.print(escape(adapted(line)), highlight=False, style="dim")


def save_picture(console: Console, picture: Path, title: str = "kernel-lsp") -> None:
    """Save what a console has recorded as SVG."""
    svg = console.export_svg(title=title)
    # A picture that loads nothing from anywhere: the reader's own monospaced font does.
    atomic_write.write(picture, re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))
