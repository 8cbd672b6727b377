"""Edits go where the editor made them, and ranges hold the text they name, in every position encoding.

Through the real didChange handling: the protocol object of a real server, with messages as clients send them.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.server.control.language_server import Server
from kernel_lsp.server.features.diagnostics import diagnostics
from kernel_lsp.server.features.lens import lenses

URI = "file:///nowhere/net.py"
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
START = "\ufefffrom torch import nn\r\n# 𝄞 \f \u2028 \x85 é\rclass Größe(nn.Module): pass  # 😀\n\n\nif 1:\n\tx = '𝄞'; \n\tclass B𝔹(nn.Linear):\n\t\tdef forward(self): pass\n"
PIECES = st.one_of(
    st.text(alphabet=st.sampled_from("ab \r\n\f\v\x1c\x85\u2028é中𝄞😀\ufeff\t#"), max_size=8),
    st.sampled_from(["\r\n", "\n", "\r", "class C(nn.Module): pass\n", "# 😀 ", "\n\n"]),
)
EDITS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 12), PIECES), min_size=1, max_size=8)


class Wire:
    """Takes what the server writes."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.messages.append(json.loads(data.split(b"\r\n\r\n", 1)[1]))


def deliver(server: Server, method: str, params: Any, number: int | None = None) -> None:
    """A message as it comes off the wire."""
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
    protocol = server.protocol
    protocol.handle_message(json.loads(json.dumps(message), object_hook=protocol.structure_message))


def line_starts(text: str) -> list[int]:
    return [0, *(m.end() for m in re.finditer("\r\n|\n|\r", text))]


def client_position(text: str, offset: int, encoding: str) -> dict[str, int]:
    r"""A position as an editor computes it; between \r and \n there is none, so it stands before both."""
    if text[offset - 1 : offset + 1] == "\r\n":
        offset -= 1
    starts = line_starts(text)
    line = max(i for i, start in enumerate(starts) if start <= offset)
    codec, width = CODECS[encoding]
    return {"line": line, "character": len(text[starts[line] : offset].encode(codec)) // width}


def text_at(text: str, area: dict[str, Any], encoding: str) -> str:
    """What an editor shows in a range."""
    codec, width = CODECS[encoding]
    starts = line_starts(text)
    offsets = []
    for place in (area["start"], area["end"]):
        line = text[starts[place["line"]] :].encode(codec)
        offsets.append(starts[place["line"]] + len(line[: place["character"] * width].decode(codec)))
    return text[offsets[0] : offsets[1]]


@pytest.mark.parametrize("encoding", list(CODECS))
@settings(max_examples=60, deadline=None)
@given(edits=EDITS, batch=st.booleans())
def test_random_edits(encoding: str, edits: list[tuple[int, int, str]], batch: bool) -> None:
    asyncio.run(_random_edits(encoding, edits, batch))


async def _random_edits(encoding: str, edits: list[tuple[int, int, str]], batch: bool) -> None:
    server = Server()
    wire = Wire()
    server.protocol.set_writer(wire)  # type: ignore[arg-type]
    general = {"positionEncodings": [encoding]}
    deliver(server, "initialize", {"processId": None, "rootUri": None, "capabilities": {"general": general}}, 1)
    assert wire.messages[0]["result"]["capabilities"]["positionEncoding"] == encoding
    item = {"uri": URI, "languageId": "python", "version": 1, "text": START}
    deliver(server, "textDocument/didOpen", {"textDocument": item})
    model, changes, version = START, [], 1
    for at, length, new in edits:
        at = min(at, len(model))
        end = min(at + length, len(model))
        area = {"start": client_position(model, at, encoding), "end": client_position(model, end, encoding)}
        # What the editor means: positions between \r and \n do not exist.
        at, end = (o - 1 if model[o - 1 : o + 1] == "\r\n" else o for o in (at, end))
        model = model[:at] + new + model[end:]
        changes.append({"range": area, "text": new})
        if not batch:
            version += 1
            send(server, version, changes)
            changes = []
            check(server, model, encoding)
    if changes:
        send(server, version + 1, changes)
    check(server, model, encoding)


def send(server: Server, version: int, changes: list[Any]) -> None:
    document = {"uri": URI, "version": version}
    deliver(server, "textDocument/didChange", {"textDocument": document, "contentChanges": changes})


def check(server: Server, model: str, encoding: str) -> None:
    document = server.session.documents.get(URI)
    assert document is not None
    assert document.text == model
    for c, lens in zip(server.session.documents.classes(document), lenses(server.session, document), strict=True):
        assert text_at(model, lens["range"], encoding) == c.name.rpartition(".")[2]
    for diagnostic in diagnostics(server.session, document):
        assert text_at(model, diagnostic["range"], encoding).isidentifier()


def test_what_pygls_itself_gets_wrong() -> None:
    """Why the text is our own: if this fails, pygls has mended it."""
    from lsprotocol import types
    from pygls.workspace import TextDocument

    document = TextDocument("file:///a", "a\f\nb\nc\n")
    area = types.Range(types.Position(1, 0), types.Position(1, 1))
    document.apply_change(types.TextDocumentContentChangePartial(area, "B"))
    assert document.source != "a\f\nB\nc\n"
