"""The server object: pygls' with the traps closed, and the features registered on it."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any

from lsprotocol import types
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer

from kernel_lsp import __version__

from . import actions, commands, configuration, diagnostics, hover, inlay, lens, models
from .client import read_client
from .progress import Progress
from .protocol import Protocol
from .refresh import Refresher
from .rounds import Rounds
from .saving import warm_worker
from .state import State
from .status import StatusReports

log = logging.getLogger("kernel_lsp.server")

WARM_SECONDS = 1.5  # after a document was opened: nothing is slowed down while the editor still starts
_LEVELS = {"error": types.MessageType.Error, "warning": types.MessageType.Warning, "info": types.MessageType.Info}


class Server(LanguageServer):
    """One client. ``stopped`` is set when the client is done with us, with the exit status in ``status``."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__("kernel-lsp", __version__, protocol_cls=Protocol, max_workers=1)
        self.state = State(self)
        self.job_progress = Progress(self)
        self.refresher = Refresher(self.state)
        self.status_reports = StatusReports(self.state)
        self.rounds = Rounds(self.state)
        self.stopped = asyncio.Event()
        self.status = 1
        self.exited = False  # by an exit notification, not a lost connection
        self._asked: dict[str, bool] = {}  # parameterless requests under way → whether to ask once more
        self._closing: asyncio.Task[None] | None = None
        for room in (actions, commands, configuration, diagnostics, hover, inlay, lens, models):
            room.register(self.state)

    # What the protocol hands over.

    def on_initialize(self, params: types.InitializeParams, encoding: str) -> None:
        gc.freeze()  # all that was imported stays: a collection that looks through it takes 0.1 s of some request
        self.state.client = read_client(params, encoding)
        self.state.documents.encoding = self.state.client.encoding
        configuration.read_initialization_options(self.state, params.initialization_options)

    def on_open(self, item: types.TextDocumentItem) -> None:
        document = self.state.documents.open(item)
        self.refresher.soon(0.0)
        asyncio.get_running_loop().call_later(WARM_SECONDS, warm_worker, self.state, document.path)
        self.state.follow_up.rest()

    def on_change(self, params: types.DidChangeTextDocumentParams) -> None:
        document = self.state.documents.change(params)
        if document is not None:
            self.refresher.changed(document.uri)
            self.rounds.edited(document)
            self.state.follow_up.interrupt()

    def on_close(self, uri: str) -> None:
        self.state.documents.close(uri)
        self.refresher.closed(uri)
        self.refresher.soon()

    def on_progress_cancel(self, token: Any) -> None:
        if str(token) in self.state.downloads:
            self.state.downloads[str(token)].cancel()
        elif self.state.jobs is not None:
            self.state.jobs.cancel(str(token))

    def on_shutdown(self) -> None:
        self._start_closing()

    def on_exit(self, status: int) -> None:
        self.status, self.exited = status, True
        self._start_closing()
        self.stopped.set()

    def _start_closing(self) -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.state.close())

    async def closed(self) -> None:
        """End jobs and workers and wait for it."""
        self._start_closing()
        assert self._closing is not None
        try:
            await self._closing
        except Exception:
            log.exception("closing")
        from .report import remove_reports

        remove_reports(self.state)

    # Towards the client.

    def report_server_error(self, error: Exception, source: Any) -> None:
        """pygls shows errors in notifications as toasts; they belong into the log."""
        if source is not FeatureRequestError:
            log.error("%s: %s", getattr(source, "__name__", source), error, exc_info=error)

    def log_message(self, text: str, level: str) -> None:
        self.window_log_message(types.LogMessageParams(_LEVELS[level], text))

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
            if self._asked.pop(method, False) and not self.state.closing:
                self.ask_once(method)

        self.ask(method, seconds=5.0).add_done_callback(answered)
