"""The states of the classes of a document at this moment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp import speedup
from kernel_lsp.analysis import ModuleClass, orphaned
from kernel_lsp.errors import KernelOrphaned, SourceMissing, WorkerDied

from ..model.class_state import ClassState
from ..model.documents import Document
from ..model.records import Record
from .state import State

if TYPE_CHECKING:
    from kernel_lsp.kernel_file import KernelFile
    from kernel_lsp.schema import Measurement, Validated
    from kernel_lsp.store.validations import Known


def class_state(state: State, document: Document, c: ModuleClass) -> ClassState:
    """The state of a class of an open document at this moment."""
    found = state.kernels.find(document.path, c.name, state.settings_for(document.path).kernel_folder)
    return _class_state(state, document, c, found)


def class_states(state: State, document: Document) -> list[tuple[ModuleClass, ClassState]]:
    """Every class of a document with its state; the folder of kernels is looked at once for all of them."""
    classes = state.documents.classes(document)
    if not classes:
        return []
    folder = state.settings_for(document.path).kernel_folder
    if state.kernels.has_any(document.path, folder):
        return [(c, class_state(state, document, c)) for c in classes]
    return [(c, _class_state(state, document, c, None)) for c in classes]


def state_of_kernel_file(state: State, document: Document, parsed: KernelFile) -> ClassState:
    """The state of the kernel in an open kernel file, with its text as it is in the editor."""
    from kernel_lsp import kernel_file

    result = ClassState(document.path, parsed)
    try:
        path = kernel_file.find_source(document.path, parsed)
    except SourceMissing as error:
        result.claim, result.error = parsed.claim, error
        return result
    now = state.documents.fingerprint_at(path, parsed.class_name)
    if now is None:
        result.error = _orphaned(state, document.path, path, parsed.class_name)
    add_kernel(state, result, path, state.record(path, parsed.class_name), now, parsed.class_name)
    return result


def _orphaned(state: State, kernel: Path, source: Path, class_name: str) -> KernelOrphaned | None:
    """The error of a kernel whose class is no longer in its source; None where that cannot be read as it is now."""
    text = state.documents.read(source)
    if text is None:
        return None
    root = state.settings_for(source).root or source.parent
    error = orphaned(text, source, class_name, os.path.relpath(kernel, root), os.path.relpath(source, root))
    return error if isinstance(error, KernelOrphaned) else None


def has_inputs(state: State, document: Document, c: ModuleClass) -> bool:
    """Whether there are example inputs for a class: in its file, in pyproject.toml, or recorded."""
    if c.inputs is not None:
        return True
    if state.settings_for(document.path).inputs_for(document.path, c.name) is not None:
        return True
    recorded = state.recordings.of(document.path, c.name)
    return recorded is not None and recorded.usable


async def settled(state: State, uri: str) -> Document | None:
    """The open document, once what this machine validated for its classes is known; None where it is not open."""
    document = state.documents.get(uri)
    if document is not None and any(s.pending for _, s in class_states(state, document)):
        await state.validations.settled()
        document.lenses = None
    return document


def _class_state(state: State, document: Document, c: ModuleClass, found: tuple[Path, KernelFile] | None) -> ClassState:
    record = state.record(document.path, c.name)
    if found is None and record is None:
        return ClassState()
    result = ClassState()
    now = state.documents.fingerprint(document, c.name)
    if record is not None and record.job is not None:
        _add_session(result, record, document, now)
    if found is not None:
        result.kernel_path, result.kernel = found
        add_kernel(state, result, document.path, record, now, c.name)
        if isinstance(result.error, WorkerDied) and result.correct and not result.stale:
            result.error = None  # that was said when it happened, and the verdict from before still holds
    return result


def _add_session(result: ClassState, record: Record, document: Document, now: str | None) -> None:
    job = record.job
    assert job is not None
    if not job.over:
        result.running = record
    elif job.state == "failed" and job.error is not None:
        # An error with a line is about the text as it was then; one without is about the machine.
        if job.error.line is None or record.text == document.text:
            result.error = job.error
    elif job.state == "done" and job.kind == "generate" and job.report is not None and job.report.chosen is None:
        result.no_kernel = job.report.why if record.fingerprint == now else ""


def add_kernel(
    state: State, result: ClassState, path: Path, record: Record | None, now: str | None, class_name: str
) -> None:
    """Put what is known of ``result.kernel`` into ``result``. ``path``: of the source; ``now``: the class's fingerprint."""
    kernel = result.kernel
    assert kernel is not None
    settings = state.settings_for(path)
    if speedup.less_exact(kernel.precision, settings.precision):
        result.wanted = settings.precision
    validated = _validated_in_session(record, kernel, now, settings.bounds)
    if validated is not None and record is not None and record.job is not None and record.job.report is not None:
        result.verdict, result.measurement = validated.verdict, validated.measurement
        result.device = record.job.report.device
        result.validated_at = record.ended_at
        _add_claimed_times(result, kernel, now)
        _add_regression(state, result, path)
        return
    known, looked_up = state.validations.find(path, now, kernel.actual_body, kernel.precision, kernel.body)
    if known is None:
        known, looked_up = _of_other_version(state, result, kernel, path, now, class_name, looked_up)
    found = known.valid if known is not None else None
    if known is not None and known.before is not None and result.stale:
        found = known.before  # it is about another version anyway
    if found is not None:
        result.verdict, result.measurement, result.device = found.verdict, found.measurement, found.device
        result.validated_at = found.validated_at
        if not result.stale:
            _add_claimed_times(result, kernel, now)
            _add_regression(state, result, path)
    elif known is not None:
        result.before, result.changed = known.before, known.changed
    elif looked_up:
        result.claim = kernel.claim
    else:
        result.pending = kernel.claim is not None


def _of_other_version(
    state: State, result: ClassState, kernel: KernelFile, path: Path, now: str | None, class_name: str, looked_up: bool
) -> tuple[Known | None, bool]:
    """Why the header is about another version, and what this machine found for that one."""
    if kernel.edited:
        result.stale = "The kernel file was edited since it was validated."
    elif now is None:
        result.stale = f"{class_name} cannot be read while there is a syntax error in it."
    elif kernel.fingerprint != now:
        result.stale = f"{class_name}, or something it uses, changed since its kernel was validated."
    else:
        return None, looked_up
    body = str(kernel.header.get("body", ""))
    return state.validations.find(path, kernel.fingerprint, body, kernel.precision)


def _add_claimed_times(result: ClassState, kernel: KernelFile, now: str | None) -> None:
    """The file's own times where this machine has none of the same version, as it would without a GPU."""
    claim = kernel.claim
    same = not kernel.edited and kernel.fingerprint == now
    if same and result.correct and not _timed(result.measurement) and claim is not None and claim.timed:
        result.claim = claim


def _add_regression(state: State, result: ClassState, path: Path) -> None:
    if result.correct:
        result.regression = speedup.regression(result.measurement, state.settings_for(path).regression_threshold)


def _validated_in_session(record: Record | None, kernel: KernelFile, now: str | None, bounds: str) -> Validated | None:
    """This session's verdict on exactly this kernel for exactly this class under the setting of now, if there is one."""
    job = record.job if record is not None else None
    if job is None or job.report is None or now is None or (job.target.fingerprint, job.bounds) != (now, bounds):
        return None
    about = kernel.body, kernel.precision
    validated = reversed(job.report.candidates)
    return next((j for j in validated if (j.candidate.source, j.candidate.precision) == about), None)


def _timed(measurement: Measurement | None) -> bool:
    return measurement is not None and any(shape.kernel for shape in measurement.shapes)
