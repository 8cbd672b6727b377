"""Fixtures: a worker process, files on disk, and a process that runs a slice beside the module it was cut from."""

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
    client = Client(main=nursery.WORKER_MAIN)
    yield client
    client.close()


@pytest.fixture(scope="session")
def assert_slice_is_equal() -> Iterator[Callable[..., None]]:
    """``assert_slice_is_equal(path, class name, slice)`` asserts that both are the same, run on the module's inputs; see compare_slice.py.

    ``dynamic``: of each input the dimensions that may be cut short.
    """
    script = Path(__file__).with_name("compare_slice.py")
    process = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(path: str, class_name: str, source: str, dynamic: list[list[int]] | None = None) -> None:
        assert process.stdin is not None and process.stdout is not None
        request = {"path": path, "class_name": class_name, "source": source, "dynamic": dynamic}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        assert "problem" not in answer, answer["problem"]
        assert answer["state"], f"another state_dict:\n{source}"
        assert answer["inputs"], f"other inputs:\n{source}"
        assert answer["equal"], f"other results:\n{source}"

    yield ask
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)


@pytest.fixture
def sliced(worker: Client, assert_slice_is_equal: Callable[..., None], tmp_path: Path) -> Callable[..., str]:
    """``sliced(class name, **files)`` → the slice, after it was found to be the class of the first file.

    File names are keyword arguments: ``a__b`` is a/b.py; a folder of the first file with an ``__init__`` is a package.
    """

    def run(class_name: str, **files: str) -> str:
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
            if name.endswith("___init"):
                path = tmp_path / name.removesuffix("___init").replace("__", "/") / "__init__.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        path = tmp_path / f"{next(iter(files)).replace('__', '/')}.py"
        source: str = worker.call("slice", path=str(path), class_name=class_name)["subject"]["source"]
        assert_slice_is_equal(str(path), class_name, source)
        return source

    return run
