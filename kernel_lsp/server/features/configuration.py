"""Settings from the client: at initialization, pulled, or sent when they change; and the events after which they are read again."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import to_fs_path

from kernel_lsp.errors import surface

from ..protocol.raw import json_data
from ..session.file_changes import folders_of
from ..session.session import Session

SECTION = "kernelLsp"
_OPTIONS = ("trusted", "commandLinks", "review", "failures", "paused", "status", "settings", SECTION)
log = logging.getLogger("kernel_lsp.server")


def register(session: Session) -> None:
    """Take settings from the client, and look again when settings, folders or files change."""
    feature = session.connection.feature

    @feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        _register_for_changes(session)
        pull(session)

    @feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed(params: types.DidChangeConfigurationParams) -> None:
        if session.client.configuration:
            pull(session)
        else:
            accept(session, {None: _section(params.settings)})

    @feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        session.file_changes.news()

    @feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        pull(session)  # pygls has brought its own list up to date
        session.file_changes.folders_changed()
        surface.name_folders(map(str, folders_of(session)))

    @feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        session.forget_settings()
        session.documents.touch()
        session.interrupt()
        session.validate_changed()
        session.show_changes()


def read_initialization_options(session: Session, options: Any) -> None:
    """``{"trusted": bool, "settings": {…}, "status": bool, "review": bool, "failures": bool, "paused": bool, "commandLinks": bool}``, all optional.

    A client that says nothing is trusted: its user started the server.
    """
    options = json_data(options)
    if not isinstance(options, dict):
        return
    session.trusted = options.get("trusted") is not False
    session.command_links = options.get("commandLinks") is True
    session.review = options.get("review") is True
    session.connection.failures = options.get("failures") is True
    session.paused = options.get("paused") is True
    session.status_reports.wanted = options.get("status") is True
    settings = options.get("settings", options.get(SECTION))
    rest = {name: value for name, value in options.items() if name not in _OPTIONS}
    session.initial_settings = {**rest, **(settings if isinstance(settings, dict) else {})}


def pull(session: Session) -> None:
    """Ask the client for its settings, for each workspace folder and without one, if it answers such questions."""
    if not session.client.configuration:
        return
    folders = {uri: Path(path) for uri in session.connection.workspace.folders if (path := to_fs_path(uri)) is not None}
    items = [types.ConfigurationItem(section=SECTION)]
    items += [types.ConfigurationItem(scope_uri=uri, section=SECTION) for uri in folders]
    future = session.connection.ask(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items))
    session.settings_asked, session.settings_asked_at = future, time.monotonic()

    def answered(answer: Any) -> None:
        if session.settings_asked is not future:
            return  # asked again since: that answer is the one that counts
        session.settings_asked = None
        if future.cancelled() or future.exception() is not None:
            log.warning("the client did not send its settings")
            return
        accept(session, dict(zip([None, *folders.values()], map(json_data, future.result() or []), strict=False)))

    future.add_done_callback(answered)


def accept(session: Session, settings: dict[Path | None, Any]) -> None:
    """Put settings into force, by folder; those given at initialization stay where these say nothing."""
    now = {
        folder: {name: value for name, value in given.items() if value is not None}
        for folder, given in settings.items()
        if isinstance(given, dict)
    }
    if now == session.editor_settings:
        return
    session.editor_settings = now
    _settings_changed(session)
    session.forget_settings()
    session.documents.touch()
    session.show_changes()


def _settings_changed(session: Session) -> None:
    """What failed for want of an interpreter or a device may not fail now; and another worker may be needed."""
    for key, record in list(session.records.items()):
        error = record.job.error if record.job is not None and record.job.over else None
        if error is not None and error.line is None:
            del session.records[key]
    session.status_reports.forget_error()
    for document in session.documents:
        asyncio.get_running_loop().call_soon(session.warm_worker, document.path)
    asyncio.get_running_loop().call_soon(session.rest)


def _section(settings: Any) -> Any:
    settings = json_data(settings)
    return settings.get(SECTION, settings) if isinstance(settings, dict) else None


def _register_for_changes(session: Session) -> None:
    """Ask to be told of changed settings and of files that matter, where that is done at run time."""
    wanted = []
    if session.client.register_configuration:
        wanted.append(
            types.Registration(
                "kernel-lsp-configuration",
                types.WORKSPACE_DID_CHANGE_CONFIGURATION,
                types.DidChangeConfigurationRegistrationOptions(section=SECTION),
            )
        )
    if session.client.register_watching:
        watchers = [types.FileSystemWatcher("**/*.py"), types.FileSystemWatcher("**/pyproject.toml")]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        wanted.append(types.Registration("kernel-lsp-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    if wanted:
        future = session.connection.ask(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(wanted))
        future.add_done_callback(lambda answer: _registered(session, answer))
    if not session.client.register_watching:
        session.file_changes.watch()


def _registered(session: Session, answer: Any) -> None:
    """A client that refuses, or never answers, does not tell of changed files either."""
    if answer.cancelled() or answer.exception() is not None:
        log.warning("the client did not register for changes")
        if not session.closing:
            session.file_changes.watch()
    else:
        session.file_changes.by_client = session.client.register_watching
