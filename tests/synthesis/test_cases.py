"""Every case is written in Triton, right at several sizes, inside its own envelope, and formatted as read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.synthesis import golden, running
from tests.synthesis.cases import CASES

#: what takes the interpreter, or the planning, a second and more
LONG = ("attention_", "float16_", "folded_float16_", "planes_", "walked_", "cut_", "scaled_")
#: what differs from another case in a function or a dtype alone
_ALIKE = [name for name in CASES if name not in golden.CHOSEN]
#: make test-cases alone runs these. Of those like another, make test has every third one that is quick. Of the chosen ones it has every second;
#: the text of the rest is compared with the one that was read (test_golden.py), and `make golden` runs what it writes.
IN_TEST_CASES = {*(name for i, name in enumerate(_ALIKE) if i % 3 or name.startswith(LONG)), *golden.REST}
#: what takes many times as long as the others, to export or to interpret
LONGEST = [
    *("state_space", "loop_selective_scan", "batch_norm_training_long", "planes_phases", "walked_softmax"),
    *("filled_in_many_steps", "written_in_many_steps", "written_step_by_step"),
    *("split_product", "gru_bidirectional", "attention_by_hand"),
]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.cases)
        if name in IN_TEST_CASES
        else pytest.param(name, marks=pytest.mark.slow)
        if name in LONGEST
        else name
        for name in CASES
    ],
)
def test_case(name: str, interpreter: Any, tmp_path: Path, written_texts: Path) -> None:
    assert running.fault(name, running.run(interpreter, name, tmp_path, written=str(written_texts))) == ""
