"""Random programs: every candidate that is written gives what eager gives, as near to float64."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from tests.synthesis.programs import Program, programs

#: KERNEL_LSP_PROGRAMS=2000 tries as many that were not tried before.
EXPLORED = int(os.environ.get("KERNEL_LSP_PROGRAMS", "0"))
_HEALTH = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], dict[str, Any]]]:
    """What a process with Triton's interpreter says of a program."""
    folder = tmp_path_factory.mktemp("programs")
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("interpret_program.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
    )
    assert process.stdin is not None and process.stdout is not None

    def asked(source: str) -> dict[str, Any]:
        process.stdin.write(json.dumps({"source": source, "folder": str(folder)}) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        return answer

    yield asked
    process.stdin.close()
    process.wait(20)


def check(program: Program, ask: Callable[[str], dict[str, Any]]) -> None:
    assume(program.results())
    answer = ask(program.source())
    assert "problem" not in answer, f"{answer['problem']}\n{program.source()}"
    if "nothing" not in answer:
        assert answer["error"] <= max(1e-5, 8 * answer["eager"]), f"{answer}\n{program.source()}"


@pytest.mark.slow
@given(program=programs())
@settings(
    max_examples=EXPLORED or 25, derandomize=not EXPLORED, deadline=None, database=None, suppress_health_check=_HEALTH
)
@pytest.mark.timeout(600 + EXPLORED)
def test_a_program(program: Program, ask: Callable[[str], dict[str, Any]]) -> None:
    check(program, ask)
