"""Tests marked ``gpu`` are skipped, with the reason, where there is no CUDA GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

GPU = Path("/dev/nvidiactl").exists()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if GPU:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no CUDA GPU here"))
