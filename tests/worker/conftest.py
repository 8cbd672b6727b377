from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

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


@pytest.fixture(scope="module")
def own_worker() -> Iterator[Client]:
    """Started by itself: for tests of its processes and of their memory, which those of ``worker`` share with others."""
    client = Client()
    yield client
    client.close()
