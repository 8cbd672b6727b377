"""A client that drives the real server over its real pipes."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient, client_capabilities
from pytest_lsp.client import register_lsp_features

from kernel_lsp import analysis, claims, kernel_file, schema
from kernel_lsp.store import database, environments, validations
from kernel_lsp.store.validations import Validation
from kernel_lsp.worker import environment as worker_environment
from tests import nursery

SERVER = [*nursery.CLI, "serve"]

MODULE = """\
import torch
from torch import nn


class Double(nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.randn(8, 32)]
"""


def _converter() -> Any:
    """lsprotocol takes a code action that carries a command for a bare command; read it as what it is."""
    converter = default_converter()

    def hook(data: Any, _: Any) -> Any:
        bare = isinstance(data.get("command"), str)
        return converter.structure(data, types.Command if bare else types.CodeAction)

    converter.register_structure_hook(types.Command | types.CodeAction, hook)
    return converter


class Client(LanguageClient):
    """pytest-lsp's client with shorthands. ``requests`` holds the methods the server asked for, in order."""

    def __init__(self) -> None:
        super().__init__(converter_factory=_converter)
        self.requests: list[str] = []
        self.choice: str | None = None  # what is chosen when the server asks
        register_lsp_features(self)
        for method in (types.CLIENT_REGISTER_CAPABILITY, types.WORKSPACE_INLAY_HINT_REFRESH):
            self._answer(method)
        self._answer(types.WORKSPACE_CODE_LENS_REFRESH)

        @self.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
        def ask(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
            self.requests.append(types.WINDOW_SHOW_MESSAGE_REQUEST)
            return next((a for a in params.actions or [] if a.title == self.choice), None)

    def _answer(self, method: str) -> None:
        @self.feature(method)
        def answer(params: Any) -> None:
            self.requests.append(method)

    async def start(
        self,
        folder: Path,
        profile: str | types.ClientCapabilities = "visual-studio-code",
        options: Any = None,
        command: list[str] = SERVER,
    ) -> types.InitializeResult:
        await self.start_io(*command)
        capabilities = client_capabilities(profile) if isinstance(profile, str) else profile
        params = types.InitializeParams(
            capabilities=capabilities,
            root_uri=folder.as_uri(),
            workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name)],
            initialization_options=options,
        )
        return await self.initialize_session(params)

    def open(self, path: Path, text: str | None = None) -> str:
        uri = path.as_uri()
        if text is None:
            text = path.read_bytes().decode()
        item = types.TextDocumentItem(uri, "python", 1, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, version: int, text: str, area: types.Range | None = None) -> None:
        """Replace a range, or everything."""
        change: Any = types.TextDocumentContentChangeWholeDocument(text)
        if area is not None:
            change = types.TextDocumentContentChangePartial(area, text)
        document = types.VersionedTextDocumentIdentifier(version, uri)
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def save(self, uri: str) -> None:
        self.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    async def lenses(self, uri: str) -> list[str]:
        found = await self.text_document_code_lens_async(types.CodeLensParams(types.TextDocumentIdentifier(uri)))
        return [lens.command.title for lens in found or [] if lens.command]

    async def actions(self, uri: str, line: int, column: int = 0, only: list[str] | None = None) -> dict[str, Any]:
        """The code actions at a place, by title."""
        place = types.Position(line, column)
        context = types.CodeActionContext(diagnostics=[], only=only)  # type: ignore[arg-type]
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), types.Range(place, place), context)
        return {a.title: a for a in await self.text_document_code_action_async(params) or []}

    async def hover(self, uri: str, line: int, column: int) -> str:
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, column))
        found = await self.text_document_hover_async(params)
        return found.contents.value if found is not None else ""  # type: ignore[union-attr]

    async def execute(self, command: str, *arguments: Any) -> Any:
        params = types.ExecuteCommandParams(command, arguments=list(arguments))
        return await self.workspace_execute_command_async(params)

    async def debug(self) -> dict[str, Any]:
        found = await self.execute("kernelLsp.debugInformation")
        return found if isinstance(found, dict) else found._asdict()

    def codes(self, uri: str) -> list[str]:
        return [str(d.code) for d in self.diagnostics.get(uri, [])]

    async def until(self, holds: Callable[[], Any], seconds: float = 10.0) -> Any:
        """Wait until something holds, and return it."""
        deadline = time.monotonic() + seconds
        while True:
            found = holds()
            if isinstance(found, Awaitable):
                found = await found
            if found:
                return found
            if time.monotonic() > deadline:
                seen = {uri: [d.message for d in ds] for uri, ds in self.diagnostics.items()}
                logs = [m.message for m in self.log_messages]
                pytest.fail(f"not within {seconds} s; diagnostics: {seen}; log: {logs}; toasts: {self.messages}")
            await asyncio.sleep(0.02)

    async def end(self) -> None:
        if self._server is not None and self._server.returncode is None:
            try:
                await asyncio.wait_for(self.shutdown_session(), 5)
            finally:
                if self._server.returncode is None:
                    self._server.kill()
        await self.stop()


