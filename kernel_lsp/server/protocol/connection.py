"""pygls with several of its behaviours overridden; the reason stands at each override."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from typing import Any

from lsprotocol import types
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from kernel_lsp import __version__

from .client import Client, read_client
from .raw import Raw

log = logging.getLogger("kernel_lsp.server")

_LEVELS = {"error": types.MessageType.Error, "warning": types.MessageType.Warning, "info": types.MessageType.Info}


class Protocol(LanguageServerProtocol):
    """pygls' protocol, which hands what the client sends to the ``Connection`` and sends results that are JSON data as they are."""

    _server: Connection

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
        """Read the client, and say that documents are opened and closed by notification."""
        result = yield from super().lsp_initialize(params)
        encoding = result.capabilities.position_encoding or types.PositionEncodingKind.Utf16
        self._server.client = read_client(params, str(getattr(encoding, "value", encoding)))
        self._server.on_initialize(params)
        sync = result.capabilities.text_document_sync
        if isinstance(sync, types.TextDocumentSyncOptions):
            sync.open_close = True  # pygls says no unless a handler beside its own is registered
        if not self._server.client.pull_diagnostics:
            # A client that cannot be told to ask again is sent them; with both, it would show them twice.
            result.capabilities.diagnostic_provider = None
        return result

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Not into pygls' own documents."""
        self._server.on_open(params.text_document)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Not into pygls' own document, which applies edits in the wrong place after a form feed or U+2028."""
        self._server.on_change(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Not out of pygls' own documents."""
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


class Connection(LanguageServer):
    """One client. ``stopped`` is set when the client is done with us, with the exit status in ``status``."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__("kernel-lsp", __version__, protocol_cls=Protocol, max_workers=1)
        self.client = Client()
        self.closing = False  # nothing is begun any more
        self.failures = False  # the client has a place of its own for what went wrong
        self.stopped = asyncio.Event()
        self.status = 1
        self.exited = False  # by an exit notification, not a lost connection
        self._asked: dict[str, bool] = {}  # parameterless requests under way → whether to ask once more

    # What the protocol hands over; the server does something of its own in each.

    def on_initialize(self, params: types.InitializeParams) -> None:
        """The client has said what it can do; ``client`` is set."""
        raise NotImplementedError

    def on_open(self, item: types.TextDocumentItem) -> None:
        """A document was opened."""
        raise NotImplementedError

    def on_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """A document was edited."""
        raise NotImplementedError

    def on_close(self, uri: str) -> None:
        """A document was closed."""
        raise NotImplementedError

    def on_progress_cancel(self, token: Any) -> None:
        """The user has cancelled what the progress bar of ``token`` is for."""
        raise NotImplementedError

    def on_shutdown(self) -> None:
        """The client is about to leave."""
        raise NotImplementedError

    def on_exit(self, status: int) -> None:
        """The client has left; ``status``: what this process is to end with."""
        raise NotImplementedError

    # Towards the client.

    def report_server_error(self, error: Exception, source: Any) -> None:
        """pygls shows errors in notifications as toasts; they belong into the log."""
        if source is not FeatureRequestError:
            log.error("%s: %s", getattr(source, "__name__", source), error, exc_info=error)

    def log_message(self, text: str, level: str) -> None:
        """A line in the client's log; ``level``: as in ``_LEVELS``."""
        self.window_log_message(types.LogMessageParams(_LEVELS[level], text))

    def show_message(self, text: str, level: str) -> None:
        """In front of the user, who asked for something just now."""
        self.window_show_message(types.ShowMessageParams(_LEVELS[level], text))

    def show_failure(
        self, text: str, level: str = "error", *, code: str = "", uri: str = "", class_name: str = ""
    ) -> None:
        """The same of what went wrong. A client that asked for failures has buttons for what helps, by the error's ``code``."""
        if not self.failures:
            self.show_message(text, level)
            return
        failure = {"message": text, "severity": level, "code": code, "uri": uri, "className": class_name}
        self.protocol.notify_raw("kernelLsp/failure", failure)

    def show_file(self, uri: str, said: str, *, external: bool) -> None:
        """Have the client show a file, in the editor or outside of it; where it cannot, or did not, say where the file lies."""
        if not self.client.show_document:
            self.show_message(said, "info")
            return

        def answered(answer: Any) -> None:
            failed = answer.cancelled() or answer.exception() is not None or not answer.result().success
            if failed and not self.closing:
                self.show_message(said, "info")

        params = types.ShowDocumentParams(uri, external=external, take_focus=True)
        self.ask(types.WINDOW_SHOW_DOCUMENT, params).add_done_callback(answered)

    def offer(self, text: str, level: str, choices: list[str]) -> Any:
        """Ask the user to choose; the future of the answer, whose ``title`` is the choice. It waits as long as they do."""
        actions = [types.MessageActionItem(choice) for choice in choices]
        params = types.ShowMessageRequestParams(_LEVELS[level], text, actions)
        return self.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params, seconds=None)

    def ask(self, method: str, params: Any = None, seconds: float | None = 30.0) -> Any:
        """A request to the client. One that is never answered is forgotten after ``seconds``."""
        future = self.protocol.send_request(method, params)
        if seconds is not None:
            pending = self.protocol._request_futures

            def forget() -> None:
                for msg_id in [key for key, value in pending.items() if value is future]:
                    del pending[msg_id]
                    self.protocol._result_types.pop(msg_id, None)
                future.cancel()

            asyncio.get_running_loop().call_later(seconds, lambda: None if future.done() else forget())
        return future

    def ask_once(self, method: str) -> None:
        """A refresh request; while one is under way, at most one more is kept for afterwards."""
        if method in self._asked:
            self._asked[method] = True
            return
        self._asked[method] = False

        def answered(answer: Any) -> None:
            if not answer.cancelled():
                answer.exception()
            if self._asked.pop(method, False) and not self.closing:
                self.ask_once(method)

        self.ask(method, seconds=5.0).add_done_callback(answered)
