"""Sizes on the other side of a comparison in a candidate's file, which no other check has a reason to try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernel_lsp.validation import plan, size_branches
from kernel_lsp.validation.inputs import Inputs
from tests.validation.test_inputs import made

HOST = """
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    if n <= 7:
        pass

def host(x):
    n_rows = x.shape[1] * x.shape[2]
    return few(x) if {condition} else many(x)

class Norm(Base):
    def _in_envelope(self, x):
        return x.shape[0] <= 99
"""


def given() -> Inputs:
    inputs = made([torch.randn(3, 40, 5, 6)], [["b", "c", None, "w"]])
    inputs.leaves[0].name = "x"
    return inputs


@pytest.mark.parametrize(
    ("condition", "tried"),
    [
        ("x.shape[1] <= 1024", {"b": 2, "c": 1025, "w": 2}),
        ("x.shape[-3] < 1024", {"b": 2, "c": 1024, "w": 2}),
        ("1024 >= x.size(1)", {"b": 2, "c": 1025, "w": 2}),
        ("1024 > x.size(1)", {"b": 2, "c": 1024, "w": 2}),
        ("x.shape[1] > 30", {"b": 2, "c": 30, "w": 2}),  # the example's 40 are on the upper side
        ("30 <= x.shape[1]", {"b": 2, "c": 29, "w": 2}),
        ("n_rows <= 1024", {"b": 2, "c": 205, "w": 2}),  # five times as many
        ("x.shape[3] > 64 and torch.is_grad_enabled()", {"b": 2, "c": 2, "w": 65}),
        ("n_rows * 2 > 1024", {"b": 2, "c": 103, "w": 2}),
    ],
)
def test_the_nearest_size_on_the_other_side(condition: str, tried: dict[str, int]) -> None:
    inputs = given()
    found = size_branches.other_sides(
        HOST.format(condition=condition), inputs, inputs.example_sizes, inputs.example_sizes
    )
    assert list(found.values()) == [tried]
    (text,) = found
    assert text in condition
    for mode in ("interpreter", "gpu"):
        steps = {step.name: step for step in plan.plan(inputs, mode, other_sides=found)}
        step = steps[f"the other side of {text}"]
        assert step.needed and step.sizes == tried
        (x,), _ = step.make(inputs)
        assert x.shape == (tried["b"], tried["c"], 5, tried["w"])


@pytest.mark.parametrize(
    "condition",
    [
        "x.shape[2] <= 8",  # a size that is fixed
        "x.shape[1] <= 10_000_000",  # too many elements
        "x.shape[1] <= y.shape[1]",
        "x.shape[1] == 64",
        "x.dim() <= 4",
        "x.shape[9] <= 4",
        "x.shape[1] + 1 <= 64",
        "x.shape[1] * x.shape[1] <= 64",
        "x.shape[1] >= 0",
    ],
)
def test_comparisons_that_lead_nowhere(condition: str) -> None:
    inputs = given()
    sizes = inputs.example_sizes
    assert size_branches.other_sides(HOST.format(condition=condition), inputs, sizes, sizes) == {}


def test_a_range_of_the_graph_and_a_text_that_is_no_python() -> None:
    inputs = given()
    sizes = inputs.example_sizes
    inputs.ranges["c"] = [2, 1024]
    assert size_branches.other_sides(HOST.format(condition="x.shape[1] <= 1024"), inputs, sizes, sizes) == {}
    assert size_branches.other_sides(HOST.format(condition="x.shape[1] <="), inputs, sizes, sizes) == {}


DOUBLED = """
class Doubled(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.randn(4, 30, 20)]
"""
KERNEL = """
@triton.jit
def times(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)

class DoubledTriton(Doubled):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 3 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        if x.shape[1] <= {most}:
            times[grid](x, y, x.numel(), {few}, BLOCK=1024)
        else:
            times[grid](x, y, x.numel(), {many}, BLOCK=1024)
        return y
"""


@pytest.mark.parametrize(
    ("most", "few", "many", "wrong"),
    [
        (600, 2, 2, ""),
        (600, 2, 3, "the other side of x.shape[1] <= 600"),
    ],
)
def test_a_branch_for_sizes_that_are_larger_than_the_example_s_is_tried(
    validate: Callable[..., dict[str, Any]], most: int, few: int, many: int, wrong: str
) -> None:
    verdict = validate(DOUBLED, "Doubled", KERNEL.format(most=most, few=few, many=many))["verdict"]
    assert verdict["status"] == ("wrong" if wrong else "ok"), verdict["reason"]
    failed = [check["name"] for check in verdict["checks"] if not check["passed"]]
    assert failed == ([wrong] if wrong else [])
    if not wrong:
        assert f"the other side of x.shape[1] <= {most}" in [check["name"] for check in verdict["checks"]]
