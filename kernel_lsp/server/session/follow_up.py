"""What is validated after a time without edits, saves and commands: checks that were skipped, and verdicts from before.

A kernel whose checks were skipped is validated again with all checks and without timing; the editor shows nothing of
that but the verdict, which replaces the one before. With ``revalidate = "idle"`` a kernel that was validated on another
device or with other versions is validated again as on a save, and timed. Whatever the user does ends it at once; it
begins again when they rest.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp import schema

from ..model.documents import Document
from .changed import is_unsaved, saved_classes
from .state import State

if TYPE_CHECKING:
    from kernel_lsp.jobs import Job

_Key = tuple[Path, str]
_Outdated = tuple[Path, str, str, str]  # source, class, hash of the kernel's body, what is another now


class FollowUp:
    """``waiting`` holds the jobs whose verdicts have skipped checks, ``running`` the follow-up job that runs now."""

    def __init__(self, state: State, submit: Callable[..., str]) -> None:
        self._state = state
        self._submit = submit
        self._waiting: dict[_Key, Job] = {}
        self._running: Job | None = None
        self._of: Job | None = None  # the job that the running one follows; None where it is for a verdict from before
        self._tried: set[_Outdated] = set()  # once a session, whatever came of it
        self._timer: asyncio.TimerHandle | None = None
        self._beginning: asyncio.Task[None] | None = None

    def job_over(self, job: Job) -> None:
        """A job has ended: it may be one to follow up, or the follow-up itself."""
        key = (job.path, job.target.class_name)
        followed = self._of if job is self._running else None
        if job is self._running:
            self._running = self._of = None
        if followed is not None:
            if job.state == "done":
                self._replace(followed, job)
            elif job.state == "cancelled":
                self._waiting.setdefault(key, followed)
        elif _skipped(job):
            self._waiting[key] = job
        else:
            self._waiting.pop(key, None)
        self.rest()

    def interrupt(self, for_good: bool = False) -> None:
        """The user did something: what runs ends now, and may begin again later, unless it was seen and cancelled."""
        if self._running is not None and self._state.jobs is not None:
            key = (self._running.path, self._running.target.class_name)
            if not for_good:
                self._tried = {one for one in self._tried if one[:2] != key}
            self._state.jobs.cancel(self._running.id)
        self.rest()

    def rest(self, seconds: float | None = None) -> None:
        """Begin after so many seconds; by default after those that the settings say of what waits longest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._beginning is not None:
            self._beginning.cancel()
            self._beginning = None
        path = self._path()
        if path is None or self._running is not None or self._state.closing:
            return
        if seconds is None:
            seconds = self._state.settings_for(path).validate_when_idle
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _path(self) -> Path | None:
        """A source file for which there is, or may be, something to do."""
        if self._waiting:
            return next(iter(self._waiting))[0]
        return next((document.path for document in self._state.documents if self._wanted(document)), None)

    def _wanted(self, document: Document) -> bool:
        """Whether verdicts from before are renewed for a document's classes."""
        settings = self._state.settings_for(document.path)
        return settings.revalidate == "idle" and bool(settings.validate_when_idle) and not document.is_kernel_file

    def _look(self) -> None:
        self._timer = None
        if self._may_begin():
            self._beginning = self._state.run_in_background(self._begin())

    def _may_begin(self) -> bool:
        state = self._state  # where it may not, what happens next looks again
        return not (state.closing or state.paused or not state.trusted or state.active_jobs())

    async def _begin(self) -> None:
        outdated = None if any(map(self._holds, self._waiting.values())) else await self._find_outdated()
        path = outdated[0].path if outdated is not None else self._path()
        if path is None or (outdated is None and not self._waiting):
            self._beginning = None
            return
        from kernel_lsp.jobs import pausing

        paused = await pausing.why(self._state.settings_for(path))
        self._beginning = None
        if paused:
            self.rest(pausing.AGAIN_SECONDS)
        elif self._may_begin() and not self._follow_up() and outdated is not None:
            self._renew(*outdated)

    def _follow_up(self) -> bool:
        """Follow up the job that waits longest, of those whose verdict holds for what is there now; whether there is one.

        The others wait on: an edit may be undone. A job for what the class has become takes their place.
        """
        for key, job in list(self._waiting.items()):
            if self._holds(job):
                self._of = self._waiting.pop(key)
                target = schema.Target(job.target.uri, job.target.class_name, job.target.version)
                jobs = self._state.start_jobs()
                self._running = jobs.submit("validate", target, job.path, job.source, kernel=job.kernel, follow_up=True)
                return True
        return False

    async def _find_outdated(self) -> tuple[Document, _Outdated] | None:
        """A class of an open document, saved, whose kernel was validated on another device or with other versions."""
        async for document, c, s in saved_classes(self._state, self._wanted):
            if s.before is None or s.kernel is None or s.stale or c.duplicate:
                continue
            one = (document.path, c.name, s.kernel.actual_body, s.changed)
            if one not in self._tried:
                return document, one
        return None

    def _renew(self, document: Document, outdated: _Outdated) -> None:
        self._tried.add(outdated)
        job_id = self._submit("validate", document, outdated[1], asked=False)
        self._running = self._state.jobs.get(job_id) if self._state.jobs is not None else None

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


def _of_body(job: Job, body: str) -> schema.Validated | None:
    """The job's entry for a kernel with this body."""
    entries = job.report.candidates if job.report is not None else []
    return next((entry for entry in reversed(entries) if entry.candidate.source == body), None)
