"""Code lenses above each class: generate, the verdict, or the progress of a job."""

from __future__ import annotations

import time
from typing import Any

from lsprotocol import types

from ..model.documents import Document
from ..protocol.raw import Raw
from ..session.class_states import class_states, settled
from ..session.session import Session
from ..text.one_line import lens_title


def register(session: Session) -> None:
    """Answer ``textDocument/codeLens``."""

    @session.connection.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    async def lens(params: types.CodeLensParams) -> Raw:
        document = await settled(session, params.text_document.uri)
        return Raw(lenses(session, document) if document is not None else [])


def lenses(session: Session, document: Document) -> list[dict[str, Any]]:
    """One lens a class, as JSON data; a second one is an action.

    That cancels what runs, validates what is not validated as it is, or generates a kernel as exact as the settings ask for by now.
    Kept while nothing changed, since they are asked for once by the client and once to see whether they changed.
    """
    key = (session.documents.generation, session.refresher.turn, int(time.monotonic()))
    if document.lenses is None or document.lenses[0] != key:
        document.lenses = (key, _lenses(session, document))
    return document.lenses[1]


def _lenses(session: Session, document: Document) -> list[dict[str, Any]]:
    found = []
    for c, s in class_states(session, document):
        arguments = [{"uri": document.uri, "className": c.name, "version": document.version}]
        area = document.wire_range(c.name_range)
        plain = s.running is None and (s.kernel is None or s.says_nothing)
        is_new = plain and s.error is None and not s.no_kernel
        command = "kernelLsp.generate" if plain or (s.outdated and s.running is None) else "kernelLsp.showReport"
        recorded = session.recordings.of(document.path, c.name)
        title = lens_title(s, recorded, session.estimates.worth_it(document, c) if is_new else None)
        found.append(_lens(area, title, command, arguments))
        if s.running is not None and s.running.job is not None:
            found.append(_lens(area, "Cancel", "kernelLsp.cancel", [{"jobId": s.running.job.id}]))
        elif (s.stale and not s.outdated) or (s.verdict is None and (s.claim is not None or s.before is not None)):
            found.append(_lens(area, "Validate", "kernelLsp.validate", arguments))
        elif s.wanted:
            found.append(_lens(area, "Generate again", "kernelLsp.generate", arguments))
    return found


def _lens(area: dict[str, Any], title: str, command: str, arguments: list[Any]) -> dict[str, Any]:
    return {"range": area, "command": {"title": title, "command": command, "arguments": arguments}}
