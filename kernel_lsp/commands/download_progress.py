"""How far a download is: a bar on a terminal, lines without one, JSON lines for an editor."""

from __future__ import annotations

import json
import sys
import time
from types import TracebackType
from typing import Any, Self

from kernel_lsp.hub.choosing import gigabytes
from kernel_lsp.hub.pulling import Progress

_JSON_SECONDS, _LINE_SECONDS = 0.25, 10.0


class Bar:
    """A rich bar on standard error, or a line every ten seconds where that is no terminal."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        console = Console(stderr=True)
        self.terminal = console.is_terminal
        self.bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not self.terminal,
        )
        self.row = self.bar.add_task(name, total=None, speed="")
        self.name, self._next = name, 0.0

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def show(self, progress: Progress) -> None:
        """Bring the bar up to date, or print a line where one is due."""
        if self.terminal:
            speed = "checking" if progress.stage == "checking" else f"{gigabytes(int(progress.speed))}/s"
            self.bar.update(self.row, completed=progress.done, total=progress.total, speed=speed)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + _LINE_SECONDS
            print(f"{self.name}: {sentence(progress)}", file=sys.stderr, flush=True)


class JsonLines:
    """``{"fraction", "message"}`` on standard output, at most four a second."""

    def __init__(self) -> None:
        self._next = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def show(self, progress: Progress) -> None:
        """Print a line, unless the one before is too recent."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _JSON_SECONDS
            self.line({"fraction": progress.done / max(progress.total, 1), "message": sentence(progress)})

    def line(self, document: dict[str, Any]) -> None:
        """Print ``document`` as one line of JSON."""
        print(json.dumps(document, ensure_ascii=False), flush=True)


def sentence(progress: Progress) -> str:
    """One line, such as ``2.3 GB of 4.9 GB, 85 MB/s, 31 s left``."""
    if progress.stage == "checking":
        return f"checking {progress.file}"
    words = [f"{gigabytes(progress.done)} of {gigabytes(progress.total)}"]
    if progress.speed > 0:
        words.append(f"{gigabytes(int(progress.speed))}/s")
        words.append(f"{_duration((progress.total - progress.done) / progress.speed)} left")
    return ", ".join(words)


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
