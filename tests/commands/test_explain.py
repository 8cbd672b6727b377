"""``kernel-lsp explain``, as it is typed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import nursery

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX = "samples/softmax.py::TemperatureSoftmax"
MIXED = """
import torch
from torch import nn


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        print("a word of the user's")
        return torch.exp(torch.sort(torch.relu(self.conv(x)).mean((2, 3)), -1)[0])


def get_inputs():
    return [torch.randn(4, 3, 16, 16)]


class Sorted(nn.Module):
    def forward(self, x):
        return torch.sort(x)[0]


def get_inputs_Sorted():
    return [torch.randn(4, 4)]
"""


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [*nursery.CLI, "explain", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=cwd, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mixed.py").write_text(MIXED)
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00\x01")
    return tmp_path


@pytest.mark.slow
def test_all_stages_of_a_sample_in_120_columns() -> None:
    done = run(SOFTMAX)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    starts = [
        next(i for i, line in enumerate(lines) if line.startswith(f"{stage} of TemperatureSoftmax"))
        for stage in ("graph", "kernels", "schedule", "text")
    ]
    assert starts == sorted(starts)
    assert max(map(len, lines)) <= 120
    assert "folded        r1 = " in done.stdout and "1 row a program, 4 warps (chosen)" in done.stdout
    assert "def temperature_softmax_kernel(" in done.stdout and "for H100 (sm_90)" in done.stdout


@pytest.mark.parametrize(("stage", "has"), [("kernels", "step 1: kernel"), ("schedule", "for L4 (sm_89)")])
def test_one_stage(stage: str, has: str) -> None:
    done = run(SOFTMAX, "--stage", stage, "--target", "l4")
    assert done.returncode == 0, done.stderr
    assert has in done.stdout and done.stdout.count(" of TemperatureSoftmax") == 1


def test_json_is_one_document_and_nothing_is_written(folder: Path) -> None:
    done = run("mixed.py::Mixed", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert list(document) == ["class_name", "graph", "kernels", "schedule", "text", "error"]
    assert document["class_name"] == "Mixed" and document["error"] is None
    assert set(document["graph"]) == {"sizes", "values", "outputs", "torch", "conditions"}
    assert {frozenset(value) for value in document["graph"]["values"]} == {
        frozenset(["name", "op", "text", "operands", "shape", "dtype", "formula", "node", "view"])
    }
    product, mean, sort, exponential = document["kernels"]
    assert product["contraction"]["equation"] == "ocij,nctuij->notu"
    assert mean["folds"][0]["of"] == "sum"
    assert (sort["kind"], sort["operator"]) == ("torch call", "aten.sort.default")
    assert exponential["folds"] == [] and exponential["contraction"] is None
    assert [kernel["step"] for kernel in document["schedule"]["kernels"]] == [1, 2, 4]
    costs = {"bytes", "operations", "programs", "waves", "shared", "seconds"}
    assert all(
        set(schedule["cost"]) == costs for kernel in document["schedule"]["kernels"] for schedule in kernel["schedules"]
    )
    compile(document["text"]["host"]["source"], "host", "exec")
    assert all("@triton.jit" in kernel["source"] for kernel in document["text"]["kernels"])
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == {"mixed.py", "binary.py"}


def test_an_operator_left_to_torch(folder: Path) -> None:
    done = run("mixed.py::Mixed", "--stage", "graph", "--leave", "conv2d", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "torch runs    aten.conv2d.default (conv2d_result): it was left to torch" in done.stdout


def test_a_class_without_a_kernel_is_explained_as_far_as_it_goes(folder: Path) -> None:
    done = run("mixed.py::Sorted", cwd=folder)
    assert done.returncode == 1
    assert "torch runs    aten.sort.default" in done.stdout and "schedule of" not in done.stdout
    assert "kernel-lsp: Sorted cannot be written in Triton" in done.stderr


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("mixed.py::Missing", "ClassNotFound"),
        ("nowhere.py::A", "PathMissing"),
        ("mixed.py", "ClassNotNamed"),
        ("binary.py::A", "SourceUnreadable"),
    ],
)
def test_what_cannot_be_looked_at_exits_with_2_and_says_why(folder: Path, target: str, code: str) -> None:
    done = run(target, "--json", cwd=folder)
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert document["error"]["code"] == code and document["graph"] is None
    assert document["error"]["message"] in done.stderr


def test_a_class_without_example_inputs_gets_its_stub(folder: Path) -> None:
    (folder / "mixed.py").write_text(MIXED.replace("get_inputs", "get_sizes"))
    done = run("mixed.py::Sorted", cwd=folder)
    assert done.returncode == 2 and "No example inputs for Sorted" in done.stderr
    assert "Paste at the end of mixed.py" in done.stdout and "def get_inputs_Sorted():" in done.stdout
    assert run("mixed.py::Sorted", "--json", cwd=folder).stdout.startswith("{")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["mixed.py:Mixed"], "There is no file or folder mixed.py:Mixed; did you mean mixed.py::Mixed?"),
        (["mixed.py::Mixed", "--target", "H10"], "'H10' is none of A100, H100"),
        (["mixed.py::Mixed", "--target", "H10"], "did you mean H100?"),
        (["mixed.py::Mixed", "--stage", "plan"], "invalid choice: 'plan'"),
        (["mixed.py::Mixed", "--seconds", "-1"], "more than zero"),
    ],
)
def test_a_command_line_that_is_wrong_exits_with_2(folder: Path, arguments: list[str], says: str) -> None:
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2 and says in done.stderr and not done.stdout


def test_the_help_names_the_stages_and_the_exit_status() -> None:
    done = run("--help")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "{graph,kernels,schedule,text}" in words and "1 no kernel can be written" in words
