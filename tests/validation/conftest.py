from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.worker_client import Client


@pytest.fixture(scope="session")
def worker() -> Iterator[Client]:
    client = Client()
    yield client
    client.close()


@pytest.fixture
def judge(worker: Client, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """``judge(module source, class, kernel source)`` → the result of the worker's judge, under the interpreter."""

    def run(module: str, class_name: str, kernel: str, **params: Any) -> dict[str, Any]:
        path = tmp_path / "module.py"
        path.write_text("import torch\nfrom torch import nn\n" + module)
        kernel = f"import torch, triton, triton.language as tl\nfrom module import {class_name}\n" + kernel
        given = {"device": "interpreter", "seconds": 60, "measure": "none", **params}
        return worker.call("judge", path=str(path), class_name=class_name, source=kernel, **given)

    return run
