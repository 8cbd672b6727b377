"""Files that change without the editor: the client reports them, else a watcher in the server does. A burst of changes is one round."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygls.uris import to_fs_path

from ..model.documents import Document
from .changed import changed, is_unsaved
from .state import State

if TYPE_CHECKING:
    from kernel_lsp.errors import UserError
    from kernel_lsp.watching import Watcher

log = logging.getLogger("kernel_lsp.server")

QUIET_SECONDS = 0.2  # without news from the client, after which a burst is over
MOST_SECONDS = 10.0  # that a burst is waited for
START_SECONDS = 0.5  # before a watcher of our own is started: the editor is still starting, too


class FileChanges:
    """``how``: the source of file changes, for bug reports: nobody, the client, the system, or comparing of files.

    ``show_changes`` and ``validate_changed``: called after a round.
    """

    def __init__(self, state: State, show_changes: Callable[[], None], validate_changed: Callable[[], None]) -> None:
        self._state = state
        self._show_changes = show_changes
        self._validate_changed = validate_changed
        self._watcher: Watcher | None = None
        self._starting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0  # when the burst began
        self._behind: set[str] = set()  # documents that were not as the disk is when it changed
        self._validating: asyncio.Task[None] | None = None
        self.by_client = False

    @property
    def how(self) -> str:
        """One of nobody, client, system and comparing."""
        if self._watcher is not None:
            return "comparing" if self._watcher.polls else "system"
        return "client" if self.by_client else "nobody"

    def news(self) -> None:
        """The client says that files changed."""
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._since = loop.time()
        else:
            self._timer.cancel()
        due = min(loop.time() + QUIET_SECONDS, self._since + MOST_SECONDS)
        self._timer = loop.call_at(due, self._run)

    def edited(self, document: Document) -> None:
        """An editor may load a changed file after its change was told of, and never saves it then."""
        if document.uri in self._behind:
            asyncio.get_running_loop().call_later(QUIET_SECONDS, self._catch_up, document.uri)

    def watch(self) -> None:
        """Watch the workspace folders ourselves: the client cannot."""
        if self._starting is None and not self._state.closing:
            self._starting = asyncio.get_running_loop().create_task(self._watch())

    def folders_changed(self) -> None:
        """Watch the folders that the workspace has now."""
        if self._watcher is not None:
            self._watcher.watch_only(self._folders())

    async def close(self) -> None:
        """End the watching and what waits."""
        if self._timer is not None:
            self._timer.cancel()
        if self._starting is not None:
            self._starting.cancel()
        if self._watcher is not None:
            await self._watcher.close()

    async def _watch(self) -> None:
        await asyncio.sleep(START_SECONDS)
        from kernel_lsp.watching import Watcher

        began = time.monotonic()
        self._watcher = Watcher(self._folders(), self._changed, self._say)
        try:
            tree = await self._watcher.start()
        except Exception:
            log.exception("watching the workspace folders")
            return
        log.info("%d folders are watched, after %.2f s", len(tree.folders), time.monotonic() - began)
        self._run()  # what changed before

    async def _changed(self, tree: Any, files: set[Path]) -> None:
        self._run()

    def _say(self, error: UserError) -> None:
        self._state.connection.log_message(str(error), "warning")

    def _run(self) -> None:
        """As after a save: what is shown is brought up to date, and validated where the settings, trust and pause allow."""
        state, self._timer = self._state, None
        if state.closing:
            return
        state.forget_settings()
        state.documents.touch()
        self._behind = {document.uri for document in state.documents if is_unsaved(document)}
        self._show_changes()
        self._validate()

    def _validate(self) -> None:
        """Unless such work has to wait: then later. A save does not wait for that, nor what somebody asks for."""
        if self._validating is None:
            self._validating = self._state.run_in_background(self._validate_in_time())

    async def _validate_in_time(self) -> None:
        try:
            await self._in_time()
        finally:
            self._validating = None
        if not self._state.closing:
            self._validate_changed()

    async def _in_time(self) -> None:
        """Wait while such work has to."""
        state, said = self._state, ""
        while not state.closing and (found := changed(state)):
            from kernel_lsp.jobs import pausing

            why = await pausing.why(state.settings_for(found[0][0].path))
            if not why:
                break
            if why != said:
                state.connection.log_message(
                    f"Kernels that changed outside the editor are not validated now: {why}.", "info"
                )
            said = why
            await asyncio.sleep(pausing.AGAIN_SECONDS)

    def _catch_up(self, uri: str) -> None:
        document = self._state.documents.get(uri)
        if self._state.closing or uri not in self._behind:
            return
        if document is None or not is_unsaved(document):
            self._behind.discard(uri)
            self._validate_changed()

    def _folders(self) -> list[Path]:
        return list(folders_of(self._state))


def folders_of(state: State) -> Iterator[Path]:
    """The folders of the client's workspace."""
    workspace = state.connection.workspace
    named = [to_fs_path(uri) for uri in workspace.folders] or [workspace.root_path]
    for name in named:
        if name:
            yield Path(name)
