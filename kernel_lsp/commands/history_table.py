"""Histories as tables for people: one a class, the latest verdict last."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernel_lsp import schema
from kernel_lsp.commands.print_reports import save_picture
from kernel_lsp.commands.wrapping import PIPED, table_width
from kernel_lsp.errors.surface import adapted
from kernel_lsp.speedup import factor
from kernel_lsp.store.changes import said
from kernel_lsp.store.history import Entry, History

_LONGEST = 90  # characters of a reason
#: the columns before "what changed", and how wide the terminal has to be for each
_COLUMNS = {
    "when (UTC)": 0,
    "result": 0,
    "speedup over\neager / compile": 0,
    "µs": 120,
    "error (eager's)": 120,
    "checks": 90,
    "by": 100,
}
_WORDS = ("when (UTC)", "result", "by")


def print_histories(histories: Sequence[History], picture: Path | None = None) -> None:
    """Print a table for each class, and what they do not say; save it as SVG if asked to."""
    _print(Console(width=table_width(sys.stdout)), histories)
    if picture is not None:  # as wide as it is without a terminal
        recorder = Console(file=io.StringIO(), record=True, width=PIPED)
        _print(recorder, histories)
        save_picture(recorder, picture, "kernel-lsp history")


def _print(console: Console, histories: Sequence[History]) -> None:
    for history in histories:
        console.print(table_of(history, console.width))
    machines = {entry.machine for history in histories for entry in history.entries if not entry.here}
    if machines:
        console.print(f"* imported, reached on another machine: {', '.join(sorted(machines))}.", style="dim")


def table_of(history: History, width: int = PIPED) -> Table:
    """One row a verdict. What does not fit into ``width`` columns of text is left out: what changed is said in any case."""
    title = f"{os.path.relpath(history.file)}::{history.class_name}"
    more = f"the last {len(history.entries)}" if history.earlier else ""
    table = Table(
        title=escape(title), caption=more, title_justify="left", caption_justify="left",
        title_style="bold", header_style="bold", box=SIMPLE_HEAD, pad_edge=False,
    )  # fmt: skip
    shown = [name for name, least in _COLUMNS.items() if width >= least]
    for name in shown:
        table.add_column(name, justify="left" if name in _WORDS else "right", no_wrap=True)
    table.add_column("what changed", overflow="fold")
    for i, entry in enumerate(history.entries):
        first = i == 0 and not history.earlier
        cells = dict(zip(_COLUMNS, row(entry), strict=True))
        table.add_row(*(cells[name] for name in shown), escape(_changed(entry, first)))
    return table


def row(entry: Entry) -> list[str]:
    """The cells of a verdict, but for what changed."""
    good = entry.status in schema.CORRECT
    when = entry.reached_at[:16].replace("T", " ") + ("" if entry.here else " *")
    return [
        escape(when),
        f"[{'green' if good else 'red'}]{escape(entry.status)}[/]",
        speedups(entry),
        f"{entry.kernel:.1f}" if entry.kernel is not None else "–",
        errors(entry),
        f"{entry.passed} of {entry.passed + entry.failed}",
        escape(entry.command or "–"),
    ]


def speedups(entry: Entry) -> str:
    """Times faster than eager and than torch.compile, as ``3.10× / 1.40×``; a dash where torch.compile was not timed."""
    if entry.over_eager is None:
        return "not timed"
    return f"{factor(entry.over_eager)} / {factor(entry.over_compiled) if entry.over_compiled else '–'}"


def errors(entry: Entry) -> str:
    """The largest relative error, with eager's own in parentheses where that is known."""
    if entry.error is None:
        return "–"
    return f"{entry.error:.1e}" + (f" ({entry.eager_error:.1e})" if entry.eager_error is not None else "")


def _changed(entry: Entry, first: bool) -> str:
    """What is another than before; of the first what there was, of a kernel that is not usable also why."""
    words = f"{entry.device}, torch {entry.torch}, triton {entry.triton}" if first else said(entry.changed)
    reason = textwrap.shorten(adapted(entry.reason), _LONGEST, placeholder="…")
    return "; ".join(part for part in (words, reason) if part)
