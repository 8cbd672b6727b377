"""Random compositions of many operators (``random_modules/``): their kernels give what eager gives, as near to float64.

They are called with other values, sizes, layouts and dtypes, too; what eager refuses has to be refused, and no kernel may read or write
outside of its tensors. KERNEL_LSP_RANDOM_MODULES=5000-5400 checks the seeds 5000 to 5399 instead of those below.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Seeds of make test, and of make test-slow.
FEW, MORE = range(3), range(3, 43)

_EXPLORED = os.environ.get("KERNEL_LSP_RANDOM_MODULES", "")
_SLOW = pytest.mark.slow
SEEDS = (
    [*range(*map(int, _EXPLORED.split("-")))]
    if _EXPLORED
    else [*FEW, *(pytest.param(seed, marks=_SLOW) for seed in MORE)]
)

Check = Callable[[int], dict[str, Any]]


class Checker:
    """A process that checks the module of one seed after another; another one takes its place where it dies."""

    process: subprocess.Popen[str] | None = None

    def __call__(self, seed: int) -> dict[str, Any]:
        process = self.process = self.process or self._started()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"seed": seed}) + "\n")
        process.stdin.flush()
        if not (line := process.stdout.readline()):
            self.process = None
            return {"seed": seed, "source": "", "found": [f"the process ends with {process.wait(20)}"]}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        if self.process is not None:
            self.process.communicate(timeout=20)

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.synthesis.random_modules.interpret"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=dict(os.environ, OMP_NUM_THREADS="1"),
        )


@pytest.fixture(scope="module")
def check() -> Iterator[Check]:
    checker = Checker()
    yield checker
    checker.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_module_of_a_seed(seed: int, check: Check) -> None:
    answer = check(seed)
    of = {key: answer.get(key) for key in ("seed", "sizes", "dtype", "training")}
    assert not answer["found"], "\n".join([str(of), answer["source"], *answer["found"]])
