"""Tests marked ``gpu`` are skipped, with the reason, where there is no CUDA GPU; no test sees this machine's models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

GPU = Path("/dev/nvidiactl").exists()


@pytest.fixture(scope="session", autouse=True)
def no_models_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is in the user's own cache of models, or in the environment, must not decide a test."""
    names = ("HF_HUB_CACHE", "OPENAI_API_KEY", "KERNEL_LSP_STORE")
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ["HF_HUB_CACHE"] = str(tmp_path_factory.mktemp("hub"))
    os.environ["KERNEL_LSP_STORE"] = ""  # none: a test that wants one names its own
    yield
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if GPU:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no CUDA GPU here"))
