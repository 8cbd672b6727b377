"""Says of a job that stands still, beside an editor, that other programs have the processor: its worker leaves it to them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from kernel_lsp.jobs.job import Job, Listener
from kernel_lsp.jobs.machine_load import waiting_words

#: how long a job says nothing before it is told what it waits for, and between two looks at the load
SECONDS = 10.0


class _Progress:
    """A listener that hands on what it is told, and remembers the last progress of its one job."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._last: tuple[Job, str, str, int] | None = None
        self._told_at = time.monotonic()
        self._words = ""  # that stand behind the last progress

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        self._last, self._told_at, self._words = (job, stage, message, percentage), time.monotonic(), ""
        self._listener.progress(job, stage, message, percentage)

    def verdict(self, job: Job) -> None:
        self._listener.verdict(job)

    def finished(self, job: Job) -> None:
        self._listener.finished(job)

    def wait_for(self, words: str) -> None:
        """Tell the last progress again with ``words``, for which the job may wait; without any once it does not."""
        if self._last is None or words == self._words or (words and time.monotonic() - self._told_at < SECONDS):
            return
        job, stage, message, percentage = self._last
        self._words = words
        self._listener.progress(job, stage, f"{message} ({words})" if words else message, percentage)


@contextlib.asynccontextmanager
async def listening(listener: Listener, words: Callable[[], str] = waiting_words) -> AsyncIterator[Listener]:
    """The listener for a job whose worker gives way: within the context it is told, too, when the job waits for other programs."""
    progress = _Progress(listener)

    async def look() -> None:
        while True:
            await asyncio.sleep(SECONDS)
            progress.wait_for(words())

    looking = asyncio.get_running_loop().create_task(look())
    try:
        yield progress
    finally:
        looking.cancel()
