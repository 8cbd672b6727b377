from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import nursery
from tests.worker.worker_client import Client


@pytest.fixture(scope="session")
def worker() -> Iterator[Client]:
    """For all tests whose subject is not the worker's own start."""
    client = Client(main=nursery.WORKER_MAIN)
    yield client
    client.close()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """``write(text, name="module.py")`` → its path."""

    def put(text: str, name: str = "module.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    return put


class TimedOnTheHost:
    """The process of ``timed_on_the_host.py``, and how to ask it. One that a test left in the middle of its work is not asked again."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, task: str, given: dict[str, Any], fast: str, folder: Path) -> dict[str, Any]:
        """The answer to ``validate``, ``tune`` or ``compare``; ``folder`` is for the files of the request."""
        if self.process is None:
            program = [sys.executable, str(Path(__file__).with_name("timed_on_the_host.py"))]
            self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None and self.process.stdout is not None
        files = {name: folder / f"{name}.json" for name in ("request", "answer", "log")}
        files["request"].write_text(json.dumps(given))
        try:
            asked = {"task": task, "fast": fast} | {name: str(file) for name, file in files.items()}
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            status = self.process.stdout.readline()
        except BaseException:
            self.close()
            raise
        assert status == "0\n", files["log"].read_text()[-3000:]
        answer: dict[str, Any] = json.loads(files["answer"].read_text())
        return answer

    def close(self) -> None:
        """End the process, and with it what it has forked."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@pytest.fixture(scope="session")
def on_the_host() -> Iterator[TimedOnTheHost]:
    asking = TimedOnTheHost()
    yield asking
    asking.close()
