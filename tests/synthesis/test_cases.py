"""Every case is written in Triton, right at several sizes, inside its own envelope, and formatted as read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.synthesis.cases import CASES


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Any]:
    """A process with Triton's interpreter, kept for all cases of this module."""
    script = Path(__file__).with_name("interpret.py")
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)


@pytest.mark.parametrize("name", list(CASES))
def test_case(name: str, interpreter: Any, tmp_path: Path, written_texts: Path) -> None:
    case = CASES[name]
    interpreter.stdin.write(json.dumps({"case": name, "folder": str(tmp_path), "written": str(written_texts)}) + "\n")
    interpreter.stdin.flush()
    answer = json.loads(interpreter.stdout.readline())
    assert "problem" not in answer, answer["trace"]
    assert all(answer["inside"]), "the kernel's own envelope refuses the sizes it was made for"
    assert max(answer["errors"]) <= case.tolerance, answer["errors"]
    lowered, of = (int(word) for word in answer["note"].split(" ops")[0].split(" of "))
    assert of - lowered == case.kept, answer["note"]
    if case.kernels is not None:
        assert answer["kernels"] == case.kernels, answer["source"]
