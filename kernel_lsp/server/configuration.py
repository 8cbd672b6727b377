"""Settings from the client: at initialization, pulled, or sent when they change; and what makes us look again."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import to_fs_path

from .saving import validate_changed, warm_worker
from .state import State

SECTION = "kernelLsp"
_OPTIONS = ("trusted", "review", "paused", "status", "settings", SECTION)
log = logging.getLogger("kernel_lsp.server")


def register(state: State) -> None:
    feature = state.server.feature

    @feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        _register_for_changes(state)
        pull(state)

    @feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed(params: types.DidChangeConfigurationParams) -> None:
        if state.client.configuration:
            pull(state)
        else:
            accept(state, {None: _section(params.settings)})

    @feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        state.server.rounds.news()

    @feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        pull(state)  # pygls has brought its own list up to date
        state.server.rounds.folders_changed()

    @feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        state.forget_settings()
        state.documents.touch()
        state.follow_up.interrupt()
        validate_changed(state)
        state.server.refresher.soon(0.0)


def read_initialization_options(state: State, options: Any) -> None:
    """``{"trusted": bool, "settings": {…}, "status": bool, "review": bool, "paused": bool}``, all optional.

    A client that says nothing is trusted: its user started the server.
    """
    options = plain(options)
    if not isinstance(options, dict):
        return
    state.trusted = options.get("trusted") is not False
    state.review = options.get("review") is True
    state.paused = options.get("paused") is True
    state.server.status_reports.wanted = options.get("status") is True
    settings = options.get("settings", options.get(SECTION))
    rest = {name: value for name, value in options.items() if name not in _OPTIONS}
    state.initial_settings = {**rest, **(settings if isinstance(settings, dict) else {})}


def pull(state: State) -> None:
    """Ask the client for its settings, for each workspace folder and without one, if it answers such questions."""
    if not state.client.configuration:
        return
    folders = {uri: Path(path) for uri in state.server.workspace.folders if (path := to_fs_path(uri)) is not None}
    items = [types.ConfigurationItem(section=SECTION)]
    items += [types.ConfigurationItem(scope_uri=uri, section=SECTION) for uri in folders]
    future = state.server.ask(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items))
    state.settings_asked, state.settings_asked_at = future, time.monotonic()

    def answered(answer: Any) -> None:
        if state.settings_asked is not future:
            return  # asked again since: that answer is the one that counts
        state.settings_asked = None
        if future.cancelled() or future.exception() is not None:
            log.warning("the client did not send its settings")
            return
        accept(state, dict(zip([None, *folders.values()], map(plain, future.result() or []), strict=False)))

    future.add_done_callback(answered)


def accept(state: State, settings: dict[Path | None, Any]) -> None:
    """Put settings into force, by folder; those given at initialization stay where these say nothing."""
    now = {
        folder: {name: value for name, value in given.items() if value is not None}
        for folder, given in settings.items()
        if isinstance(given, dict)
    }
    if now == state.editor_settings:
        return
    state.editor_settings = now
    _settings_changed(state)
    state.forget_settings()
    state.documents.touch()
    state.server.refresher.soon(0.0)


def _settings_changed(state: State) -> None:
    """What failed for want of an interpreter or a device may not fail now; and another worker may be needed."""
    for key, record in list(state.records.items()):
        error = record.job.error if record.job is not None and record.job.over else None
        if error is not None and error.line is None:
            del state.records[key]
    state.server.status_reports.forget_error()
    for document in state.documents:
        asyncio.get_running_loop().call_soon(warm_worker, state, document.path)
    asyncio.get_running_loop().call_soon(state.follow_up.rest)


def _section(settings: Any) -> Any:
    settings = plain(settings)
    return settings.get(SECTION, settings) if isinstance(settings, dict) else None


def plain(value: Any) -> Any:
    """JSON data from what the converter made of it."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return plain(vars(value))
    return value


def _register_for_changes(state: State) -> None:
    """Ask to be told of changed settings and of files that matter, where that is done at run time."""
    wanted = []
    if state.client.register_configuration:
        wanted.append(
            types.Registration(
                "kernel-lsp-configuration",
                types.WORKSPACE_DID_CHANGE_CONFIGURATION,
                types.DidChangeConfigurationRegistrationOptions(section=SECTION),
            )
        )
    if state.client.register_watching:
        watchers = [types.FileSystemWatcher("**/*.py"), types.FileSystemWatcher("**/pyproject.toml")]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        wanted.append(types.Registration("kernel-lsp-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    if wanted:
        future = state.server.ask(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(wanted))
        future.add_done_callback(lambda answer: _registered(state, answer))
    if not state.client.register_watching:
        state.server.rounds.watch()


def _registered(state: State, answer: Any) -> None:
    """A client that refuses, or never answers, does not tell of changed files either."""
    if answer.cancelled() or answer.exception() is not None:
        log.warning("the client did not register for changes")
        if not state.closing:
            state.server.rounds.watch()
    else:
        state.server.rounds.by_client = state.client.register_watching
