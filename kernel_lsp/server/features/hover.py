"""Hover on a class name: the measured table, or what is missing for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from ..model.class_state import ClassState
from ..model.documents import Document
from ..session.class_states import class_state, settled
from ..session.session import Session
from ..text.hover_table import hover_markdown
from ..text.one_line import estimate_words, recorded_words, running_words
from ..text.plain_text import plain_text

if TYPE_CHECKING:
    from kernel_lsp.class_schema import Estimate
    from kernel_lsp.recording.examples import Recorded


def register(session: Session) -> None:
    """Answer ``textDocument/hover``; a recording that is being read is waited for where there is nothing else to show."""

    @session.connection.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        document = await settled(session, params.text_document.uri)
        if document is None:
            return None
        found = find(session, document, params.position)
        if found is None and session.recordings.looking(document.path):
            await session.recordings.settled(document.path)
            found = find(session, document, params.position)
        return found


def find(session: Session, document: Document, place: types.Position) -> types.Hover | None:
    """The hover for the class whose name is at a place, None elsewhere and where nothing is known."""
    position = document.position(place)
    for c in session.documents.classes(document):
        if c.name_range.contains(position):
            recorded = session.recordings.of(document.path, c.name)
            s = class_state(session, document, c)
            estimate = session.estimates.worth_it(document, c) if s.kernel is None else None
            text = _text(c.name, s, recorded, estimate)
            if text is None:
                return None
            content = types.MarkupContent(types.MarkupKind.Markdown, text)
            if not session.client.markdown:
                content = types.MarkupContent(types.MarkupKind.PlainText, plain_text(text))
            return types.Hover(content, document.lsp_range(c.name_range))
    return None


def _text(name: str, s: ClassState, recorded: Recorded | None, estimate: Estimate | None) -> str | None:
    parts = []
    if s.running is not None:
        parts.append(f"{running_words(s.running)}: {s.running.message} ({s.running.percentage} %)")
    if s.kernel is not None and not s.pending:
        parts.append(hover_markdown(name, s))
    if s.error is not None:
        parts.append(str(s.error))
    elif s.no_kernel:
        parts.append(s.no_kernel)
    elif estimate is not None:
        parts.append(estimate_words(estimate))
    if recorded is not None:
        parts.append(recorded_words(recorded))
    return "\n\n".join(parts) or None
