"""Hover on a class name: the measured table, or what is missing for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from ..model.documents import Document
from ..model.standing import Standing
from ..session.standings import settled, standing
from ..session.state import State
from ..text.hover_table import hover_markdown
from ..text.one_line import recorded_words, running_words
from ..text.plain_text import plain_text

if TYPE_CHECKING:
    from kernel_lsp.recording.examples import Recorded


def register(state: State) -> None:
    """Answer ``textDocument/hover``; a recording that is being read is waited for where there is nothing else to show."""

    @state.connection.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        document = await settled(state, params.text_document.uri)
        if document is None:
            return None
        found = find(state, document, params.position)
        if found is None and state.recordings.looking(document.path):
            await state.recordings.settled(document.path)
            found = find(state, document, params.position)
        return found


def find(state: State, document: Document, place: types.Position) -> types.Hover | None:
    """The hover for the class whose name is at a place, None elsewhere and where nothing is known."""
    position = document.position(place)
    for c in state.documents.classes(document):
        if c.name_range.contains(position):
            recorded = state.recordings.of(document.path, c.name)
            text = _text(c.name, standing(state, document, c), recorded)
            if text is None:
                return None
            content = types.MarkupContent(types.MarkupKind.Markdown, text)
            if not state.client.markdown:
                content = types.MarkupContent(types.MarkupKind.PlainText, plain_text(text))
            return types.Hover(content, document.lsp_range(c.name_range))
    return None


def _text(name: str, s: Standing, recorded: Recorded | None) -> str | None:
    parts = []
    if s.running is not None:
        parts.append(f"{running_words(s.running)}: {s.running.message} ({s.running.percentage} %)")
    if s.kernel is not None and not s.pending:
        parts.append(hover_markdown(name, s))
    if s.error is not None:
        parts.append(str(s.error))
    elif s.no_kernel:
        parts.append(s.no_kernel)
    if recorded is not None:
        parts.append(recorded_words(recorded))
    return "\n\n".join(parts) or None
