"""The validation report as a Markdown file that the editor opens."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from lsprotocol import types

from kernel_lsp import errors

from .documents import Document
from .standing import Standing, standing
from .state import State
from .table import report_markdown


def show_report(state: State, document: Document, class_name: str) -> str | None:
    """Write the report and have the client show it; the id of the job that it is about, None for an earlier session's.

    Raises FileNotWritten (as the command's error).
    """
    record = state.record(document.path, class_name)
    s = Standing()
    for c in state.documents.classes(document):
        if c.name == class_name:
            s = standing(state, document, c)
    job = record.job if record is not None else None
    text = report_markdown(class_name, s, job.report if job is not None else None)
    path = _folder(state) / f"{class_name}.md"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise errors.FileNotWritten(path=str(path), detail=error.strerror or error) from None
    if state.client.show_document:
        params = types.ShowDocumentParams(uri=path.as_uri(), external=False, take_focus=True)
        state.server.ask(types.WINDOW_SHOW_DOCUMENT, params)
    else:  # asked for, and no other way to show it
        state.server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"Validation report: {path}"))
    return job.id if job is not None else None


def _folder(state: State) -> Path:
    if state.report_folder is None:
        state.report_folder = Path(tempfile.mkdtemp(prefix="kernel-lsp-"))
    return state.report_folder


def remove_reports(state: State) -> None:
    if state.report_folder is not None:
        shutil.rmtree(state.report_folder, ignore_errors=True)
