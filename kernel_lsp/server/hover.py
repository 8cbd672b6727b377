"""Hover on a class name: the measured table, or what is missing for one."""

from __future__ import annotations

from lsprotocol import types

from .documents import Document
from .plain import plain_text
from .standing import Standing, settled, standing
from .state import State
from .table import hover_markdown
from .words import running_words


def register(state: State) -> None:
    @state.server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        document = await settled(state, params.text_document.uri)
        return find(state, document, params.position) if document is not None else None


def find(state: State, document: Document, place: types.Position) -> types.Hover | None:
    position = document.position(place)
    for c in state.documents.classes(document):
        if c.name_range.contains(position):
            text = _text(c.name, standing(state, document, c))
            if text is None:
                return None
            content = types.MarkupContent(types.MarkupKind.Markdown, text)
            if not state.client.markdown:
                content = types.MarkupContent(types.MarkupKind.PlainText, plain_text(text))
            return types.Hover(content, document.lsp_range(c.name_range))
    return None


def _text(name: str, s: Standing) -> str | None:
    parts = []
    if s.running is not None:
        parts.append(f"{running_words(s.running)}: {s.running.message} ({s.running.percentage} %)")
    if s.kernel is not None and not s.pending:
        parts.append(hover_markdown(name, s))
    if s.error is not None:
        parts.append(str(s.error))
    elif s.no_kernel:
        parts.append(s.no_kernel)
    return "\n\n".join(parts) or None
