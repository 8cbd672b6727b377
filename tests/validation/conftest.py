from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import nursery
from tests.worker.worker_client import Client


@pytest.fixture(scope="session")
def worker() -> Iterator[Client]:
    client = Client(main=nursery.WORKER_MAIN)
    yield client
    client.close()


@pytest.fixture
def validate(worker: Client, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """``validate(module source, class, kernel source)`` → the result of the worker's validate, under the interpreter."""

    def run(module: str, class_name: str, kernel: str, **params: Any) -> dict[str, Any]:
        path = tmp_path / "module.py"
        path.write_text("import torch\nfrom torch import nn\n" + module)
        kernel = _file_of(class_name, kernel)
        given = {"device": "interpreter", "seconds": 60, "measure": "none", **params}
        return worker.call("validate", path=str(path), class_name=class_name, source=kernel, **given)

    return run


@pytest.fixture
def compare(worker: Client, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """``compare(module source, class, kernel source, source of the kernel before)`` → the worker's SpeedComparison."""

    def run(module: str, class_name: str, *kernels: str, device: str = "cuda") -> dict[str, Any]:
        path = tmp_path / "module.py"
        path.write_text("import torch\nfrom torch import nn\n" + module)
        sources = [_file_of(class_name, kernel) for kernel in kernels]
        given = {"device": device, "seconds": 60, "sources": sources}
        return worker.call("compare", path=str(path), class_name=class_name, **given)["comparison"]

    return run


def _file_of(class_name: str, kernel: str) -> str:
    return f"import torch, triton, triton.language as tl\nfrom module import {class_name}\n" + kernel
