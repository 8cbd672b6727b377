from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def written_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``written.of``, shared by the processes of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "written"
    folder.mkdir(exist_ok=True)
    return folder
