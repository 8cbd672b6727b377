"""torch.compile takes a generated class whole, and nothing that it computes changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = ["layer_norm", "act_silu", "addmm"]


def outcomes(folder: Path, device: str, cases: list[str]) -> list[dict[str, list[bool]]]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compiled.py")), str(folder), *cases],
        capture_output=True,
        text=True,
        env=dict(os.environ, OMP_NUM_THREADS="1", KERNEL_LSP_TEST_DEVICE=device),
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.timeout(420)
@pytest.mark.parametrize(
    "cases", [CASES[:1], pytest.param(CASES[1:], marks=pytest.mark.slow)], ids=["one", "the others"]
)
def test_what_runs_eagerly_and_the_envelope_are_compiled_whole(tmp_path: Path, cases: list[str]) -> None:
    found = outcomes(tmp_path, "cpu", cases)
    assert len(found) == len(cases)
    for name, one in zip(cases, found, strict=True):
        assert len(one["eager"]) >= 2 and len(one["envelope"]) >= 2, name
        assert all([*one["eager"], *one["envelope"]]), (name, one)


@pytest.mark.gpu
@pytest.mark.timeout(420)
def test_a_class_with_its_kernel_is_compiled_whole(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "cuda", CASES)
    assert len(found) == len(CASES)
    assert all(one["kernel"] and all(all(calls) for calls in one.values()) for one in found), found
