"""The speedup after the class name; off unless ``kernelLsp.inlayHints`` is set."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from ..model.documents import Document
from ..protocol.raw import Raw
from ..session.class_states import class_state, settled
from ..session.state import State
from ..text.one_line import lens_title


def register(state: State) -> None:
    """Answer ``textDocument/inlayHint``."""

    @state.connection.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(params: types.InlayHintParams) -> Raw:
        document = await settled(state, params.text_document.uri)
        if document is None or not state.settings_for(document.path).inlay_hints:
            return Raw([])
        return Raw(hints(state, document, params.range))


def hints(state: State, document: Document, area: types.Range) -> list[dict[str, Any]]:
    """Hints for the classes with a kernel whose name is in the range."""
    found = []
    for c in state.documents.classes(document):
        if not area.start.line <= c.name_range.start.line <= area.end.line:
            continue
        s = class_state(state, document, c)
        if s.kernel is not None and not s.pending and not s.says_nothing:
            place = document.wire_position(c.name_range.end)
            found.append({"position": place, "label": lens_title(s), "paddingLeft": True})
    return found
