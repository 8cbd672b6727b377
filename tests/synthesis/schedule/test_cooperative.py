"""Rows that several programs share: which kernels have them, and that what the programs exchange is right."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.kernel.execution_plan import Hints, Kernel
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.schedules import Cooperative, Passes
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from kernel_lsp.synthesis.stages import lowered, planned
from tests.synthesis import running
from tests.synthesis.cases import CASES

H100 = target("H100")
SHARED = ["walked_softmax", "walked_layer_norm", "walked_group_norm", "walked_below_greatest"]


def kernel_of(module: nn.Module, *shapes: tuple[int, ...]) -> tuple[Kernel, Hints]:
    arguments = tuple(torch.empty(shape, device="meta") for shape in shapes)
    found = planned(lowered(capture(module.eval().to("meta"), arguments), on=H100))
    (kernel,) = found.kernels
    return kernel, found.hints


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


class Greatest(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax(-1)


class AddedNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(262144, device="meta")

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.norm(x + y)


class Sum(nn.Module):
    """Five operands of a row are more than registers have room for beside the next block."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, e: torch.Tensor):
        return torch.softmax(a + b + c + d + e, -1)


class Averaged(nn.Module):
    """A number for each row, which several programs would move on."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(4096, device="meta"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.sum(1)
        self.average.mul_(0.9).add_(0.1 * total)
        return x / total[:, None]


class Picked(nn.Module):
    def forward(self, table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.gather(table, 1, index), -1)


class Masked(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.masked_fill(mask, -torch.inf), -1)


class BelowTheFirst(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x - x[:, :1], -1)


LARGE = (112, 64, 512, 512)


@pytest.mark.parametrize(
    ("module", "shapes", "block"),
    [
        (Softmax(), [(4096, 393216)], 8192),
        (nn.GroupNorm(8, 64), [LARGE], 8192),
        (nn.InstanceNorm2d(64), [LARGE], 8192),
        (AddedNorm(), [(4096, 262144)] * 2, 4096),
        (Sum(), [(4096, 262144)] * 5, None),
        (Averaged(), [(4096, 262144)], None),
        (Greatest(), [(4096, 393216)], None),  # nothing is stored along the row, which is read once anyway
        (Softmax(), [(4096, 8192)], None),  # one program keeps it
        (Softmax(), [(512, 2**21)], 8192),  # 256 blocks, or 512 of half the size
        (Softmax(), [(512, 2**23)], None),  # more blocks than of which programs surely run at once
    ],
)
def test_programs_share_rows_that_one_cannot_keep(
    module: nn.Module, shapes: list[tuple[int, ...]], block: int | None
) -> None:
    kernel, hints = kernel_of(module, *shapes)
    found = [one for one in space(kernel, H100, hints) if isinstance(one, Cooperative)]
    assert [one.block for one in found][:1] == ([block] if block else [])
    assert all(one.most < one.at_once * H100.multiprocessors for one in found)
    # So many programs have registers on each multiprocessor whatever the compiler would take.
    assert all(one.at_once * one.warps * 32 * one.registers <= H100.registers for one in found)
    assert isinstance(space(kernel, H100, hints)[0], Cooperative) == bool(block)


def test_a_row_that_is_read_once_is_estimated_to_take_less() -> None:
    kernel, hints = kernel_of(Softmax(), (4096, 393216))
    seconds = {type(one): cost(kernel, one, H100, hints).seconds for one in space(kernel, H100, hints)}
    assert 0.6 < seconds[Cooperative] / seconds[Passes] < 0.75  # two passes over memory for three


@pytest.mark.parametrize("case", SHARED)
def test_one_program_that_is_alone_computes_the_same(case: str, interpreter: Any, tmp_path: Path) -> None:
    outcome = running.run(interpreter, case, tmp_path, variant="rows shared by programs")
    assert not running.fault(case, outcome, default=False), running.fault(case, outcome, default=False)
    assert "_wait_for(arrived_ptr" in (tmp_path / f"{case}_triton.py").read_text()


@pytest.mark.parametrize("case", [pytest.param(one, marks=pytest.mark.slow) for one in SHARED])
def test_what_many_programs_exchange_is_right(case: str, tmp_path: Path) -> None:
    asked = [sys.executable, "-m", "tests.synthesis.interpret_cooperative", case, str(tmp_path)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)
    assert answer["blocks"] == 9 and answer["error"] <= CASES[case].tolerance
    assert not answer["without"] <= CASES[case].tolerance  # without the others' numbers it is wrong


@pytest.mark.gpu
@pytest.mark.parametrize("case", SHARED)
def test_programs_wait_for_each_other_on_a_gpu(case: str, tmp_path: Path) -> None:
    environment = dict(os.environ, KERNEL_LSP_TEST_DEVICE="cuda")
    asked = {"case": case, "folder": str(tmp_path), "variant": "rows shared by programs"}
    script = Path(__file__).parents[1] / "interpret.py"
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


def test_what_is_picked_by_an_index_is_found_by_one_program() -> None:
    arguments = torch.empty((4096, 262144), device="meta"), torch.empty((4096, 262144), device="meta", dtype=torch.long)
    found = planned(lowered(capture(Picked(), arguments), on=H100))
    assert not any(isinstance(one, Cooperative) for kernel in found.kernels for one in space(kernel, H100, found.hints))


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (Masked(), [torch.empty(512, 65536), torch.empty(512, 65536, dtype=torch.bool)]),
        (BelowTheFirst(), [torch.empty(512, 65536)]),
    ],
)
def test_numbers_of_a_block_alone_are_kept(module: nn.Module, arguments: list[torch.Tensor]) -> None:
    """Triton carries a variable along with one dtype and shape."""
    exported = capture(module, tuple(one.to("meta") for one in arguments))
    source = synthesize(module, exported, class_name=type(module).__name__, import_from="here", gpu="H100")[0].source
    assert "tl.atomic_add(arrived_ptr + n_rows, 1)" in source
    assert re.findall(r"(\w+)_before = tl.zeros", source) == ["x"]


def test_a_file_for_a_small_gpu_bounds_rows_by_the_programs_that_it_launches() -> None:
    exported = capture(Softmax(), (torch.empty((4096, 262144), device="meta"),))
    source = synthesize(Softmax(), exported, class_name="Softmax", import_from="here", gpu="L4")[0].source
    programs, blocks = (
        re.search(r"min\(.*, (\d+)\) if isinstance", source),
        re.search(r"< min\((\d+), 3 \* _multi", source),
    )
    assert programs and blocks and int(blocks[1]) <= int(programs[1]), source


def test_registers_are_bounded_so_that_as_many_programs_run_at_once_as_rows_need() -> None:
    exported = capture(Softmax(), (torch.empty((4096, 262144), device="meta"),))
    found = synthesize(Softmax(), exported, class_name="Softmax", import_from="here", gpu="H100")
    bounds = [
        (registers[1], at_once[1])
        for one in found
        if (registers := re.search(r"maxnreg=(\d+)", one.source))
        and (at_once := re.search(r"min\(\d+, (\d+) \* _multi", one.source))
    ]
    assert bounds == [("168", "3"), ("96", "5")]


def test_a_program_tells_the_others_each_number_of_its_block_once() -> None:
    """A mean follows from the sum, which the mean of the row needs as well, and a count from where the block lies."""
    module = nn.InstanceNorm2d(64, device="meta")
    exported = capture(module, (torch.empty(LARGE, device="meta"),))
    source = synthesize(module, exported, class_name="InstanceNorm2d", import_from="torch.nn", gpu="H100")[0].source
    assert len(re.findall(r"tl.store\(parts_ptr", source)) == 2 == len(re.findall(r"tl.load\(parts_ptr", source))


@pytest.mark.parametrize(("groups", "side", "apart"), [(8, 512, True), (2, 64, False)])
def test_what_a_channel_shares_is_loaded_once_a_block(groups: int, side: int, apart: bool) -> None:
    """Where blocks do not cross channels, which a call's sizes tell; of channels smaller than a block there is no such."""
    module = nn.GroupNorm(groups, 64, device="meta")
    exported = capture(module, (torch.empty((112, 64, side, side), device="meta"),))
    source = synthesize(module, exported, class_name="GroupNorm", import_from="torch.nn", gpu="H100")[0].source
    channel = "(input.shape[2] * input.shape[3])"
    assert (f"DISTINCT=1 if {channel} % block_value == 0 else block_value" in source) == apart
    assert "tl.atomic_add(arrived_ptr + n_rows, 1)" in source
