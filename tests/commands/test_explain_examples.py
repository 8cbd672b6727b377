"""``kernel-lsp explain`` of a class with several examples."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import nursery

SCALED = """
import torch


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    yield [torch.randn(8, 4)]
    yield [torch.randn(2, 3, 4, dtype=torch.bfloat16)]
"""


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--example", "2"], 0, "bfloat16"),
        (["--example", "3"], 2, "it gives 2 examples"),
        (["--example", "0"], 2, "no number from 1"),
    ],
)
def test_an_example_is_chosen_by_its_number(tmp_path: Path, arguments: list[str], status: int, says: str) -> None:
    (tmp_path / "scaled.py").write_text(SCALED)
    command = [*nursery.CLI, "explain", "scaled.py::Scaled", "--stage", "graph", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path, check=False)
    assert done.returncode == status, done.stderr
    assert says in done.stdout + done.stderr and "float32" not in done.stdout
