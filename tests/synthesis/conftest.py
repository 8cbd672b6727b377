from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.synthesis import running


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Any]:
    """A process with Triton's interpreter, which runs cases: see interpret.py."""
    process = running.start()
    yield process
    running.end(process)


@pytest.fixture(scope="session")
def written_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``written.of``, shared by the processes of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "written"
    folder.mkdir(exist_ok=True)
    return folder
