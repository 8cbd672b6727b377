"""A kernel file with functions of libdevice, or products of bfloat16, where its user sets TRITON_INTERPRET=1."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn
from torch.export import export

from kernel_lsp import why_eager
from kernel_lsp.synthesis import synthesize
from tests.synthesis import interpreted
from tests.synthesis.printing.power import Power, Square, example

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
if sys.argv[2] == "repaired":
    from kernel_lsp.validation import interpreter
    interpreter.repair()
from tests.synthesis.printing import power

kernel, x = getattr(__import__("made_triton"), sys.argv[3] + "Triton")(), power.example()
with torch.no_grad():
    torch.testing.assert_close(kernel(x), getattr(power, sys.argv[3])()(x))
    print(kernel.why_not(x))
"""


def said(folder: Path, how: str, kind: type[nn.Module]) -> str:
    """What ``why_not`` says in a process with the interpreter; the results there were right."""
    name = kind.__name__
    found = synthesize(kind(), export(kind(), (example(),)), class_name=name, import_from=kind.__module__)
    (folder / "made_triton.py").write_text(why_eager.added(found[0].source, name))
    return interpreted.printed(PROGRAM, str(folder), how, name).strip()


@pytest.mark.parametrize(
    ("kind", "why"), [(Power, "has no libdevice"), (Square, "computes with the bits of bfloat16 and float8")]
)
def test_under_the_interpreter_alone_it_runs_eagerly_and_says_so(
    tmp_path: Path, kind: type[nn.Module], why: str
) -> None:
    assert said(tmp_path, "as it is", kind) == (
        f"expected tensors on a GPU, since TRITON_INTERPRET=1 {why}, but device.type is cpu"
    )


@pytest.mark.parametrize("kind", [Power, pytest.param(Square, marks=pytest.mark.slow)])
def test_where_the_interpreter_is_repaired_the_kernel_runs(tmp_path: Path, kind: type[nn.Module]) -> None:
    assert said(tmp_path, "repaired", kind) == "None"
