"""The state with what changes it over time: jobs in the queue, validation in the background, updates of what is shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_lsp import errors, schema

from ..model.documents import Document
from ..model.records import Record
from ..protocol.connection import Connection
from ..text.titles import job_title
from .changed import changed
from .estimates import Estimates
from .file_changes import FileChanges
from .follow_up import FollowUp
from .refresh import Refresher
from .state import State
from .status import StatusReports

if TYPE_CHECKING:
    from kernel_lsp.jobs import Listener

log = logging.getLogger("kernel_lsp.server")

Shown = Callable[["Session", Document], list[dict[str, Any]]]


class Session(State):
    """Passed to every feature.

    ``lenses`` and ``diagnostics`` say what a document shows now, as JSON data; ``listener`` makes who is told by the jobs.
    """

    def __init__(
        self, connection: Connection, lenses: Shown, diagnostics: Shown, listener: Callable[[Session], Listener]
    ) -> None:
        super().__init__(connection, self.show_changes, self.recorded, partial(listener, self))
        self.refresher = Refresher(self, partial(lenses, self), partial(diagnostics, self))
        self.status_reports = StatusReports(self)
        self.file_changes = FileChanges(self, self.show_changes, self.validate_changed)
        self.follow_up = FollowUp(self, self.submit)
        self.estimates = Estimates(self, self.show_changes)
        self._told: set[str] = set()  # what the worker could not be started for

    def show_changes(self) -> None:
        """Something happened that what is shown may depend on, in any document."""
        if not self.closing:
            self.refresher.soon(0.0)

    def recorded(self) -> None:
        """Other runs were found than were known: their calls are example inputs."""
        self.show_changes()
        self.estimates.rest()

    def interrupt(self, for_good: bool = False) -> None:
        """Stop background work, since the user did something. It begins again at rest, unless ``for_good``: then the user cancelled it."""
        self.follow_up.interrupt(for_good)
        self.estimates.interrupt()

    def rest(self) -> None:
        """Let background work begin after a while, unless the user does something before."""
        self.follow_up.rest()
        self.estimates.rest()

    def submit(
        self,
        kind: Any,
        document: Document,
        class_name: str,
        *,
        asked: bool,
        overwrite: bool | None = None,
        body: str = "",
    ) -> str:
        """Put a job in the queue and return its id. ``body``: of a kernel to restore, its hash.

        Raises:
            UntrustedWorkspace: nothing may be run.
            NotAKernelFile, SourceMissing: a kernel file does not say what it is the kernel of.
        """
        if not self.trusted:
            raise errors.UntrustedWorkspace()
        path, kernel = document.path, None
        if document.is_kernel_file:
            path, kernel = document.source_of_kernel(), document.path
        jobs = self.start_jobs()
        self.interrupt()
        target = schema.Target(document.uri, class_name, document.version)
        record = Record(asked=asked, text=document.text)
        if kernel is None:
            record.fingerprint = self.documents.fingerprint(document, class_name)
        review = self.review and kind != "validate" and not overwrite
        record.job = jobs.submit(
            kind, target, path, document.text, kernel=kernel, overwrite=overwrite, review=review, body=body
        )
        self.records[(path, class_name)] = record
        self.progress.begin(record.job.id, job_title(kind, class_name))
        self.status_reports.soon()
        self.show_changes()
        return record.job.id

    def validate_changed(self) -> None:
        """As after a save: start a validation for every class that ``changed`` names."""
        for document, name in changed(self):
            self.submit("validate", document, name, asked=False)
        self.estimates.rest()

    def warm_worker(self, path: Path) -> None:
        """Start the worker for a file that holds a module class, so that the first kernel need not wait for torch."""
        document = self.document_at(path)
        if self.closing or not self.trusted or self.paused or self.settings_asked:
            return  # with the settings comes the interpreter; the worker is started then
        if document is None or not self.documents.classes(document):
            return
        try:
            self.start_jobs().warm(path, self._devices_named, partial(self._not_started, document.uri))
        except Exception:
            log.exception("starting the worker early")

    def _not_started(self, uri: str, error: errors.UserError) -> None:
        """The worker could not be started: an interpreter that is not there is told of before it is needed, once."""
        if isinstance(error, errors.InterpreterMissing) and str(error) not in self._told and not self.closing:
            self._told.add(str(error))
            self.connection.show_failure(error.detail_last(), "warning", code=type(error).__name__, uri=uri)

    def _devices_named(self) -> None:
        """The worker named its devices: what was validated on another one may not hold here."""
        self.validations.ask_again()
        self.show_changes()
        self.rest()

    def pause(self) -> None:
        """Stop background work, and let go of the GPU. Jobs that a user asks for still run."""
        self.paused = True
        self.interrupt()
        if self.jobs is not None:
            for record in self.records.values():
                if record.job is not None and not record.job.over and not record.asked:
                    self.jobs.cancel(record.job.id)
                    record.fingerprint = None  # this text was not validated: resume, or the next save, does it
            self.jobs.rest()
        self.status_reports.soon()

    def resume(self) -> None:
        """Catch up with the saves there were."""
        self.paused = False
        for document in self.documents:
            self.warm_worker(document.path)
        self.validate_changed()
        self.interrupt()
        self.status_reports.soon()

    async def close(self) -> None:
        """End every job and worker."""
        self.connection.closing = True
        await self.file_changes.close()
        for end in list(self.downloads.values()):
            end()
        for task in list(self.background):
            if not self.downloads:
                task.cancel()
        if self.jobs is not None:
            await asyncio.wait_for(self.jobs.close(), 1.8)
        if self.background:
            await asyncio.wait(self.background, timeout=1.0)
