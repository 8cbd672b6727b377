"""Settings from the client: at initialization, pulled, or sent when they change; and what makes us look again."""

from __future__ import annotations

import logging
from typing import Any

from lsprotocol import types

from .saving import validate_changed
from .state import State

SECTION = "kernelLsp"
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
            accept(state, _section(params.settings))

    @feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        state.forget_settings()
        state.documents.touch()
        state.server.refresher.soon()

    @feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        state.forget_settings()
        state.documents.touch()
        validate_changed(state)
        state.server.refresher.soon(0.0)


def read_initialization_options(state: State, options: Any) -> None:
    """``{"trusted": bool, "settings": {…}}``. A client that says nothing is trusted: its user started the server."""
    options = plain(options)
    if not isinstance(options, dict):
        return
    state.trusted = options.get("trusted") is not False
    settings = options.get("settings", options.get(SECTION))
    rest = {name: value for name, value in options.items() if name not in ("trusted", "settings", SECTION)}
    state.editor_settings = {**rest, **(settings if isinstance(settings, dict) else {})}


def pull(state: State) -> None:
    """Ask the client for its settings, if it answers such questions."""
    if not state.client.configuration:
        return
    params = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
    future = state.server.ask(types.WORKSPACE_CONFIGURATION, params)

    def answered(answer: Any) -> None:
        if future.cancelled() or future.exception() is not None:
            log.warning("the client did not send its settings")
            return
        values = future.result()
        accept(state, plain(values[0]) if values else None)

    future.add_done_callback(answered)


def accept(state: State, settings: Any) -> None:
    """Put settings into force; those given at initialization stay where these say nothing."""
    if not isinstance(settings, dict):
        return
    state.editor_settings = {**state.editor_settings, **{k: v for k, v in settings.items() if v is not None}}
    state.forget_settings()
    state.documents.touch()
    state.server.refresher.soon(0.0)


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
        state.server.ask(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(wanted))
