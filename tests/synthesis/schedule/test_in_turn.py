"""What seldom has anything to do has few programs, which compute tile after tile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sympy
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.schedule import contract
from kernel_lsp.synthesis.schedule.schedules import Product
from tests.synthesis.cases import CASES


@pytest.mark.parametrize(
    "case",
    [
        "float16_several_huge",  # rows and columns in several blocks
        "float16_phases_huge",  # phases
        "planes_bmm_huge",  # a batch
        pytest.param("folded_float16_huge", marks=pytest.mark.slow),
        pytest.param("in_tiles_float16_huge", marks=pytest.mark.slow),
    ],
)
def test_one_program_computes_all_tiles(case: str, interpreter: Any, tmp_path: Path) -> None:
    interpreter.stdin.write(json.dumps({"case": case, "folder": str(tmp_path), "programs": 1}) + "\n")
    interpreter.stdin.flush()
    answer = json.loads(interpreter.stdout.readline())
    assert "problem" not in answer, answer["trace"]
    assert all(answer["inside"]) and "PROGRAMS=1" in answer["source"]
    assert max(answer["errors"]) <= CASES[case].tolerance, answer["errors"]


def test_a_launch_has_no_more_programs_than_tiles() -> None:
    module, x = nn.Linear(4096, 4096), torch.empty(512, 4096, device="meta")
    exported = capture(module.eval().to("meta"), (x,))
    found = synthesize(module, exported, class_name="Linear", import_from="torch.nn", gpu="H100")
    text = next(one.source for one in found if "exact_kernel" in one.source)
    assert "min(triton.cdiv(input.shape[0], 64) * triton.cdiv(4096, 64), 1024)" in text
    assert "for tile in range(tl.program_id(0), row_blocks * col_blocks, PROGRAMS):" in text


def test_few_tiles_have_a_program_each() -> None:
    tile = Product(64, 64, 32, 4, 3, programs=1024)
    rows, few, many = (sympy.Integer(size) for size in (64, 512, 65537))
    assert contract._programs(tile, rows, few, sympy.Integer(2)) == 0
    assert contract._programs(tile, rows, many, sympy.Integer(1)) == 1024
    assert contract._programs(tile, sympy.Symbol("m"), few, sympy.Integer(1)) == 1024
