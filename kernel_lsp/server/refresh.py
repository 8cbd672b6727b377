"""After a change: diagnostics go out and lenses are asked for anew, soon but not on every keystroke."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from .diagnostics import diagnostics
from .lens import lenses

if TYPE_CHECKING:
    from .documents import Document
    from .state import State

log = logging.getLogger("kernel_lsp.server")

DEBOUNCE_SECONDS = 0.05
OTHERS_SECONDS = 0.3  # the documents that are not being edited may wait longer


class Refresher:
    """Compares what each open document shows with what it should show, and sends the difference."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._timer: asyncio.TimerHandle | None = None
        self._due: dict[str, float] = {}  # URI → loop time
        self._pushed: dict[str, list[dict[str, Any]]] = {}
        self._shown: dict[str, tuple[Any, Any]] = {}  # URI → (lenses, diagnostics) without their places

    def changed(self, uri: str) -> None:
        """A document was edited: it soon, the others later."""
        for document in self._state.documents:
            self._want(document.uri, DEBOUNCE_SECONDS if document.uri == uri else OTHERS_SECONDS, push_back=True)

    def soon(self, seconds: float = DEBOUNCE_SECONDS) -> None:
        """Something that concerns any document happened."""
        for document in self._state.documents:
            self._want(document.uri, seconds)

    def closed(self, uri: str) -> None:
        self._due.pop(uri, None)
        self._shown.pop(uri, None)
        if self._pushed.pop(uri, None):
            self._publish(uri, None, [])

    def _want(self, uri: str, seconds: float, push_back: bool = False) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        known = self._due.get(uri)
        self._due[uri] = due if known is None or push_back else min(due, known)
        first = min(self._due.values())
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(first, self._run)

    def _run(self) -> None:
        """Bring the most urgent document up to date; the next one in a turn of its own, so that requests come between."""
        loop = asyncio.get_running_loop()
        self._timer = None
        if not self._due or self._state.closing:
            return
        uri = min(self._due, key=lambda key: self._due[key])
        if self._due[uri] <= loop.time() + 0.001:
            del self._due[uri]
            document = self._state.documents.get(uri)
            if document is not None:
                try:
                    self._update(document)
                except Exception:
                    log.exception("refreshing %s", uri)
        if self._due and self._timer is None:
            self._timer = loop.call_at(min(self._due.values()), self._run)

    def _update(self, document: Document) -> None:
        state, server = self._state, self._state.server
        found = diagnostics(state, document)
        titles = [
            (lens["command"]["title"], lens["command"]["arguments"][0].get("className"))
            for lens in lenses(state, document)
        ]
        words = [(d["code"], d["message"]) for d in found]
        before = self._shown.get(document.uri)
        self._shown[document.uri] = (titles, words)
        if state.client.pull_diagnostics:
            if before is not None and before[1] != words:
                server.ask_once(types.WORKSPACE_DIAGNOSTIC_REFRESH)
        elif self._pushed.get(document.uri, []) != found:
            self._pushed[document.uri] = found
            self._publish(document.uri, document.version, found)
        if before is not None and before[0] != titles:
            if state.client.refresh_lenses:
                server.ask_once(types.WORKSPACE_CODE_LENS_REFRESH)
            if state.client.refresh_hints and state.settings_for(document.path).inlay_hints:
                server.ask_once(types.WORKSPACE_INLAY_HINT_REFRESH)

    def _publish(self, uri: str, version: int | None, found: list[dict[str, Any]]) -> None:
        params: dict[str, Any] = {"uri": uri, "diagnostics": found}
        if version is not None:
            params["version"] = version
        self._state.server.protocol.notify_raw(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)
