"""Which classes are on the disk as in the editor, and which of them have changed since their kernels were validated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from kernel_lsp.analysis import ModuleClass

from ..model.class_state import ClassState
from ..model.documents import Document
from .class_states import class_states, settled
from .state import State

if TYPE_CHECKING:
    from kernel_lsp.kernel_file import KernelFile


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
            if now is not None and _validated_for(state, document, c.name, found[1]) != now and not seen:
                found_changed.append((document, c.name))
    return found_changed


async def saved_classes(
    state: State, wanted: Callable[[Document], bool]
) -> AsyncIterator[tuple[Document, ModuleClass, ClassState]]:
    """The classes of the open documents that are ``wanted`` and saved, each with how it stands once that is known."""
    for document in [one for one in state.documents if wanted(one)]:
        await settled(state, document.uri)
        if is_unsaved(document):
            continue
        for c, known in class_states(state, document):
            yield document, c, known


def _validated_for(state: State, document: Document, class_name: str, kernel: KernelFile) -> str | None:
    """The fingerprint that the kernel's header holds, or will hold once the validation under way is over."""
    running = state.running(document.path, class_name)
    if running is not None and running.job is not None and running.job.kind == "validate":
        return running.fingerprint
    return kernel.fingerprint


def is_unsaved(document: Document) -> bool:
    """Whether the editor holds changes that the disk does not: the worker would validate something else."""
    try:
        with open(document.path, encoding="utf-8-sig", errors="replace", newline="") as file:
            return file.read() != document.text.removeprefix("\ufeff")
    except OSError:
        return True
