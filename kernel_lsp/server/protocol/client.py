"""What the client on the other end can do, read once from its capabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from lsprotocol import types
from pygls.capabilities import get_capability

from kernel_lsp.analysis.text import Encoding


@dataclass(frozen=True)
class Client:
    """Capabilities as plain flags; the defaults are those of a client that said nothing."""

    encoding: Encoding = "utf-16"
    progress: bool = False
    pull_diagnostics: bool = False  # and then nothing is pushed, or every diagnostic would show twice
    refresh_lenses: bool = False
    refresh_hints: bool = False
    configuration: bool = False
    register_configuration: bool = False
    register_watching: bool = False
    show_document: bool = False
    choices: bool = False  # window/showMessageRequest with actions
    action_literals: bool = False
    disabled_actions: bool = False
    document_changes: bool = False
    markdown: bool = True
    process_id: int | None = None


def read_client(params: types.InitializeParams, encoding: str) -> Client:
    """The flags of the client that sent ``params``; ``encoding`` is the position encoding agreed on."""
    capabilities = params.capabilities

    def has(name: str) -> bool:
        return bool(get_capability(capabilities, name))

    formats: Any = get_capability(capabilities, "text_document.hover.content_format") or []
    return Client(
        encoding=cast(Encoding, encoding),
        progress=has("window.work_done_progress"),
        pull_diagnostics=has("text_document.diagnostic") and has("workspace.diagnostics.refresh_support"),
        refresh_lenses=has("workspace.code_lens.refresh_support"),
        refresh_hints=has("workspace.inlay_hint.refresh_support"),
        configuration=has("workspace.configuration"),
        register_configuration=has("workspace.did_change_configuration.dynamic_registration"),
        register_watching=has("workspace.did_change_watched_files.dynamic_registration"),
        show_document=has("window.show_document.support"),
        choices=has("window.show_message.message_action_item"),
        action_literals=has("text_document.code_action.code_action_literal_support"),
        disabled_actions=has("text_document.code_action.disabled_support"),
        document_changes=has("workspace.workspace_edit.document_changes"),
        markdown=not formats or types.MarkupKind.Markdown in formats,
        process_id=params.process_id,
    )
