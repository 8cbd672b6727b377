"""The command with a cache of its own and a Hub on loopback: fixtures, as a plugin for the files that need them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp.hub import cache
from tests.hub import hub_server
from tests.hub.hub_server import COMMIT, QUANTISED, TINY, Repository

Done = subprocess.CompletedProcess


@pytest.fixture
def hub():
    with hub_server.serving() as hub:
        hub.repositories[TINY] = Repository(hub_server.transformers_model(), {"license": "llama3.1"})
        hub.repositories[QUANTISED] = Repository(hub_server.gguf_repository())
        yield hub


class Home:
    """An empty cache, and the command that uses it."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING", "TRANSFORMERS_"))}
        self.environment = kept | {
            "HF_HOME": str(folder),
            "HF_ENDPOINT": endpoint,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "COLUMNS": "200",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "kernel_lsp.cli", "models", *arguments]

    def run(self, *arguments: str, **environment: str) -> Done[str]:
        done = subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            env=self.environment | environment,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def json(self, *arguments: str, status: int = 0, **environment: str):
        done = self.run(*arguments, "--json", **environment)
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            # A shell that starts the tests in the background has them ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def files(self, repository: str) -> dict[str, bytes]:
        snapshot = self.repository(repository) / "snapshots" / COMMIT
        return {p.relative_to(snapshot).as_posix(): p.read_bytes() for p in snapshot.rglob("*") if p.is_file()}

    def repository(self, name: str) -> Path:
        return self.folder / "hub" / f"models--{name.replace('/', '--')}"

    def partial(self, name: str) -> int:
        return sum(path.stat().st_size for path in (self.repository(name) / "blobs").glob("*" + cache.PARTIAL))


@pytest.fixture
def home(tmp_path, hub, monkeypatch):
    """This process looks where the command does."""
    home = Home(tmp_path / "home", hub.endpoint)
    monkeypatch.delenv("HF_HUB_CACHE")  # of the whole run: tests/conftest.py
    monkeypatch.setenv("HF_HOME", str(home.folder))
    return home
