"""Work-done progress in the client's window: one token a job, dropped when the job is over.

pygls' own ``Progress`` keeps every token for ever and asks clients that never said they can show progress.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from .connection import Connection

_LEAST_SECONDS = 0.25  # between two reports of one job: faster changes cannot be read, and each redraws the window


@dataclass
class _Token:
    title: str
    created: bool = False
    last_sent: float = 0.0
    waiting: dict[str, Any] | None = None  # the latest report, held back
    timer: asyncio.TimerHandle | None = None  # that sends it


class Progress:
    """The progress bars of a client, by the id of the job or download; its length is how many there are."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tokens: dict[str, _Token] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    def begin(self, job_id: str, title: str) -> None:
        """Ask the client for a progress bar, if it has any; it appears once the client agreed."""
        if not self._connection.client.progress or job_id in self._tokens:
            return
        self._tokens[job_id] = _Token(title)
        future = self._connection.ask(
            types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(job_id)
        )

        def created(answer: Any) -> None:
            token = self._tokens.get(job_id)
            if token is None or token.created:
                return
            if answer.cancelled() or answer.exception() is not None:
                self._tokens.pop(job_id, None)
                return
            token.created = True
            value = {"kind": "begin", "title": token.title, "cancellable": True, "percentage": 0}
            self._send(job_id, value)
            self._send_waiting(job_id)

        future.add_done_callback(created)

    def report(self, job_id: str, message: str, percentage: int) -> None:
        """Show ``message`` and ``percentage``, 0 to 100; between two reports some time has to pass, so the latest may wait."""
        token = self._tokens.get(job_id)
        if token is None:
            return
        value = {"kind": "report", "message": message, "percentage": max(0, min(percentage, 100)), "cancellable": True}
        token.waiting = value
        rest = token.last_sent + _LEAST_SECONDS - time.monotonic()
        if rest <= 0:
            self._send_waiting(job_id)
        elif token.timer is None:
            token.timer = asyncio.get_running_loop().call_later(rest, self._send_waiting, job_id)

    def _send_waiting(self, job_id: str) -> None:
        token = self._tokens.get(job_id)
        if token is None or not token.created:
            return
        if token.timer is not None:
            token.timer.cancel()
        value, token.waiting, token.timer = token.waiting, None, None
        if value is not None:
            token.last_sent = time.monotonic()
            self._send(job_id, value)

    def end(self, job_id: str, message: str) -> None:
        """Take the bar away, with a last word."""
        token = self._tokens.pop(job_id, None)
        if token is not None and token.timer is not None:
            token.timer.cancel()
        if token is not None and token.created:
            self._send(job_id, {"kind": "end", "message": message})

    def _send(self, job_id: str, value: dict[str, Any]) -> None:
        self._connection.protocol.notify_raw(types.PROGRESS, {"token": job_id, "value": value})
