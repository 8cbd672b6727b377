"""Hover on a class name: the verdict, speed, accuracy and links, or what is missing for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

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
            text = _text(c.name, s, _links(session, document, c.name, s), recorded, estimate)
            if text is None:
                return None
            content = types.MarkupContent(types.MarkupKind.Markdown, text)
            if not session.client.markdown:
                content = types.MarkupContent(types.MarkupKind.PlainText, plain_text(text))
            return types.Hover(content, document.lsp_range(c.name_range))
    return None


def _links(session: Session, document: Document, name: str, s: ClassState) -> str:
    """Links to the kernel file, the report and what can be done; to files alone where the client follows no others."""
    found = [f"[{s.kernel_path.name}]({s.kernel_path.as_uri()})"] if s.kernel_path is not None else []
    page = session.reports.get((document.path, name))
    if session.command_links:
        argument = quote(json.dumps([{"uri": document.uri, "className": name}]))
        found += [f"[{title}](command:kernelLsp.{command}?{argument})" for title, command in _commands(s)]
    elif page is not None:
        found.append(f"[Report]({page.as_uri()})")
    return " · ".join(found)


def _commands(s: ClassState) -> list[tuple[str, str]]:
    found = [("Report", "showReport")]
    if s.regression:
        found += [("What Changed", "showChange"), ("Restore", "restore")]
    if s.kernel is None or s.outdated or s.wanted or not (s.correct or s.verdict is None):
        return [*found, ("Generate" if s.kernel is None else "Regenerate", "generate")]
    return [*found, ("Validate", "validate")]


def _text(name: str, s: ClassState, links: str, recorded: Recorded | None, estimate: Estimate | None) -> str | None:
    """Why something failed is not in it: the diagnostic says so, which VS Code shows above the hover."""
    parts = []
    if s.running is not None:
        parts.append(f"{running_words(s.running)}: {s.running.message} ({s.running.percentage} %)")
    if s.kernel is not None and not s.pending:
        parts.append(hover_markdown(name, s, links))
    if s.lacks_inputs:
        parts.append("⚠ **Example inputs are missing.**")
    elif s.error is not None:
        parts.append("⚠ **The last job failed.**")
    elif s.no_kernel:
        parts.append("✗ **No correct kernel was found.**")
    elif estimate is not None:
        parts.append(estimate_words(estimate))
    if recorded is not None:
        parts.append(recorded_words(recorded))
    if links and s.kernel is None and (s.error is not None or s.no_kernel):
        parts.append(links)
    return "\n\n".join(parts) or None
