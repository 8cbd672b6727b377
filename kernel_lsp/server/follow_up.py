"""The checks that a validation skipped, made once nobody has done anything for a while.

The same kernel is validated again, with all checks and without timing. The editor shows nothing of that but the
verdict, which replaces the one before. Whatever the user does ends it at once; it begins again when they rest.
"""

from __future__ import annotations

import asyncio
import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp import schema

from .saving import is_unsaved

if TYPE_CHECKING:
    from kernel_lsp.jobs import Job

    from .state import State

_Key = tuple[Path, str]


class FollowUp:
    """``waiting`` holds the jobs whose verdicts have skipped checks, ``running`` the job that makes up for one of them."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._waiting: dict[_Key, Job] = {}
        self._running: Job | None = None
        self._of: Job | None = None  # the job that the running one follows
        self._timer: asyncio.TimerHandle | None = None
        self._beginning: asyncio.Task[None] | None = None

    def job_over(self, job: Job) -> None:
        """A job has ended: it may be one to follow up, or the follow-up itself."""
        key = (job.path, job.target.class_name)
        if job is self._running and self._of is not None:
            before, self._running, self._of = self._of, None, None
            if job.state == "done":
                self._replace(before, job)
            elif job.state == "cancelled":
                self._waiting.setdefault(key, before)
        elif _skipped(job):
            self._waiting[key] = job
        else:
            self._waiting.pop(key, None)
        self._wait()

    def interrupt(self) -> None:
        """The user did something: what runs ends now, and may begin again later."""
        if self._running is not None and self._state.jobs is not None:
            self._state.jobs.cancel(self._running.id)
        self._wait()

    def _wait(self, seconds: float | None = None) -> None:
        """Begin after so many seconds; by default after those that the settings say of the class that waits longest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._beginning is not None:
            self._beginning.cancel()
            self._beginning = None
        if not self._waiting or self._running is not None or self._state.closing:
            return
        if seconds is None:
            path, _ = next(iter(self._waiting))
            seconds = self._state.settings_for(path).validate_when_idle
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._may_begin():
            self._beginning = asyncio.get_running_loop().create_task(self._begin())
            self._state.background.add(self._beginning)
            self._beginning.add_done_callback(self._state.background.discard)

    def _may_begin(self) -> bool:
        state = self._state  # where it may not, what happens next looks again
        busy = state.jobs is not None and bool(state.jobs.active())
        return not (state.closing or state.paused or not state.trusted or busy)

    async def _begin(self) -> None:
        """Follow up the job that waits longest, of those whose verdict holds for what is there now.

        The others wait on: an edit may be undone. A job for what the class has become takes their place.
        """
        from kernel_lsp.jobs import pausing

        state = self._state
        path, _ = next(iter(self._waiting))
        paused = await pausing.why(state.settings_for(path))
        self._beginning = None
        if paused:
            self._wait(pausing.AGAIN_SECONDS)
            return
        if not self._may_begin():
            return
        for key, job in list(self._waiting.items()):
            if self._holds(job):
                self._of = self._waiting.pop(key)
                target = schema.Target(job.target.uri, job.target.class_name, job.target.version)
                jobs = state.start_jobs()
                self._running = jobs.submit("validate", target, job.path, job.source, kernel=job.kernel, follow_up=True)
                return

    def _holds(self, job: Job) -> bool:
        """Whether the class, on disk and in the editor, and its kernel are still those that the job was about."""
        state, name = self._state, job.target.class_name
        document, settings = state.document_at(job.path), state.settings_for(job.path)
        if document is None or not settings.validate_when_idle or is_unsaved(document):
            return False
        found = state.kernels.find(job.path, name, settings.kernel_folder)
        same = state.documents.fingerprint(document, name) == job.target.fingerprint
        return same and found is not None and _of_body(job, found[1].body) is not None

    def _replace(self, before: Job, job: Job) -> None:
        """Put the new verdict in the place of the one before, in all that the editor shows of the class."""
        record = self._state.record(before.path, before.target.class_name)
        found = job.report.candidates if job.report is not None else []
        entry = _of_body(before, found[0].candidate.source) if found else None
        if record is None or record.job is not before or entry is None:
            return
        if job.target.fingerprint == before.target.fingerprint:
            entry.verdict = found[0].verdict
            record.ended_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _skipped(job: Job) -> bool:
    """Whether a job came to a correct kernel with checks that were left out."""
    report = job.report
    if job.follow_up or job.state != "done" or job.training or report is None or report.chosen is None:
        return False
    verdict = report.candidates[report.chosen].verdict
    return verdict.status in schema.CORRECT and bool(verdict.skipped)


def _of_body(job: Job, body: str) -> schema.Judged | None:
    """The job's entry for a kernel with this body."""
    entries = job.report.candidates if job.report is not None else []
    return next((entry for entry in reversed(entries) if entry.candidate.source == body), None)
