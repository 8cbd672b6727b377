"""Fixtures: a client, and a project with one module class."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.server.lsp_client import MODULE, Client


@pytest.fixture(autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of what was validated, of the test's own; the server inherits its name."""
    path = tmp_path_factory.mktemp("store") / "store.sqlite"
    monkeypatch.setenv("KERNEL_LSP_STORE", str(path))
    return path


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    one = Client()
    yield one
    await one.end()


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A file with one small module class, in a project of its own."""
    (tmp_path / "pyproject.toml").write_text("")
    path = tmp_path / "double.py"
    path.write_text(MODULE)
    return path