VERDICT = {
    "status": "ok",
    "mode": "gpu",
    "error": 3.0e-7,
    "eager_error": 2.5e-7,
    "precision": "fp32",
    "checks": [{"name": "seeds", "passed": True, "detail": "5 seeds"}],
}
MEASUREMENT = {
    "measured_at": "2026-01-01T00:00:00Z",
    "device": {"name": "Test GPU", "kind": "cuda", "torch": "2.11.0", "triton": "3.6.0"},
    "shapes": [
        {
            "inputs": [{"name": "x", "shape": [8, 32], "dtype": "float32"}],
            "eager": {"median": 23.1, "low": 23.0, "high": 24.0, "runs": 50},
            "compiled": {"median": 12.4, "low": 12.0, "high": 13.0, "runs": 50},
            "kernel": {"median": 10.0, "low": 9.9, "high": 10.1, "runs": 50},
            "roofline_share": 0.91,
        }
    ],
}
BODY = '"""Double."""\nfrom double import Double\n\n\nclass DoubleTriton(Double):\n    pass\n'


def write_kernel(
    module: Path, verdict: Any = VERDICT, measurement: Any = MEASUREMENT, body: str = BODY, validated: bool = True
) -> Path:
    """A kernel file as a generation leaves it. Not ``validated``: as it comes from elsewhere, with nothing in the store."""
    path = kernel_file.find_kernel(module, "Double")
    path.parent.mkdir(exist_ok=True)
    fingerprint = analysis.fingerprint(module.read_text(), module, "Double")
    device = schema.Device("Test GPU", "cuda", torch="2.11.0", triton="3.6.0")
    records = (schema.from_json(schema.Verdict, verdict), schema.from_json(schema.Measurement, measurement))
    header = {
        "source": "double.py::Double",
        "class": "Double",
        "generator": "synthesizer",
        "fingerprint": fingerprint,
    }
    if verdict is not None:
        header |= claims.lines(*records, device, "0.1.0", "2026-01-01T00:00:00Z")
        if validated:
            validate_here(fingerprint, body, Validation(*records, device, "2026-01-01T00:00:00+00:00"))
    path.write_text(kernel_file.assemble(header, body))
    return path


def validate_here(fingerprint: str, body: str, found: Validation, **other: str) -> None:
    """Keep a validation as a job does. ``other``: parts of the key that are not those of this machine."""
    store = database.default_path()
    devices = worker_environment.cuda_devices() or [worker_environment.interpreter_device()]
    environments.keep_devices([sys.executable], [schema.to_json(device) for device in devices], store)
    key = validations.key_for(devices[0], fingerprint, kernel_file.body_hash(body), "trust")
    assert key is not None
    validations.keep(dataclasses.replace(key, **other), found, store)
