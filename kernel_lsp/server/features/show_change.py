"""A kernel that is slower than the one before it: what changed between the two, shown as a difference."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kernel_lsp import errors, kernel_file

from ..model.class_state import ClassState
from ..model.documents import Document
from ..session.class_states import class_state, settled, state_of_kernel_file
from ..session.state import State
from ..text.difference import difference
from .report import page_path

if TYPE_CHECKING:
    from kernel_lsp.schema import SpeedComparison


async def comparison(state: State, document: Document, class_name: str) -> SpeedComparison:
    """The comparison that found a class's kernel to have regressed.

    Raises:
        FasterKernelMissing: it has not, as far as is known.
    """
    return _compared(await _class_state(state, document, class_name), class_name)


async def show_change(state: State, document: Document, class_name: str) -> None:
    """Have the client show a file with the difference between the faster kernel, from the store, and the present one.

    Raises:
        FasterKernelMissing: there is none, or it is no longer in the store.
        StoreUnusable: the store cannot be read.
        ReportNotWritten: the file cannot be written.
    """
    s = await _class_state(state, document, class_name)
    found = _compared(s, class_name)
    assert s.kernel is not None and s.kernel_path is not None
    source = kernel_file.find_source(s.kernel_path, s.kernel)
    settings = state.settings_for(source)
    path = page_path(state, source, class_name).with_suffix(".diff")
    kernel, name, words = s.kernel, s.kernel_path.name, s.regression

    def work() -> None:
        from kernel_lsp.store import database, kernels

        before = kernels.find(found.body, database.path_for(settings.store, settings.root))
        if before is None:
            raise errors.FasterKernelMissing(class_name=class_name)
        try:
            path.write_text(difference(before.source, kernel.body, found, name, words), encoding="utf-8")
        except OSError as error:
            raise errors.ReportNotWritten(path=str(path), detail=error.strerror or error) from None

    await asyncio.to_thread(work)
    state.connection.show_file(path.as_uri(), f"What changed: {path}", external=False)  # the editor itself colours it


async def _class_state(state: State, document: Document, class_name: str) -> ClassState:
    await settled(state, document.uri)
    if document.is_kernel_file:
        return state_of_kernel_file(state, document, kernel_file.parse(document.text, document.path))
    found = next((c for c in state.documents.classes(document) if c.name == class_name), None)
    return class_state(state, document, found) if found is not None else ClassState()


def _compared(s: ClassState, class_name: str) -> SpeedComparison:
    found = s.measurement.comparison if s.measurement is not None and s.regression else None
    if found is None or not found.body:
        raise errors.FasterKernelMissing(class_name=class_name)
    return found
