"""Every case is written in Triton, right at several sizes, inside its own envelope, and formatted as read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.synthesis import golden
from tests.synthesis.cases import CASES

#: what takes the interpreter, or the planning, a second and more
LONG = ("attention_", "float16_", "folded_float16_", "planes_", "walked_", "cut_", "scaled_")
#: what differs from another case in a function or a dtype alone
_ALIKE = [name for name in CASES if name not in golden.CHOSEN]
#: of these make test has every third one that is quick; make test-cases has the others
LIKE_ANOTHER = [name for i, name in enumerate(_ALIKE) if i % 3 or name.startswith(LONG)]
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
        if name in LIKE_ANOTHER
        else pytest.param(name, marks=pytest.mark.slow)
        if name in (*golden.REST, *LONGEST)
        else name
        for name in CASES
    ],
)
def test_case(name: str, interpreter: Any, tmp_path: Path, written_texts: Path) -> None:
    case = CASES[name]
    interpreter.stdin.write(json.dumps({"case": name, "folder": str(tmp_path), "written": str(written_texts)}) + "\n")
    interpreter.stdin.flush()
    answer = json.loads(interpreter.stdout.readline())
    assert "problem" not in answer, answer["trace"]
    assert all(answer["inside"]), "the kernel's own envelope refuses the sizes it was made for"
    assert max(answer["errors"]) <= case.tolerance, answer["errors"]
    lowered, of = (int(word) for word in answer["note"].split(" ops")[0].split(" of "))
    assert of - lowered == case.kept, answer["note"]
    if case.kernels is not None:
        assert answer["kernels"] == case.kernels, answer["source"]
