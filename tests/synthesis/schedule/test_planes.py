"""Products of float16 planes: all ways to split operands and to go through the sum compute the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from tests.synthesis.cases import CASES
from tests.synthesis.passes.test_products import Product


@pytest.mark.parametrize(
    ("case", "variant"),
    [
        ("planes_linear", "begun again every 64"),
        ("planes_linear", "begun again every 32"),
        ("planes_bmm", "begun again every 64"),
        ("planes_rough", "begun again every 32"),
        ("planes_huge", "begun again every 64"),
        ("thin_swish", "; 128 x 64 x 64 tiles"),
        ("thin_swish", "; 64 x 128 x 32 tiles"),
        ("thin_mm_columns", "; 64 x 16 x 128 tiles"),
        ("thin_both", "; 64 x 32 x 128 tiles"),
    ],
)
def test_every_schedule_computes_the_same(case: str, variant: str, interpreter: Any, tmp_path: Path) -> None:
    interpreter.stdin.write(json.dumps({"case": case, "folder": str(tmp_path), "variant": variant}) + "\n")
    interpreter.stdin.flush()
    answer = json.loads(interpreter.stdout.readline())
    assert "problem" not in answer, answer["trace"]
    assert all(answer["inside"])
    assert max(answer["errors"]) <= CASES[case].tolerance, answer["errors"]


def test_a_sum_that_begins_again_in_each_step_is_tried_later() -> None:
    module = Product()
    exported = capture(module, (torch.empty(1024, 8192), torch.empty(8192, 8192)))
    found = synthesize(module, exported, class_name="Product", import_from="torch.nn", gpu="NVIDIA H200")
    ways = list(dict.fromkeys(one.arithmetic for one in found))
    again = [f"float16 planes, sums begun again every {elements} elements" for elements in (64, 32)]
    assert ways == ["float16 planes", *again, "float16 halves", "tf32x3", "bf16x6"]
