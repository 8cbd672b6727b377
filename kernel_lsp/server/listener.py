"""What the jobs tell, put where the user sees it."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from lsprotocol import types

from kernel_lsp import kernel_file
from kernel_lsp.errors import KernelFileEdited, UserError

from . import models, report
from .saving import validate_changed
from .standing import Standing
from .state import Record, State
from .words import speed

if TYPE_CHECKING:
    from kernel_lsp.jobs import Job

OVERWRITE, KEEP = "Overwrite", "Keep my edits"


class Listener:
    """Implements ``jobs.Listener``; called on the event loop."""

    def __init__(self, state: State) -> None:
        self._state = state

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        record = self._record(job)
        if record is not None:
            record.stage, record.message, record.percentage = stage, message, percentage
        self._state.server.job_progress.report(job.id, message, percentage)
        self._state.server.status_reports.soon()
        self._state.server.refresher.soon(0.1)

    def verdict(self, job: Job) -> None:
        self._state.server.refresher.soon(0.0)

    def finished(self, job: Job) -> None:
        state = self._state
        state.documents.touch()
        state.server.job_progress.end(job.id, _last_words(job))
        record = self._record(job)
        if record is not None:
            record.ended_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        state.validations.job_over()
        models.note(state, job)
        state.server.status_reports.finished(job)
        if job.proposal is not None:
            propose(state, job, job.proposal)
        if state.paused and state.jobs is not None and not state.jobs.active():
            state.jobs.rest()
        if job.state == "failed" and job.error is not None:
            self._failed(job, job.error, record)
        else:
            state.server.log_message(f"{job.id} ({job.target.class_name}): {_last_words(job)}", "info")
        self._tell_faults(job, asked=record is not None and record.asked)
        report.rewrite(state, job)
        if record is not None and record.asked and not state.closing:
            validate_changed(state)  # saves there were meanwhile did not push in
        state.follow_up.job_over(job)
        state.server.refresher.soon(0.0)

    def _record(self, job: Job) -> Record | None:
        """The record of a job; None for one that a later job of the same class replaced."""
        record = self._state.record(job.path, job.target.class_name)
        return record if record is not None and (record.job is None or record.job.id == job.id) else None

    def _tell_faults(self, job: Job, *, asked: bool) -> None:
        """What the synthesizer failed to lower: into the log, and shown if the user asked for the job just now."""
        judged = job.report.candidates if job.report is not None else []
        for text in dict.fromkeys(fault["message"] for entry in judged for fault in entry.candidate.faults):
            self._state.server.log_message(text, "warning")
            if asked and not self._state.closing:
                params = types.ShowMessageParams(types.MessageType.Warning, text)
                self._state.server.window_show_message(params)

    def _failed(self, job: Job, error: UserError, record: Record | None) -> None:
        """Into the log always; into the user's face only if they asked for it just now."""
        state = self._state
        state.server.log_message(f"{job.id} ({job.target.class_name}) failed: {error}", "error")
        if record is None or not record.asked or state.closing:
            return
        if isinstance(error, KernelFileEdited) and job.kind != "validate" and state.client.choices:
            self._offer_overwriting(job, error)
            return
        state.server.window_show_message(types.ShowMessageParams(types.MessageType.Error, str(error)))

    def _offer_overwriting(self, job: Job, error: UserError) -> None:
        state = self._state
        actions = [types.MessageActionItem(OVERWRITE), types.MessageActionItem(KEEP)]
        params = types.ShowMessageRequestParams(types.MessageType.Warning, str(error), actions)
        future = state.server.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params, seconds=None)

        def answered(answer: object) -> None:
            from .commands import submit

            if future.cancelled() or future.exception() is not None or state.closing:
                return
            chosen = future.result()
            document = state.documents.get(job.target.uri)
            if document is not None and getattr(chosen, "title", None) == OVERWRITE:
                submit(state, job.kind, document, job.target.class_name, asked=True, overwrite=True, body=job.body)

        future.add_done_callback(answered)


def propose(state: State, job: Job, text: str) -> None:
    """``kernelLsp/proposal``: the client shows what would replace the kernel file, and the user decides."""
    assert job.report is not None and job.report.chosen is not None
    folder = state.settings_for(job.path).kernel_folder
    kernel = job.kernel or kernel_file.find_kernel(job.path, job.target.class_name, folder)
    chosen = job.report.candidates[job.report.chosen]
    proposal = {
        "jobId": job.id,
        "uri": job.target.uri,
        "className": job.target.class_name,
        "file": kernel.as_uri(),
        "text": text,
        "why": speed(Standing(verdict=chosen.verdict, measurement=chosen.measurement)),
    }
    state.server.protocol.notify_raw("kernelLsp/proposal", proposal)


def _last_words(job: Job) -> str:
    if job.state == "failed":
        return str(job.error)
    if job.state == "cancelled":
        return "Cancelled"
    report = job.report
    if report is None or report.chosen is None:
        return report.why if report is not None and report.why else "No correct kernel"
    return report.why or report.candidates[report.chosen].verdict.status
