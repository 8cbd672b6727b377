"""Every sample is sliced, and its slice computes the same, bit by bit."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"
CLASSES = [
    (path, node.name)
    for path in sorted(SAMPLES.glob("*.py"))
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.ClassDef)
]


@pytest.mark.parametrize(
    ("path", "name"),
    [pytest.param(*one, id=one[1], marks=[pytest.mark.slow] if i % 8 else []) for i, one in enumerate(CLASSES)],
)
def test_a_sample(path: Path, name: str, worker: Any, assert_slice_is_equal: Callable[..., None]) -> None:
    answer = worker.call("slice", path=str(path), class_name=name)
    source = answer["subject"]["source"]
    assert "class Model(nn.Module):" in source and f"class {name}" not in source
    assert answer["specimen"]["class_name"] == answer["subject"]["base"] == name
    inputs = answer["specimen"]["inputs"]
    dynamic = [[i for i, symbol in enumerate(one["dynamic"]) if symbol] for one in inputs]
    assert_slice_is_equal(str(path), name, source, dynamic)
