"""What benchmarks/ablation.py and benchmarks/duel.py do without a GPU: the parts that are switched off, the sample, the tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import ablation  # noqa: E402
import duel  # noqa: E402
from support import ablated  # noqa: E402

from kernel_lsp.specimen import faking  # noqa: E402
from kernel_lsp.suites import kernelbench  # noqa: E402
from kernel_lsp.synthesis.capture import capture  # noqa: E402


class Scaled(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x) * 2.0)


class Averaged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.ConvTranspose2d(16, 32, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.convolution(x)).mean((2, 3))


class Summed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).sum(1, keepdim=True)


def ways_of(module: nn.Module, x: torch.Tensor, *parts: str) -> dict[str, ablated.Way]:
    names = {"class_name": type(module).__name__, "import_from": __name__, "gpu": "H100"}
    return ablated.ways(module.eval(), capture(module.eval(), (x,)), 10, list(parts), **names)


def counts(way: ablated.Way) -> tuple[int, int]:
    return ablated.launches(way.candidates[0])


def same(found: dict[str, ablated.Way]) -> set[str]:
    return {part for part, way in found.items() if way.sources == found[ablated.EVERYTHING].sources}


def test_without_fusion_each_operator_has_a_kernel_and_without_planes_there_is_one_product():
    with faking.within(faking.mode()):  # as large as planes are worth it
        module, x = Scaled(4096), torch.rand(4096, 4096)
    found = ways_of(module, x, *ablated.PARTS)
    assert found[ablated.EVERYTHING].candidates[0].variant == "float16 planes"
    launched, _ = counts(found[ablated.EVERYTHING])
    assert counts(found["fusion"]) == (launched + 2, 0)  # the multiplication, and relu
    assert counts(found["planes"]) == (1, 0)
    assert not any("planes" in one.arithmetic for one in found["planes"].candidates)
    assert same(found) == {ablated.EVERYTHING, "phases", "graphs", "collapses", "tuning"}


def test_without_phases_torch_runs_transposed_convolutions():
    found = ways_of(Averaged(), torch.rand(2, 16, 8, 8), "phases")
    assert any(not one.kept for one in found[ablated.EVERYTHING].candidates)
    assert all(one.kept == {"aten.conv_transpose2d": 1} for one in found["phases"].candidates)


def test_without_graphs_nothing_is_replayed():
    found = ways_of(Summed(), torch.rand(32, 64), "graphs")
    assert any(map(ablated.is_replayed, found[ablated.EVERYTHING].candidates))
    assert found["graphs"].candidates and not any(map(ablated.is_replayed, found["graphs"].candidates))


def test_without_collapses_sums_come_last():
    found = ways_of(Summed(), torch.rand(32, 64), "collapses")
    assert "before the linear operation" in found[ablated.EVERYTHING].candidates[0].note
    assert not any("before the linear operation" in one.note for one in found["collapses"].candidates)


def test_a_switch_is_off_again_afterwards():
    module, x = Summed(), torch.rand(32, 64)
    first, again = (ways_of(module, x, "fusion", "planes") for _ in range(2))
    assert {name: way.sources for name, way in first.items()} == {name: way.sources for name, way in again.items()}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """KernelBench with 20 problems of level 1, 20 of level 2 and 10 of level 3."""
    for level, count in ((1, 20), (2, 20), (3, 10)):
        (tmp_path / f"level{level}").mkdir()
        for number in range(1, count + 1):
            (tmp_path / f"level{level}" / f"{number}_Op.py").write_text("class Model: ...\n")
    return tmp_path


def test_the_sample_has_its_share_of_each_level_and_is_the_same_for_a_seed(suite):
    problems = kernelbench.read([suite])
    drawn = ablation.chosen(problems, "", 10, 7)
    assert [one.problem.level for one in drawn] == [3, 3, 1, 1, 1, 1, 2, 2, 2, 2]
    assert drawn == ablation.chosen(problems, "", 10, 7)
    assert drawn != ablation.chosen(problems, "", 10, 8)
    named = ablation.chosen(problems, "2:3,1:5", 10, 7)
    assert [one.problem.id for one in named] == ["level2/3_Op", "level1/5_Op"]


def line(eager: float, **ways: dict[str, object]) -> dict[str, object]:
    return {"problem": "level1/1_Op.py", "eager_us": eager, "ways": ways}


def test_the_table_has_geomeans_where_a_part_changes_something_and_over_all():
    lines = [
        line(8.0, everything={"us": 2.0, "same": True}, fusion={"us": 4.0, "same": False}),
        line(9.0, everything={"us": 9.0, "same": True}, fusion={"us": 9.0, "same": True}),
        line(8.0, everything={"us": 2.0, "same": True}, fusion={"why": "nothing to lower", "same": False}),
        line(8.0, everything={"us": 2.0, "same": True}, fusion={"failed": "off by 2e-1", "same": False}),
        {"problem": "level1/2_Op.py", "error": "not done in time"},
    ]
    text = ablation.table(lines)
    assert "4 problems with a kernel, 1 without a time" in text
    assert "| fusion | 2 | 4.00× | 1.41× | 0.35 | 2.52× | 1.26× | 1 |" in text


def test_problems_of_the_duel_are_copied_in_bfloat16(tmp_path):
    (tmp_path / "bench" / "level1").mkdir(parents=True)
    text = "import torch\nfrom torch import nn\nclass Model(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    text += "        self.linear = nn.Linear(n, n)\n    def forward(self, x):\n        return self.linear(x)\n"
    text += "def get_inputs():\n    return [torch.rand(2, 4)]\ndef get_init_inputs():\n    return [4]"
    for number in (36, 37):
        (tmp_path / "bench" / "level1" / f"{number}_Op.py").write_text(text)
    (tmp_path / "copies").mkdir()
    (copy,) = duel.written(kernelbench.read([tmp_path / "bench"]), tmp_path / "copies")
    assert copy.problem.id == "level1/36_Op"
    names: dict[str, object] = {}
    exec(copy.file.read_text(), names)
    (x,), module = names["get_inputs"](), names["Model"](4)
    assert module(x).dtype == torch.bfloat16
