"""A kernel file with functions of libdevice where its user sets TRITON_INTERPRET=1: Triton's interpreter has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from torch.export import export

from kernel_lsp import why_eager
from kernel_lsp.synthesis import synthesize
from tests.synthesis.printing.power import Power, example

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
if sys.argv[2] == "repaired":
    from kernel_lsp.validation import interpreter
    interpreter.repair()
from power_triton import PowerTriton
from tests.synthesis.printing.power import Power, example

with torch.no_grad():
    torch.testing.assert_close(PowerTriton()(example()), Power()(example()))
    print(PowerTriton().why_not(example()))
"""


def said(folder: Path, how: str) -> str:
    """What ``why_not`` says in a process with the interpreter; the results there were right."""
    module, x = Power(), example()
    made = synthesize(module, export(module, (x,)), class_name="Power", import_from="tests.synthesis.printing.power")
    (folder / "power_triton.py").write_text(why_eager.added(made[0].source, "Power"))
    environment = dict(os.environ, TRITON_INTERPRET="1", PYTHONPATH=str(ROOT))
    command = [sys.executable, "-c", PROGRAM, str(folder), how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_under_the_interpreter_alone_it_runs_eagerly_and_says_so(tmp_path: Path) -> None:
    assert said(tmp_path, "as it is") == (
        "expected tensors on a GPU, since TRITON_INTERPRET=1 has no libdevice, but device.type is cpu"
    )


def test_where_the_interpreter_has_these_functions_the_kernel_runs(tmp_path: Path) -> None:
    assert said(tmp_path, "repaired") == "None"
