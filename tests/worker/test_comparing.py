"""A kernel timed beside the one before it: through the real processes, by a clock of the host instead of a GPU's."""

from __future__ import annotations

import pytest

MODULE = """
import torch
class Norm(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2 + 1, -1)
def get_inputs(): return [torch.randn(4, 40)]
"""


@pytest.fixture
def compare(worker, on_the_host, write, tmp_path):
    """``compare(fast, now, before)``: the SpeedComparison of the synthesizer's kernel with changes to either text."""

    def run(fast: int, now: tuple[str, str] = ("", ""), before: tuple[str, str] = ("", "")):
        asked = {"path": write(MODULE), "class_name": "Norm", "device": "interpreter", "training": False}
        made = worker.call("synthesize", **asked)
        text = made["candidates"][0]["source"]
        assert now[0] in text and before[0] in text
        given = asked | {"specimen": made["specimen"], "scratch": str(tmp_path), "seconds": 100}
        given |= {"sources": [text.replace(*now), text.replace(*before)], "threads": 1, "rates": None, "inputs": None}
        return on_the_host("compare", given, str(fast), tmp_path)["result"]["comparison"]

    return run


@pytest.mark.slow
def test_the_slower_one_is_told(compare):
    found = compare(fast=1)
    assert found["ratio"]["low"] > 10 and found["ratio"]["rounds"] == 15
    assert found["now"]["median"] > 10 * found["before"]["median"] > 0 and found["eager"]["median"] > 0
    assert found["missing"] == ""


@pytest.mark.slow
def test_one_that_computes_something_else_is_not_compared_with(compare):
    found = compare(fast=1, before=("    return softmax\n", "    return softmax + 1\n"))
    assert found["ratio"] is None and "relative error" in found["missing"]


@pytest.mark.slow
def test_one_that_does_not_load_is_not_compared_with(compare):
    found = compare(fast=1, before=("    return softmax\n", "    return softmax(\n"))
    assert found["ratio"] is None and found["missing"]
