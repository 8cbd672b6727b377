"""The server object: one client's connection with the session and the features registered on it."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any

from lsprotocol import types

from kernel_lsp.errors import surface

from ..features import actions, configuration, diagnostics, hover, inlay, language_models, lens
from ..protocol.connection import Connection
from ..session.file_changes import folders_of
from ..session.session import Session
from . import commands

log = logging.getLogger("kernel_lsp.server")

WARM_SECONDS = 1.5  # after a document was opened: nothing is slowed down while the editor still starts


class Server(Connection):
    """What comes in over the protocol, handed to the session."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session(self, lens.lenses, diagnostics.diagnostics, _listener)
        self._closing: asyncio.Task[None] | None = None
        for room in (actions, commands, configuration, diagnostics, hover, inlay, language_models, lens):
            room.register(self.session)

    def on_initialize(self, params: types.InitializeParams) -> None:
        """Take over what the client says of itself and its options."""
        gc.freeze()  # all that was imported stays: a collection that looks through it takes 0.1 s of some request
        self.session.documents.encoding = self.client.encoding
        configuration.read_initialization_options(self.session, params.initialization_options)
        surface.name_folders(map(str, folders_of(self.session)))

    def on_open(self, item: types.TextDocumentItem) -> None:
        """Open the document, and start its worker a little later, if the user stays."""
        document = self.session.documents.open(item)
        self.session.show_changes()
        asyncio.get_running_loop().call_later(WARM_SECONDS, self.session.warm_worker, document.path)
        self.session.rest()

    def on_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply an edit, and show soon what it changes; validation in idle time is put off."""
        document = self.session.documents.change(params)
        if document is not None:
            self.session.refresher.changed(document.uri)
            self.session.file_changes.edited(document)
            self.session.interrupt()

    def on_close(self, uri: str) -> None:
        """Forget the document; what was shown for it is taken back."""
        self.session.documents.close(uri)
        self.session.refresher.closed(uri)
        self.session.refresher.soon()

    def on_progress_cancel(self, token: Any) -> None:
        """End the download or job whose progress bar was cancelled; its token is the job's id."""
        if str(token) in self.session.downloads:
            self.session.downloads[str(token)]()
        elif self.session.jobs is not None:
            self.session.jobs.cancel(str(token))

    def on_shutdown(self) -> None:
        """Begin to end jobs and processes; ``on_exit`` follows."""
        self._start_closing()

    def on_exit(self, status: int) -> None:
        """Note the exit status, and let ``stopped`` be seen."""
        self.status, self.exited = status, True
        self._start_closing()
        self.stopped.set()

    def _start_closing(self) -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.session.close())

    async def closed(self) -> None:
        """End jobs and workers and wait for it."""
        self._start_closing()
        assert self._closing is not None
        try:
            await self._closing
        except Exception:
            log.exception("closing")
        from ..features.report import remove_reports

        remove_reports(self.session)


def _listener(session: Session) -> Any:
    from .listener import Listener  # what it imports is not needed before the first job

    return Listener(session)
