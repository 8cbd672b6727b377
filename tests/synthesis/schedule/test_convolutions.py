"""Convolutions in half precision: all ways to go through places and channels compute the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.synthesis.cases import CASES


@pytest.mark.parametrize(
    ("case", "variant"),
    [
        ("float16_few_conv3d", "float16 convolutions; 64 x 16 x 16 tiles"),  # line by line; by default one sum
        ("float16_few_conv3d", "convolutions of float16 planes"),
        ("float16_two", "one sum over all places"),  # by default place by place
        (
            "planes_conv3d",
            "64 x 16 x 32 tiles",
        ),  # the three products around the lines; by default together in each step
        ("torch_channels_last", "convolutions left to torch, channels last"),
        ("float16_from_colours", "float16 convolutions; those of few channels of float16 planes"),
        ("float16_few_transposed", "; 64 x 16 x 16 tiles"),  # each phase by itself; by default phases in pairs
        ("float16_grouped_transposed", "; 64 x 16 x 16 tiles"),
        ("float16_transposed", "; 64 x 16 x 16 tiles"),
        ("float16_phases_1d", "; 64 x 64 x 16 tiles"),  # several tiles of rows and columns, the last ones not full
        ("float16_phases_1d", "one sum over all places"),
        ("float16_phases_along_one", "; 64 x 16 x 32 tiles"),
    ],
)
def test_every_schedule_computes_the_same(case: str, variant: str, interpreter: Any, tmp_path: Path) -> None:
    interpreter.stdin.write(json.dumps({"case": case, "folder": str(tmp_path), "variant": variant}) + "\n")
    interpreter.stdin.flush()
    answer = json.loads(interpreter.stdout.readline())
    assert "problem" not in answer, answer["trace"]
    assert all(answer["inside"])
    assert max(answer["errors"]) <= (
        2e-5 if variant.startswith("convolutions of float16 planes") else CASES[case].tolerance
    ), answer["errors"]
