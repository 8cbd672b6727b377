"""What the server holds of a long file at rest, and what it imports for it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.analysis import Source
from kernel_lsp.server.model.documents import Documents
from tests.server.lsp_client import Client

#: The server, at rest sooner than an editor would find it; told by a signal, it writes what it has imported to a file.
SERVER = """\
import json, os, signal, sys
from pathlib import Path
from kernel_lsp.server import main
from kernel_lsp.server.control import language_server
from kernel_lsp.server.session import refresh
language_server.WARM_SECONDS, refresh.REST_SECONDS = 0.2, 0.7
def tell(*_):
    Path(sys.argv[1] + ".new").write_text(json.dumps(sorted(sys.modules)))
    os.replace(sys.argv[1] + ".new", sys.argv[1])
signal.signal(signal.SIGUSR1, tell)
sys.exit(main([]))
"""
BARE = """\
from pygls.lsp.server import LanguageServer
from lsprotocol import types
server = LanguageServer("bare", "1")
@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def opened(params): pass
@server.feature(types.TEXT_DOCUMENT_CODE_LENS)
def lens(params): return []
server.start_io()
"""
CLASS = '''class Net{i}(nn.Module):
    """Number {i} of many."""

    def __init__(self, dim: int = {i} + 8):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x, residual=None):
        hidden = torch.sin(x) * 2 + 1
        for step in range(3):
            hidden = hidden + torch.cos(x) * step
        if residual is not None:
            hidden = hidden + residual
        return torch.relu(hidden) * self.weight


'''
CLASSES = 480
#: times what a bare pygls server takes. The goal of benchmarks/editor_latency.py is 1.3; a syntax tree that is kept makes it 1.5.
MOST = 1.35
#: What belongs to the worker, or to a job, or is rarely needed.
NOT_AT_REST = (
    r"(torch|triton|numpy|transformers|rich|huggingface_hub|psutil)(\..*)?|kernel_lsp\.generators(\..*)?"
    r"|kernel_lsp\.jobs\.(pipelines|run|generate|validate|restore|explain|several_envelopes)|kernel_lsp\.analysis\.example_\w+"
    r"|kernel_lsp\.(synthesis|validation|envelope|worker|report_page|hub|knowledge)(\..*)?"
)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    path = tmp_path / "many.py"
    path.write_text("import torch\nfrom torch import nn\n\n\n" + "".join(CLASS.format(i=i) for i in range(CLASSES)))
    return path


def resident(client: Client) -> int:
    """KiB of the server's process."""
    assert client._server is not None
    status = Path(f"/proc/{client._server.pid}/status").read_text()
    found = re.search(r"VmRSS:\s*(\d+) kB", status)
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_long_file_takes_little_memory_at_rest(client: Client, many: Path, tmp_path: Path) -> None:
    bare, modules = Client(), tmp_path / "modules.json"
    await bare.start(tmp_path, command=[sys.executable, "-c", BARE])
    assert await bare.lenses(bare.open(many)) == []
    least = resident(bare)
    await bare.end()

    await client.start(tmp_path, command=[sys.executable, "-c", SERVER, str(modules)])
    assert len(await client.lenses(client.open(many))) == CLASSES

    async def started() -> Any:
        return (await client.debug())["workerPids"]

    await client.until(started, 30)
    await asyncio.sleep(1.2)
    assert resident(client) < MOST * least, f"{resident(client)} KiB, bare pygls {least} KiB"
    assert client._server is not None
    os.kill(client._server.pid, signal.SIGUSR1)
    await client.until(modules.exists)
    imported = json.loads(modules.read_text())
    assert "kernel_lsp.jobs.queue" in imported
    assert [name for name in imported if re.fullmatch(NOT_AT_REST, name)] == []


def test_no_tree_is_kept_of_a_file_that_is_only_looked_at(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = Documents()
    item: Any = type("Item", (), {"uri": many.as_uri(), "version": 1, "text": many.read_text()})
    document = documents.open(item)
    assert len(documents.classes(document)) == CLASSES
    assert document.source._tree is None
    monkeypatch.setattr(Source, "tree", property(lambda _: pytest.fail("parsed again")))
    assert not document.unparsed
    document.source.replace(0, 0, "import math\n")  # looked at by itself
    documents.touch()
    assert len(documents.classes(document)) == CLASSES and not document.unparsed
    document.forget()
    documents.touch()
    assert len(documents.classes(document)) == CLASSES and not document.unparsed
