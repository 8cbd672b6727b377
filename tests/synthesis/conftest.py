from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Any]:
    """A process with Triton's interpreter, which runs cases: see interpret.py."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("interpret.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)


@pytest.fixture(scope="session")
def written_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``written.of``, shared by the processes of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "written"
    folder.mkdir(exist_ok=True)
    return folder
