"""Windows over large channels: a program has results of one channel, and loads what belongs to that once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from tests.synthesis.cases import CASES


@pytest.mark.parametrize(
    ("case", "variant"),
    [
        pytest.param("depthwise_large", "", marks=pytest.mark.slow),  # by default: 25 elements
        pytest.param("depthwise_large", "blocks of 256 of a channel", marks=pytest.mark.slow),
        pytest.param("max_pool_large", "blocks of 256 of a channel", marks=pytest.mark.slow),
        ("avg_pool_large_depths", "blocks of 1024 of a channel"),
    ],
)
def test_every_schedule_computes_the_same(case: str, variant: str, interpreter: Any, tmp_path: Path) -> None:
    interpreter.stdin.write(json.dumps({"case": case, "folder": str(tmp_path), "variant": variant}) + "\n")
    interpreter.stdin.flush()
    answer = json.loads(interpreter.stdout.readline())
    assert "problem" not in answer, answer["trace"]
    assert all(answer["inside"]) and "outer = tl.program_id(0) // " in answer["source"]
    assert max(answer["errors"]) <= CASES[case].tolerance, answer["errors"]


def test_a_weight_is_loaded_once_for_a_program() -> None:
    module, x = nn.Conv2d(96, 96, 5, padding=2, groups=96), torch.empty(4, 96, 64, 64, device="meta")
    exported = capture(module.eval().to("meta"), (x,))
    first, *others = synthesize(module, exported, class_name="Conv2d", import_from="torch.nn", gpu="H100")
    assert "tl.load(weight_ptr + (outer % 96) * 25 + k)" in first.source
    assert all(
        "of a channel" in one.variant or one.variant == "blocks of 512, 4 warps"
        for one in others
        if "blocks" in one.variant
    )


def test_windows_that_lie_apart_have_one_result_a_thread() -> None:
    module, x = nn.MaxPool2d(3, 2), torch.empty(4, 96, 64, 64, device="meta")
    found = synthesize(module, capture(module.eval(), (x,)), class_name="MaxPool2d", import_from="torch.nn", gpu="H100")
    assert "BLOCK=256, num_warps=8)" in found[0].source


@pytest.mark.parametrize("size", [20, 46])
def test_small_channels_and_those_that_blocks_fill_badly_are_taken_together(size: int) -> None:
    module, x = nn.Conv2d(96, 96, 5, padding=2, groups=96), torch.empty(4, 96, size, size, device="meta")
    exported = capture(module.eval().to("meta"), (x,))
    found = synthesize(module, exported, class_name="Conv2d", import_from="torch.nn", gpu="H100")
    assert not any("of a channel" in one.variant for one in found)
