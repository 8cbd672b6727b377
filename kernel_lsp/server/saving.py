"""After a save: a class whose kernel no longer fits its fingerprint is judged again. And: the worker in good time."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from .commands import submit
from .documents import Document
from .state import State

if TYPE_CHECKING:
    from kernel_lsp.kernel_file import KernelFile

log = logging.getLogger("kernel_lsp.server")


def validate_changed(state: State) -> list[str]:
    """Start a validation for every class that ``changed`` names; the ids of the jobs."""
    return [submit(state, "validate", document, name, asked=False) for document, name in changed(state)]


def changed(state: State) -> list[tuple[Document, str]]:
    """Every class in an open document whose kernel was made for another fingerprint.

    Also for documents that were not the one saved: what they import may have been. A class whose last validation
    was of exactly this text is left alone, or one that cannot be validated would be tried at every save.
    """
    if not state.trusted or state.paused:
        return []
    found_changed = []
    for document in state.documents:
        settings = state.settings_for(document.path)
        if not settings.validate_on_save or settings.revalidate == "never":
            continue
        if document.is_kernel_file or is_unsaved(document):
            continue
        for c in state.documents.classes(document):
            found = state.kernels.find(document.path, c.name, settings.kernel_folder)
            if found is None or c.duplicate:
                continue
            now = state.documents.fingerprint(document, c.name)
            record = state.record(document.path, c.name)
            if record is not None and record.asked and state.running(document.path, c.name):
                continue  # somebody waits for it; the listener looks again when it is over
            seen = record is not None and record.fingerprint == now and record.text == document.text
            if now is not None and _judged_for(state, document, c.name, found[1]) != now and not seen:
                found_changed.append((document, c.name))
    return found_changed


def _judged_for(state: State, document: Document, class_name: str, kernel: KernelFile) -> str | None:
    """The fingerprint that the kernel's header holds, or will hold once the validation under way is over."""
    running = state.running(document.path, class_name)
    if running is not None and running.job is not None and running.job.kind == "validate":
        return running.fingerprint
    return kernel.fingerprint


def is_unsaved(document: Document) -> bool:
    """Whether the editor holds changes that the disk does not: the worker would judge something else."""
    try:
        with open(document.path, encoding="utf-8-sig", errors="replace", newline="") as file:
            return file.read() != document.text.removeprefix("\ufeff")
    except OSError:
        return True


def warm_worker(state: State, path: Path) -> None:
    """Start the worker for a file that holds a module class, so that the first kernel need not wait for torch."""
    document = state.document_at(path)
    if state.closing or not state.trusted or state.paused or state.settings_asked:
        return  # with the settings comes the interpreter; the worker is started then
    if document is None or not state.documents.classes(document):
        return
    try:
        state.start_jobs().warm(path, then=state.validations.devices_named)
    except Exception:
        log.exception("starting the worker early")
