"""Convolutions in half precision: all ways to go through places and channels compute the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from tests.synthesis.cases import CASES


def slow(*values: str) -> Any:
    """Parameters that make test-slow or make test-cases has: make test has another case with such a schedule."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("case", "variant"),
    [
        ("float16_few_conv3d", "float16 convolutions; 64 x 16 x 16 tiles"),  # line by line; by default one sum
        ("float16_few_conv3d", "convolutions of float16 planes"),
        ("float16_two", "one sum over all places"),  # by default place by place
        ("planes_conv3d", "planes together"),  # with what is fetched ahead; by default without
        ("planes_conv3d", "4 stages, one sum over all places"),  # the three products around the places
        ("torch_channels_last", "convolutions left to torch, channels last"),
        ("half_conv2d_padded", "convolutions left to torch, channels last"),
        slow("torch_channels_last_transposed", "convolutions left to torch, channels last"),
        slow("torch_channels_last_branches", "convolutions left to torch, channels last"),
        ("float16_from_colours", "float16 convolutions; those of few channels of float16 planes"),
        ("float16_few_transposed", "; 64 x 16 x 16 tiles"),  # each phase by itself; by default phases in pairs
        slow("float16_grouped_transposed", "; 64 x 16 x 16 tiles"),
        ("float16_transposed", "; 64 x 16 x 16 tiles"),
        ("float16_phases_1d", "; 64 x 64 x 16 tiles"),  # several tiles of rows and columns, the last ones not full
        slow("float16_phases_1d", "one sum over all places"),
        slow("float16_phases_along_one", "; 64 x 16 x 32 tiles"),
        slow("folded_float16_pairs", "; 64 x 32 x 16 tiles"),
        ("folded_softmax", "16 x 64 x 16 tiles"),
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


def test_candidates_of_convolutions_leave_the_sizes_of_a_weight_that_is_given() -> None:
    class Given(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.second = torch.nn.Conv2d(16, 16, 3)

        def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return self.second(torch.nn.functional.conv2d(x, weight))

    module = Given().eval()
    exported = capture(module, (torch.randn(2, 3, 12, 12), torch.randn(16, 3, 3, 3)))
    pays = dict.fromkeys(("planes_pay", "float16_pays", "pointwise_pays"), lambda *_: True)
    with mock.patch.multiple(stages, tf32_convolutions=lambda: True, **pays):
        found = synthesize(module, exported, class_name="Given", import_from="m", gpu="H100")
    assert len(found) > 2
    assert not any("x.shape[1] == 3" in one.source for one in found)
