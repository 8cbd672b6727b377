"""The same cases as test_cases.py, compiled and run on a CUDA GPU."""

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

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> Iterator[Any]:
    """A process that runs the cases on the GPU."""
    script = Path(__file__).with_name("interpret.py")
    environment = dict(os.environ, KERNEL_LSP_TEST_DEVICE="cuda")
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)


#: what torch runs on a CPU alone
_ON_A_CPU = {"float8_arithmetic"}


@pytest.mark.parametrize("name", [name for name in CASES if name not in _ON_A_CPU])
def test_case_on_the_gpu(name: str, device: Any, tmp_path: Path) -> None:
    device.stdin.write(json.dumps({"case": name, "folder": str(tmp_path)}) + "\n")
    device.stdin.flush()
    answer = json.loads(device.stdout.readline())
    assert "problem" not in answer, answer["trace"]
    # Some versions of torch.export fix more sizes than others; the example's own are always inside.
    assert answer["inside"][0], "the kernel's own envelope refuses the sizes it was made for"
    # Sums of thousands of terms are added in another order than eager's, and tensor cores round otherwise.
    assert max(answer["errors"]) <= max(CASES[name].tolerance, 1e-4), answer["errors"]
