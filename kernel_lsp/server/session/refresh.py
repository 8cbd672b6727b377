"""After a change: diagnostics are sent and lenses requested again, soon but not on every keystroke."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
from collections.abc import Callable
from typing import Any

from lsprotocol import types

from ..model.documents import Document
from .state import State

log = logging.getLogger("kernel_lsp.server")

DEBOUNCE_SECONDS = 0.03
OTHERS_SECONDS = 0.3  # the documents that are not being edited may wait longer
# Between two requests to ask anew. VS Code asks once 0.25 s or more have passed without another request: with one at every
# change, a class whose job is over would keep its lens for as long as the next job's changes all the time.
REQUEST_SECONDS = 1.0
REST_SECONDS = 5.0  # without an edit, after which the syntax trees are let go


Shown = Callable[[Document], list[dict[str, Any]]]


class Refresher:
    """Compares what each open document shows with what ``lenses`` and ``diagnostics`` say it should; sends the difference."""

    def __init__(self, state: State, lenses: Shown, diagnostics: Shown) -> None:
        self._state = state
        self._lenses = lenses
        self._diagnostics = diagnostics
        self.turn = 0  # counts what happened beside changes of text
        self._timer: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._due: dict[str, float] = {}  # URI → loop time
        self._pushed: dict[str, tuple[int | None, bytes]] = {}  # URI → version, digest of the diagnostics; b"": none
        self._titles: dict[str, Any] = {}  # URI → the lenses without their places
        self._words: dict[str, Any] = {}  # URI → the diagnostics without their places, for clients that pull
        self._asked_at: dict[str, float] = {}  # method → loop time of the last request to ask anew
        self._asking: dict[str, asyncio.TimerHandle] = {}  # method → the timer of a request that waits

    def changed(self, uri: str) -> None:
        """A document was edited: it soon, the others later."""
        self._forget_later(push_back=True)
        for document in self._state.documents:
            self._want(document.uri, DEBOUNCE_SECONDS if document.uri == uri else OTHERS_SECONDS, push_back=True)

    def soon(self, seconds: float = DEBOUNCE_SECONDS) -> None:
        """Something that concerns any document happened."""
        self.turn += 1
        for document in self._state.documents:
            self._want(document.uri, seconds)

    def closed(self, uri: str) -> None:
        """Forget what was shown for a document, and take its diagnostics back."""
        self._due.pop(uri, None)
        self._titles.pop(uri, None)
        self._words.pop(uri, None)
        if self._pushed.pop(uri, (None, b""))[1]:
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
        self._forget_later()

    def _forget_later(self, push_back: bool = False) -> None:
        """Release memory in a while; later than was said before only for an edit, which parses what others will need."""
        if self._rest is not None:
            if not push_back:
                return
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(REST_SECONDS, self._forget)

    def _forget(self) -> None:
        self._rest = None
        forget_trees(self._state)

    def _update(self, document: Document) -> None:
        """Lenses now, diagnostics in a turn of their own."""
        state = self._state
        found = self._lenses(document)
        titles = [(lens["command"]["title"], lens["command"]["arguments"][0].get("className")) for lens in found]
        before = self._titles.get(document.uri)
        self._titles[document.uri] = titles
        if before is not None and before != titles:
            if state.client.refresh_lenses:
                self._ask(types.WORKSPACE_CODE_LENS_REFRESH)
            if state.client.refresh_hints and state.settings_for(document.path).inlay_hints:
                self._ask(types.WORKSPACE_INLAY_HINT_REFRESH)
        asyncio.get_running_loop().call_soon(self._update_diagnostics, document.uri)

    def _update_diagnostics(self, uri: str) -> None:
        state = self._state
        document = state.documents.get(uri)
        if document is None or state.closing:
            return
        found = self._diagnostics(document)
        if not state.client.pull_diagnostics:
            # Also the same ones for a newer version: some clients drop those that come for an older one than they have.
            known, now = self._pushed.get(uri), (document.version, _digest(found))
            if (found or known is not None) and known != now:
                self._pushed[uri] = now
                self._publish(uri, document.version, found)
            return
        words = [(d["code"], d["message"]) for d in found]
        before = self._words.get(uri)
        self._words[uri] = words
        if before is not None and before != words:
            self._ask(types.WORKSPACE_DIAGNOSTIC_REFRESH)

    def _ask(self, method: str) -> None:
        """Have the client ask anew: now, or once the last request of this kind is long enough ago."""
        loop = asyncio.get_running_loop()
        rest = self._asked_at.get(method, float("-inf")) + REQUEST_SECONDS - loop.time()
        if rest <= 0:
            self._send(method)
        elif method not in self._asking:
            self._asking[method] = loop.call_later(rest, self._send, method)

    def _send(self, method: str) -> None:
        self._asking.pop(method, None)
        if not self._state.closing:
            self._asked_at[method] = asyncio.get_running_loop().time()
            self._state.connection.ask_once(method)

    def _publish(self, uri: str, version: int | None, found: list[dict[str, Any]]) -> None:
        params: dict[str, Any] = {"uri": uri, "diagnostics": found}
        if version is not None:
            params["version"] = version
        self._state.connection.protocol.notify_raw(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)


def _digest(found: list[dict[str, Any]]) -> bytes:
    """Tells diagnostics apart without keeping them; b"" where there are none."""
    return hashlib.blake2b(repr(found).encode("utf-8", "surrogatepass"), digest_size=16).digest() if found else b""


def forget_trees(state: State) -> None:
    """Release unused memory once no edit is under way."""
    for document in state.documents:
        document.forget()
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps what is freed, in small pieces, to itself
        if trim is not None:
            trim(0)
