"""Rows that several programs share: who gets the schedule, and that what they exchange is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.kernel.steps import Hints, Kernel
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.schedules import Passes, Shared
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from kernel_lsp.synthesis.stages import lowered, planned
from tests.synthesis.cases import CASES

H100 = target("H100")
LONG = ["walked_softmax", "walked_layer_norm", "walked_below_greatest"]


def kernel_of(module: nn.Module, *shape: int) -> tuple[Kernel, Hints]:
    found = planned(lowered(capture(module.eval(), (torch.empty(shape, device="meta"),)), on=H100))
    (kernel,) = found.kernels
    return kernel, found.hints


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


class Greatest(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax(-1)


@pytest.mark.parametrize(
    ("module", "shape", "parts"),
    [
        (Softmax(), (4096, 393216), [8192, 16384]),
        (nn.GroupNorm(8, 64, device="meta"), (112, 64, 512, 512), [16384, 32768]),
        (nn.GroupNorm(4, 64, device="meta"), (112, 64, 512, 512), [32768]),  # 256 programs do not run at once
        (nn.InstanceNorm2d(64), (112, 64, 512, 512), [8192, 16384]),
        (Greatest(), (4096, 393216), []),  # nothing is stored along the row, which is read once anyway
        (
            nn.GroupNorm(32, 256, device="meta"),
            (32, 256, 64, 64),
            [8192, 16384],
        ),  # one could keep it, and none beside it
        (Softmax(), (4096, 8192), []),  # one program keeps it
        (Softmax(), (512, 2**23), []),  # more programs than run at once
    ],
)
def test_long_rows_are_shared_by_as_many_programs_as_run_at_once(
    module: nn.Module, shape: tuple[int, ...], parts: list[int]
) -> None:
    kernel, hints = kernel_of(module, *shape)
    found = space(kernel, H100, hints)
    assert [one.part for one in found if isinstance(one, Shared)] == parts
    assert all(one.most <= H100.multiprocessors for one in found if isinstance(one, Shared))


def test_a_row_that_is_read_once_is_estimated_to_take_less() -> None:
    kernel, hints = kernel_of(Softmax(), 4096, 393216)
    seconds = {type(one): cost(kernel, one, H100, hints).seconds for one in space(kernel, H100, hints)}
    assert 0.6 < seconds[Shared] / seconds[Passes] < 0.75  # two passes over memory for three


@pytest.mark.parametrize("case", LONG)
def test_one_program_that_is_alone_computes_the_same(case: str, interpreter: Any, tmp_path: Path) -> None:
    asked = {"case": case, "folder": str(tmp_path), "variant": "rows shared by programs"}
    interpreter.stdin.write(json.dumps(asked) + "\n")
    interpreter.stdin.flush()
    answer = json.loads(interpreter.stdout.readline())
    assert "problem" not in answer, answer["trace"]
    assert all(answer["inside"]) and max(answer["errors"]) <= CASES[case].tolerance, answer["errors"]


@pytest.mark.parametrize("case", [pytest.param(one, marks=pytest.mark.slow) for one in LONG])
def test_what_many_programs_exchange_is_right(case: str, tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "interpret_shared.py"
    asked = [sys.executable, str(script), case, str(tmp_path)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)
    assert answer["parts"] == 9 and answer["error"] <= CASES[case].tolerance


@pytest.mark.gpu
@pytest.mark.parametrize("parts", [8192, 16384])
@pytest.mark.parametrize("case", LONG)
def test_programs_wait_for_each_other_on_a_gpu(case: str, parts: int, tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "interpret.py"
    asked = {"case": case, "folder": str(tmp_path), "variant": f"rows shared by programs of {parts}"}
    environment = dict(os.environ, KERNEL_LSP_TEST_DEVICE="cuda")
    done = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        timeout=110,
        env=environment,
    )
    answer = json.loads(done.stdout)
    assert "problem" not in answer, answer["trace"]
    assert max(answer["errors"]) <= max(CASES[case].tolerance, 1e-4), answer["errors"]
