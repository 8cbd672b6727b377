"""What ``kernel-lsp watch`` shows: on a terminal a live table with a line for each change above it, else the lines alone."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kernel_lsp import schema
from kernel_lsp.commands.print_reports import save_picture
from kernel_lsp.commands.report_table import speedup_text
from kernel_lsp.errors import UserError
from kernel_lsp.errors.surface import adapted

if TYPE_CHECKING:
    from kernel_lsp.commands.watched import Kernel
    from kernel_lsp.jobs import Job

_FRAME_SECONDS = 0.1  # between two pictures of the table, at least
_AROUND = 6  # lines of the terminal that are not rows
_OTHERS = 45  # columns of a table beside the names: verdict, speedup, when, and the gaps between all
_LINES = 8  # of a picture, above the table
_WIDTH = 132
_NOT_VALIDATED = "not validated"
_LONGEST_REASON = 200


@dataclass(eq=False)
class Row:
    """One kernel of the table.

    Attributes:
        why: what made it another version.
        before: the status that it had before the last one.
        job: the validation under way; ``early`` is its verdict before all is checked and timed.
    """

    kernel: Kernel
    name: str
    why: str = ""
    status: str = ""
    before: str = ""
    speedup: str = "–"
    at: datetime | None = None
    reason: str = ""
    job: Job | None = None
    progress: str = ""
    early: str = ""

    @property
    def good(self) -> bool:
        """Whether the last verdict is a correct kernel."""
        return self.status in schema.CORRECT

    def take(
        self,
        verdict: schema.Verdict,
        measurement: schema.Measurement | None,
        at: datetime | None,
        regression: str = "",
    ) -> None:
        """Show a verdict; ``at``: when it was reached, ``regression``: how it is slower than before, "" where it is not."""
        self._now("regressed" if regression else verdict.status, at)
        self.speedup = speedup_text(measurement)
        self.reason = regression or ("" if verdict.status == "ok" else adapted(verdict.reason))

    def failed(self, error: UserError | None) -> None:
        """Show that there is no verdict, and why."""
        self._now(_NOT_VALIDATED, datetime.now().astimezone())
        self.speedup, self.reason = "–", str(error or "")

    def _now(self, status: str, at: datetime | None) -> None:
        self.before, self.status, self.at = self.status, status, at


class Display:
    """Lines on standard output; see ``_Terminal`` for more."""

    def __init__(self, gone: Callable[[], None]) -> None:
        self._gone = gone  # called where the output has no reader any more
        self.closing = False
        self.kernels: list[Row] = []
        self.lines: deque[Text] = deque(maxlen=_LINES)  # the last ones

    def started(self, count: int, polls: bool) -> None:
        """Say how many kernels are watched; ``polls``: without events of the system."""
        kernels = "1 kernel" if count == 1 else f"{count} kernels"
        how = " by comparing files" if polls else ""
        self.say(f"watching {kernels}{how}; Ctrl-C ends it")

    def say(self, text: str | Text) -> None:
        """One line, with the time."""
        if not self.closing:
            line = Text.assemble((datetime.now().strftime("%H:%M:%S"), "dim"), "  ", text)
            self.lines.append(line)
            self._print(line)

    def warn(self, error: UserError) -> None:
        """Say what does not end the command."""
        self.say(f"warning: {error}")

    def validating(self, row: Row) -> None:
        """The line of a kernel that has no verdict as it is: why, before the verdict comes."""
        why = row.why or "the class changed since its kernel was validated"
        self.say(Text.assemble((row.kernel.class_name, "bold"), f" ({row.name}): {why}; validating …"))

    def changed(self, row: Row, note: str = "") -> None:
        """The line of a verdict: what it was, is, and why."""
        parts: list[str | tuple[str, str]] = [(row.kernel.class_name or "?", "bold"), f" ({row.name}): "]
        parts += [f"{row.before} → "] if row.before else []
        parts.append((row.status, "green" if row.good else "red"))
        parts += [f", {row.speedup} over eager / compile"] if "×" in row.speedup else []
        parts += [f"  [{', '.join(filter(None, (row.why, note)))}]"] if row.why or note else []
        reason = " ".join(row.reason.split())
        cut = reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 1] + "…"
        parts += [f"  {cut}"] if cut else []
        self.say(Text.assemble(*parts))
        self.soon()

    def rows(self, rows: Sequence[Row]) -> None:
        """These are the kernels now."""
        self.kernels = list(rows)
        self.soon()

    def soon(self) -> None:
        """A row is not as it was."""

    def _print(self, line: Text) -> None:
        try:
            print(line.plain, flush=True)
        except BrokenPipeError:
            self.closing = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._gone()


class _Terminal(Display):
    """The table stays at the bottom; it is drawn when something changed, and not otherwise."""

    def __init__(self, gone: Callable[[], None], console: Console) -> None:
        super().__init__(gone)
        self._console = console
        self._live = Live(Text("Looking for kernels …"), console=console, auto_refresh=False)
        self._timer: asyncio.TimerHandle | None = None

    def soon(self) -> None:
        if self._timer is None and not self.closing:
            self._timer = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self._draw)

    def started(self, count: int, polls: bool) -> None:
        super().started(count, polls)
        self.soon()

    def _draw(self) -> None:
        self._timer = None
        if not self.closing:
            most = self._console.height - _AROUND
            self._live.update(table_of(self.kernels, most, self._console.width), refresh=True)

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True, highlight=False)

    @contextlib.contextmanager
    def drawn(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        with self._live:
            with contextlib.suppress(NotImplementedError, AttributeError, ValueError):  # Windows
                loop.add_signal_handler(signal.SIGWINCH, self.soon)
            yield
            self._live.update(table_of(self.kernels, len(self.kernels), self._console.width), refresh=True)


@contextlib.contextmanager
def display(gone: Callable[[], None], picture: Path | None = None) -> Iterator[Display]:
    """The display for this standard output, until the block is left. ``picture``: save its last state there as SVG."""
    console = Console()
    shown = _Terminal(gone, console) if console.is_terminal else Display(gone)
    with shown.drawn() if isinstance(shown, _Terminal) else contextlib.nullcontext():
        yield shown
    if picture is not None:
        recorder = Console(file=io.StringIO(), record=True, width=_WIDTH)
        recorder.print(*shown.lines, table_of(shown.kernels, len(shown.kernels)), sep="\n", highlight=False)
        save_picture(recorder, picture)


def table_of(rows: Sequence[Row], most: int, width: int = _WIDTH) -> Table:
    """One line a kernel, in the order of the files; of too many, those that run, are bad, or changed last.

    Where the names would be cut at ``width``, the kernel files are left out, unless two classes have one name.
    """
    classes = [row.kernel.class_name or "?" for row in rows]
    needed = max(map(cell_len, classes), default=0) + max((cell_len(row.name) for row in rows), default=0) + _OTHERS
    return _table_of(rows, most, files=needed <= width or len(set(classes)) < len(classes))


def _table_of(rows: Sequence[Row], most: int, *, files: bool) -> Table:
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("class", overflow="ellipsis")  # a narrow terminal cuts the names, which do not wrap
    if files:
        table.add_column("kernel file", overflow="ellipsis")
    table.add_column("verdict", no_wrap=True)
    table.add_column("speedup over\neager / compile", justify="right", no_wrap=True)
    table.add_column("when", justify="right", no_wrap=True)
    chosen = list(rows)
    if len(rows) > most:
        chosen = sorted(rows, key=_urgency)[: max(most - 1, 1)]
    picked = {id(row) for row in chosen}
    for row in (row for row in rows if id(row) in picked):
        if row.progress:
            verdict = Text(" · ".join(filter(None, (row.early, row.progress))), "yellow")
        else:
            verdict = Text(row.status, "green" if row.good else "red")
        speedup = "–" if row.progress else row.speedup
        names = [Text(row.kernel.class_name or "?"), *([Text(row.name)] if files else [])]
        table.add_row(*names, verdict, speedup, Text(_when(row.at), "dim"))
    if len(chosen) < len(rows):
        rest = [row for row in rows if id(row) not in picked]
        bad = sum(not row.good for row in rest)
        words = f"and {len(rest)} more" + (f", {bad} of them not ok" if bad else ", all ok")
        table.add_row(*(["…", Text(words, "dim")] if files else [Text(f"… {words}", "dim")]), "", "", "")
    return table


def _urgency(row: Row) -> tuple[bool, bool, float]:
    running = bool(row.progress) and row.progress != "queued"
    return not running, row.good or not row.status, -(row.at.timestamp() if row.at else 0.0)


def _when(at: datetime | None) -> str:
    if at is None:
        return "–"
    return at.strftime("%H:%M:%S" if at.date() == datetime.now().date() else "%Y-%m-%d %H:%M")
