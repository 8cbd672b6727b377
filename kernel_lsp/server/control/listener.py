"""Shows the user what jobs report: progress, lenses, diagnostics, messages."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from kernel_lsp import kernel_file
from kernel_lsp.errors import KernelFileEdited, UserError, from_json

from ..features.report import rewrite_report
from ..model.class_state import ClassState
from ..model.records import Record
from ..session import model_hint
from ..session.session import Session
from ..text.one_line import outcome_words, speed

if TYPE_CHECKING:
    from kernel_lsp.jobs import Job

OVERWRITE, KEEP = "Overwrite", "Keep my edits"


class Listener:
    """Implements ``jobs.Listener``; called on the event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        """Show the stage in the progress bar, the status and the lens."""
        record = self._record(job)
        if record is not None:
            record.stage, record.message, record.percentage = stage, message, percentage
        self._session.progress.report(job.id, message, percentage)
        self._session.status_reports.soon()
        self._session.refresher.soon(0.1)

    def verdict(self, job: Job) -> None:
        """Show the verdict before the job is over."""
        self._session.show_changes()

    def finished(self, job: Job) -> None:
        """Show what came of the job, write its report again, and say what went wrong."""
        session = self._session
        session.documents.touch()
        session.progress.end(job.id, outcome_words(job))
        record = self._record(job)
        if record is not None:
            record.ended_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        session.validations.job_over()
        model_hint.note(session, job)
        session.status_reports.finished(job)
        if job.proposal is not None:
            propose(session, job, job.proposal)
        if session.paused and session.jobs is not None and not session.active_jobs():
            session.jobs.rest()
        if job.state == "failed" and job.error is not None:
            self._failed(job, job.error, record)
        else:
            why = f" ({job.report.why})" if job.kind == "generate" and job.report is not None and job.report.why else ""
            words = f"{job.id} ({job.target.class_name}): {outcome_words(job)}{why}"
            session.connection.log_message(words, "info")
        self._tell_faults(job, asked=record is not None and record.asked)
        rewrite_report(session, job)
        if record is not None and record.asked and not session.closing:
            session.validate_changed()  # saves there were meanwhile did not push in
        session.follow_up.job_over(job)
        session.estimates.rest()
        session.show_changes()

    def _record(self, job: Job) -> Record | None:
        """The record of a job; None for one that a later job of the same class replaced."""
        record = self._session.record(job.path, job.target.class_name)
        return record if record is not None and (record.job is None or record.job.id == job.id) else None

    def _tell_faults(self, job: Job, *, asked: bool) -> None:
        """What the synthesizer failed at: into the log, and shown if the user asked for the job just now."""
        validated = job.report.candidates if job.report is not None else []
        faults = {fault["message"]: fault for entry in validated for fault in entry.candidate.faults}
        for text, fault in faults.items():
            self._session.connection.log_message(text, "warning")
            if asked and not self._session.closing:
                told = from_json(fault).detail_last()
                self._session.connection.show_failure(told, "warning", code=fault["code"])

    def _failed(self, job: Job, error: UserError, record: Record | None) -> None:
        """Into the log always; into the user's face only if they asked for it just now."""
        session = self._session
        session.connection.log_message(f"{job.id} ({job.target.class_name}) failed: {error}", "error")
        if record is None or not record.asked or session.closing:
            return
        if isinstance(error, KernelFileEdited) and job.kind != "validate" and session.client.choices:
            self._offer_overwriting(job, error)
            return
        target = job.target
        session.connection.show_failure(
            error.detail_last(), code=type(error).__name__, uri=target.uri, class_name=target.class_name
        )

    def _offer_overwriting(self, job: Job, error: UserError) -> None:
        session = self._session
        future = session.connection.offer(str(error), "warning", [OVERWRITE, KEEP])

        def answered(answer: object) -> None:
            if future.cancelled() or future.exception() is not None or session.closing:
                return
            chosen = future.result()
            document = session.documents.get(job.target.uri)
            if document is not None and getattr(chosen, "title", None) == OVERWRITE:
                session.submit(job.kind, document, job.target.class_name, asked=True, overwrite=True, body=job.body)

        future.add_done_callback(answered)


def propose(session: Session, job: Job, text: str) -> None:
    """``kernelLsp/proposal``: the client shows what would replace the kernel file, and the user decides."""
    assert job.report is not None and job.report.chosen is not None
    folder = session.settings_for(job.path).kernel_folder
    kernel = job.kernel or kernel_file.find_kernel(job.path, job.target.class_name, folder)
    chosen = job.report.candidates[job.report.chosen]
    proposal = {
        "jobId": job.id,
        "uri": job.target.uri,
        "className": job.target.class_name,
        "file": kernel.as_uri(),
        "text": text,
        "why": speed(ClassState(verdict=chosen.verdict, measurement=chosen.measurement)),
    }
    session.connection.protocol.notify_raw("kernelLsp/proposal", proposal)
