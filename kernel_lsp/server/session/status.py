"""``kernelLsp/status``: what the server is doing, for clients that asked for it and have a place to show it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from kernel_lsp.errors import (
    InternalError,
    InterpreterMissing,
    NoSuchDevice,
    PackageBroken,
    PackageMissing,
    PackageTooOld,
    WorkerDied,
    WorkerTimedOut,
)

from .state import State

if TYPE_CHECKING:
    from kernel_lsp.jobs import Job

_PAUSE_SECONDS = 0.1  # between two notifications
_OURS = (  # not about what the user has written
    InterpreterMissing,
    PackageMissing,
    PackageTooOld,
    PackageBroken,
    NoSuchDevice,
    WorkerDied,
    WorkerTimedOut,
    InternalError,
)


class StatusReports:
    """Sends the status when it has changed. ``wanted`` is what the client said at initialization."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.wanted = False
        self.error = ""  # of the last job, where it says that something is wrong with the set-up
        self._sent: dict[str, Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def finished(self, job: Job) -> None:
        """Remember whether a job failed for reasons that the next one will meet, too."""
        if job.state != "cancelled":
            self.error = str(job.error) if isinstance(job.error, _OURS) else ""
        self.soon()

    def forget_error(self) -> None:
        """The settings have changed: whether it would fail again is not known."""
        self.error = ""
        self.soon()

    def soon(self) -> None:
        """Send the status after a short while, once for all changes meanwhile."""
        if self.wanted and self._timer is None and not self._state.closing:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._send)

    def _send(self) -> None:
        self._timer = None
        now = describe(self._state, self.error)
        if now != self._sent and not self._state.closing:
            self._sent = now
            self._state.connection.protocol.notify_raw("kernelLsp/status", now)


def describe(state: State, error: str) -> dict[str, Any]:
    """``{"state": "idle" | "busy" | "paused" | "error", "message": str, "jobs": [...]}``; the oldest job comes first."""
    jobs = [
        {
            "id": job.id,
            "kind": job.kind,
            "uri": job.target.uri,
            "className": job.target.class_name,
            "stage": record.stage,
            "message": record.message or "Queued",
            "percentage": record.percentage,
        }
        for job in state.active_jobs()
        if (record := state.record(job.path, job.target.class_name)) is not None and record.job is job
    ]
    if jobs:
        return {"state": "busy", "message": jobs[0]["message"], "jobs": jobs}
    if state.paused:
        return {"state": "paused", "message": "", "jobs": []}
    return {"state": "error" if error else "idle", "message": error, "jobs": []}
