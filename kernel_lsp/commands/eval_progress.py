"""How an evaluation goes on: a bar with the time left, and a line for each problem as it ends, on standard error."""

from __future__ import annotations

import time

from kernel_lsp import speedup
from kernel_lsp.commands.wrapping import width_of
from kernel_lsp.evaluation.records import OK, Record
from kernel_lsp.suites.problem import Problem

_LONGEST_REASON = 160


class Bar:
    """The bar is shown on a terminal only; the lines always are."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.console = Console(stderr=True)
        self.total, self.done = total, 0
        self._began = time.monotonic()
        self._running: dict[str, int] = {}  # problem → its percentage
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[name]}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("[dim]{task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[left]}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.row = self.bar.add_task("", total=100 * total, name="", count=f"0/{total}", left="")

    def progress(self, problem: Problem, message: str, percentage: int) -> None:
        """A problem goes on. ``message`` is for a person."""
        self._running[problem.id] = percentage
        others = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
        self._show(f"{problem.id}{others}: {message}")

    def ended(self, record: Record) -> None:
        """A problem has ended: its line stays above the bar."""
        from rich.text import Text

        self.done += 1
        self._running.pop(record.problem.id, None)
        good = record.status == OK
        line = Text.assemble(
            (f"[{self.done}/{self.total}] ", "dim"),
            record.problem.id,
            "  ",
            (record.status, "green" if good else "red"),
            *(f"  {part}" for part in parts(record)),
        )
        self.console.print(line, soft_wrap=width_of(self.console.file) is None, highlight=False)
        self._show(record.problem.id)

    def _show(self, name: str) -> None:
        fraction = (self.done + sum(self._running.values()) / 100) / max(self.total, 1)
        seconds = time.monotonic() - self._began
        left = f"{duration(seconds / fraction - seconds)} left" if self.done and fraction < 1 else ""
        count = f"{self.done}/{self.total}"
        self.bar.update(self.row, completed=100 * self.total * fraction, name=name[:60], count=count, left=left)


def parts(record: Record) -> list[str]:
    """What stands after the status: ``1.02× eager``, ``0.99× compile``, ``3.1 s``; or why there is no kernel."""
    words = []
    report = record.read_report() if record.status == OK else None
    if report is not None and report.chosen is not None:
        measurement = report.candidates[report.chosen].measurement
        shapes = measurement.shapes if measurement else []
        if shapes and (eager := speedup.over_eager(shapes[0])):
            words.append(f"{speedup.factor(eager)} eager")
        if shapes and (compiled := speedup.over_compiled(shapes[0])):
            words.append(f"{speedup.factor(compiled)} compile")
    words.append(f"{record.seconds:.1f} s")
    if record.reason:
        reason = " ".join(record.reason.split())
        words.append(reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 1] + "…")
    return words


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
