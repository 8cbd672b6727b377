"""pygls' protocol with its traps closed; what each override is for stands at the override."""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.protocol import LanguageServerProtocol, lsp_method

if TYPE_CHECKING:
    from .app import Server

log = logging.getLogger("kernel_lsp.server")


@dataclass(frozen=True, slots=True)
class Raw:
    """A result that is JSON data already. Converting the objects of a long list takes longer than finding them."""

    data: Any


class Protocol(LanguageServerProtocol):
    _server: Server

    def _execute_handler(self, msg_id: Any, handler: Any, callback: Any, args: Any = None, kwargs: Any = None) -> None:
        """pygls keeps the future of every notification and every generator step for ever; drop them when done."""

        def done(future: Any) -> None:
            try:
                callback(future)
            finally:
                self._request_futures.pop(msg_id, None)

        super()._execute_handler(msg_id, handler, done, args, kwargs)

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        if error is None and isinstance(result, Raw):
            self._result_types.pop(msg_id, None)
            self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "result": result.data})
        else:
            super()._send_response(msg_id, result, error)

    def notify_raw(self, method: str, params: dict[str, Any]) -> None:
        """A notification whose parameters are JSON data already."""
        self._send_data({"jsonrpc": self.VERSION, "method": method, "params": params})

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        result = yield from super().lsp_initialize(params)
        encoding = result.capabilities.position_encoding or types.PositionEncodingKind.Utf16
        self._server.on_initialize(params, str(getattr(encoding, "value", encoding)))
        sync = result.capabilities.text_document_sync
        if isinstance(sync, types.TextDocumentSyncOptions):
            sync.open_close = True  # pygls says no unless a handler beside its own is registered
        if not self._server.state.client.pull_diagnostics:
            # A client that cannot be told to ask again is sent them; with both, it would show them twice.
            result.capabilities.diagnostic_provider = None
        return result

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self._server.on_open(params.text_document)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Not into pygls' own document, which applies edits in the wrong place after a form feed or U+2028."""
        self._server.on_change(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._server.on_close(params.text_document.uri)

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        """pygls cancels a future of its own, which stops nothing."""
        self._server.on_progress_cancel(params.token)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> None:  # type: ignore[override]
        """pygls iterates over the dictionary of futures while their callbacks take entries out of it."""
        current = self.msg_id
        for msg_id, future in list(self._request_futures.items()):
            if msg_id != current and not future.done():
                future.cancel()
        self._shutdown = True
        self._server.on_shutdown()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> None:  # type: ignore[override]
        """pygls calls ``sys.exit`` here and then waits for its reader; the worker would outlive us."""
        self._server.on_exit(0 if self._shutdown else 1)
