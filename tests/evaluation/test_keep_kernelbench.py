"""The tool that keeps records of KernelBench: a file for each device."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp.evaluation import results_file

from .made import VERSIONS, problem, record, report, validated

TOOL = Path(__file__).resolve().parents[2] / "tools" / "keep_kernelbench.py"
H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The tool in a repository without results, beside a suite of two problems."""
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOL, tmp_path / "tools")
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "KernelBench" / "level1").mkdir(parents=True)
    for number in (1, 2):
        (tmp_path / "KernelBench" / "level1" / f"{number}_Op.py").write_text("class Model: ...\n")
    (tmp_path / "stand_ins.jsonl").touch()
    return tmp_path


def run_of(
    checkout: Path,
    name: str,
    device: str,
    eager: float = 200,
    at: str = "2026-11-21T10:00:00+00:00",
    mode: str = "eval",
) -> Path:
    """A results file of both problems."""
    versions = VERSIONS | {"device": device}
    made = [record(problem(n), report(validated(eager)), mode=mode, versions=versions, at=at).to_json() for n in (1, 2)]
    path = checkout / name
    header = {"kernel-lsp-eval": 1, "suite": "kernelbench", "device": "auto"}
    path.write_text("".join(json.dumps(line) + "\n" for line in [header, *made]))
    return path


def keep(checkout: Path, *new: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/keep_kernelbench.py", "KernelBench", "stand_ins.jsonl", *map(str, new)]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def eager_times(path: Path) -> list[float]:
    reports = [one.read_report() for one in results_file.read(path).records]
    return [one.candidates[0].measurement.shapes[0].eager.median for one in reports]


def test_each_device_has_a_file_of_its_own_that_newer_records_change(checkout):
    results = checkout / "benchmarks" / "results"
    first, other = run_of(checkout, "a.jsonl", H100), run_of(checkout, "b.jsonl", H200, 300)
    for new in (first, other):
        ended = keep(checkout, new)
        assert ended.returncode == 0, ended.stderr
    of_h100, of_h200 = (results / f"kernelbench-nvidia-{name}" for name in ("h100-80gb-hbm3", "h200"))
    assert eager_times(of_h100.with_suffix(".jsonl")) == [200, 200]
    assert eager_times(of_h200.with_suffix(".jsonl")) == [300, 300]
    assert f"Device: {H200}" in of_h200.with_suffix(".md").read_text()

    table = of_h100.with_suffix(".md")
    table.write_text(f"# Introduced\n{table.read_text()}")
    ended = keep(checkout, run_of(checkout, "c.jsonl", H100, 250, "2026-11-22T10:00:00+00:00"))
    assert ended.returncode == 0, ended.stderr
    assert eager_times(of_h100.with_suffix(".jsonl")) == [250, 250]
    assert eager_times(of_h200.with_suffix(".jsonl")) == [300, 300]
    assert table.read_text().startswith("# Introduced\n") and f"Device: {H100}" in table.read_text()


def test_modules_in_training_mode_have_a_file_of_their_own(checkout):
    evaluated, trained = run_of(checkout, "a.jsonl", H200), run_of(checkout, "b.jsonl", H200, mode="train")
    ended = keep(checkout, evaluated, trained)
    assert ended.returncode == 1 and "must be of one mode, and these are of eval and train" in ended.stderr
    ended = keep(checkout, trained)
    assert ended.returncode == 0, ended.stderr
    results = checkout / "benchmarks" / "results"
    assert [one.name for one in sorted(results.iterdir())] == [
        "kernelbench-train-nvidia-h200.jsonl",
        "kernelbench-train-nvidia-h200.md",
    ]
    assert "Modules in train mode." in (results / "kernelbench-train-nvidia-h200.md").read_text()


def test_records_of_several_devices_are_refused(checkout):
    ended = keep(checkout, run_of(checkout, "a.jsonl", H100), run_of(checkout, "b.jsonl", H200))
    assert ended.returncode == 1
    assert f"must be of one device, and these are of: {H100}, {H200}" in ended.stderr
    assert not list((checkout / "benchmarks" / "results").iterdir())
