"""Code lenses above each class: generate, the verdict, or what is going on."""

from __future__ import annotations

import time
from typing import Any

from lsprotocol import types

from .documents import Document
from .protocol import Raw
from .standing import settled, standings
from .state import State
from .words import lens_title


def register(state: State) -> None:
    @state.server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    async def lens(params: types.CodeLensParams) -> Raw:
        document = await settled(state, params.text_document.uri)
        return Raw(lenses(state, document) if document is not None else [])


def lenses(state: State, document: Document) -> list[dict[str, Any]]:
    """One lens a class, as JSON data; a second one is an action.

    That cancels what runs, validates what is not validated as it is, or generates a kernel as exact as the settings ask for by now.
    Kept while nothing changed, since they are asked for once by the client and once to see whether they changed.
    """
    key = (state.documents.generation, state.server.refresher.turn, int(time.monotonic()))
    if document.lenses is None or document.lenses[0] != key:
        document.lenses = (key, _lenses(state, document))
    return document.lenses[1]


def _lenses(state: State, document: Document) -> list[dict[str, Any]]:
    found = []
    for c, s in standings(state, document):
        arguments = [{"uri": document.uri, "className": c.name, "version": document.version}]
        area = document.wire_range(c.name_range)
        plain = s.running is None and (s.kernel is None or s.says_nothing)
        command = "kernelLsp.generate" if plain else "kernelLsp.showReport"
        found.append(_lens(area, lens_title(s, state.recordings.of(document.path, c.name)), command, arguments))
        if s.running is not None and s.running.job is not None:
            found.append(_lens(area, "Cancel", "kernelLsp.cancel", [{"jobId": s.running.job.id}]))
        elif s.stale or (s.verdict is None and (s.claim is not None or s.before is not None)):
            found.append(_lens(area, "Validate", "kernelLsp.validate", arguments))
        elif s.wanted:
            found.append(_lens(area, "Generate again", "kernelLsp.generate", arguments))
    return found


def _lens(area: dict[str, Any], title: str, command: str, arguments: list[Any]) -> dict[str, Any]:
    return {"range": area, "command": {"title": title, "command": command, "arguments": arguments}}
