"""What the compile report of a generated file has where no GPU is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: in a process of its own, since a report replaces Triton's driver
REPORT = """
import json, sys
sys.path.insert(0, "tests/synthesis")
import torch
import cases
from kernel_lsp.validation import compilation

text, path, folder = open("tests/synthesis/golden/lstm.txt").read(), *sys.argv[1:]
open(path, "w").write(text)
case = cases.CASES["lstm"]

def example():
    return (lambda kind: kind(*case.init).eval()), tuple(case.inputs(0)), {}

print(json.dumps(compilation.report(path, "LstmTriton", text, [example], folder)))
"""


@pytest.mark.slow
def test_kernels_that_call_libdevice_are_compiled(tmp_path: Path) -> None:
    command = [sys.executable, "-c", REPORT, str(tmp_path / "lstm_triton.py"), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["error"] is None
    assert [kernel["name"] for kernel in report["kernels"]] == ["project_inputs_kernel", "lstm_kernel"]
