"""Comparisons in a forward: which sides show in results, what is said of those that do not, and where the search finds inputs."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernel_lsp import claims, schema
from kernel_lsp.validation import conditions, plan, sizes
from kernel_lsp.validation.inputs import Inputs, Leaf
from kernel_lsp.validation.progress import Progress
from kernel_lsp.validation.work import Work
from tests.validation.adversarial.material import arc_margin, elementwise

#: a module of which nothing can reach the other side
OUT_OF_REACH = """
class Bent(nn.Module):
    def forward(self, x):
        y = torch.sigmoid(x)
        return torch.where(y < 1.5, 2.0 * y, y - 7.0)
def get_inputs(): return [torch.randn(7, 40)]
"""


class Sided(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first = torch.where(x > 6, x, 0.5 * x)
        return first.masked_fill(torch.isnan(y) | (y.ge(2) & (y != 3)), 0.0)


def _taken(*given: list[float]) -> dict[str, set[bool]]:
    with conditions.Taken({}) as found:
        Sided()(*map(torch.tensor, given))
    return {one.said(True).partition(" at ")[0]: sides for one, sides in found.found.items()}


def test_comparisons_are_named_by_their_text() -> None:
    names = ["x > 6", "torch.isnan(y) is true", "y.ge(2) is true", "y != 3"]
    assert _taken([7.0], [2.0]) == dict(zip(names, [{True}, {False}, {True}, {True}], strict=True))
    assert _taken([7.0, 1.0], [float("nan"), 3.0]) == dict(
        zip(names, [{True, False}, {True, False}, {True, False}, {True, False}], strict=True)
    )


def test_the_other_side_is_named_by_the_opposite_comparison() -> None:
    with conditions.Taken({}) as found:
        Sided()(torch.zeros(1), torch.zeros(1))
    line = Sided.forward.__code__.co_firstlineno + 1
    said = [one.said(False) for one in found.found]
    assert said[0] == f"x <= 6 at test_conditions.py:{line}"
    assert [one.partition(" at ")[0] for one in said[1:]] == ["torch.isnan(y) is false", "y.ge(2) is false", "y == 3"]


def test_a_number_on_the_left_stays_there() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.where(1.75 > x, x, -x)  # noqa: SIM300

    with conditions.Taken({}) as found:
        forward(torch.zeros(1))
    ((one, sides),) = found.found.items()
    assert sides == {True}
    assert [one.said(side).partition(" at ")[0] for side in (True, False)] == ["1.75 > x", "1.75 <= x"]


def test_branches_of_torch_cond_are_not_looked_into() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    with conditions.Taken({}) as found:
        y = forward(torch.ones(2))
    assert torch.equal(y, torch.full((2,), 2.0))
    assert [one.said(True).partition(" at ")[0] for one in found.found] == ["x.sum() > 0"]


def test_a_comparison_that_shows_on_both_sides_is_not_looked_at_again() -> None:
    with conditions.Taken({}) as before:
        Sided()(torch.zeros(1), torch.zeros(1))
    shown = {one: {True, False} for one in before.found}
    with conditions.Taken(shown) as after:
        Sided()(torch.zeros(1), torch.zeros(1))
    assert len(before.found) == 4 and not after.found


@pytest.mark.parametrize(("rows", "operators", "noted"), [(64, 10**6, False), (64, 10, True), (8, 10**6, True)])
def test_calls_that_take_long_are_looked_at_in_small_sizes_alone(rows: int, operators: int, noted: bool) -> None:
    x = torch.zeros(64, 8)
    inputs = Inputs((x,), {}, [Leaf("x", x, ["n", None])], {}, {}, x.device, {"n": 64})
    assert sizes.small(inputs) == {"n": 8}
    comparison = conditions.Comparison("model.py", (1, 1, 0, 1), "gt", 1)
    referee = SimpleNamespace(inputs=inputs, progress=Progress())
    step = plan.Step("a check", lambda i: None, sizes={"n": rows})
    seen = conditions.Sides({comparison: set()}, Work(operators))
    conditions.note(referee, step, None, None, seen)  # type: ignore[arg-type]
    assert (comparison in referee.progress.shown) is noted


def _validated(validate: Any, module: str, name: str, kernel: str) -> tuple[str, list[str]]:
    verdict = validate(module, name, kernel)["verdict"]
    return verdict["status"], [one for one in verdict["limits"] if one.endswith(schema.UNSHOWN)]


def test_what_no_input_reaches_is_a_limit(validate: Any) -> None:
    wrong = elementwise("Bent", "tl.where(tl.sigmoid(x) < 1.5, 2.0 * tl.sigmoid(x), x + 100.0)")
    verdict = validate(OUT_OF_REACH, "Bent", wrong)["verdict"]
    limits = [one for one in verdict["limits"] if one.endswith(schema.UNSHOWN)]
    assert (verdict["status"], limits) == ("ok", ["where y >= 1.5 at module.py:7 (no input shows it)"])
    sides = [schema.Side("y < 1.5 at module.py:7", 1, True), schema.Side("y >= 1.5 at module.py:7", 1, False)]
    assert verdict["sides"] == [dataclasses.asdict(side) for side in sides]
    assert claims.not_checked(limits) == "where y >= 1.5 at module.py:7"


@pytest.mark.parametrize(("beyond", "expected"), [("cosine - 0.23971277", "ok"), ("cosine - 0.35", "wrong")])
def test_features_are_found_that_reach_the_far_side_of_an_angle(validate: Any, beyond: str, expected: str) -> None:
    assert _validated(validate, *_of(arc_margin(beyond))) == (expected, [])


def _of(pair: tuple[str, str]) -> tuple[str, str, str]:
    return pair[0], "ArcMargin", pair[1]


def test_an_unused_side_does_not_show_though_elements_are_on_it(validate: Any) -> None:
    module = OUT_OF_REACH.replace("torch.sigmoid(x)", "x").replace("y < 1.5, 2.0 * y, y - 7.0", "y < 1.5, y, y.clone()")
    status, limits = _validated(validate, module, "Bent", elementwise("Bent", "x + 0.0"))
    assert status == "ok" and len(limits) == 2


def test_the_parameters_of_a_half_module_are_negated_and_put_back(validate: Any) -> None:
    module = """
class Bent(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(40, dtype=torch.float16))
    def forward(self, x):
        y = torch.sigmoid(x * self.w)
        return torch.where(y < 1.5, 2.0 * y, y - 7.0)
def get_inputs(): return [torch.randn(7, 40, dtype=torch.float16)]
"""
    kernel = """
@triton.jit
def bent_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + cols
    x = tl.load(x_ptr + at, mask=cols < n, other=0.0)
    w = tl.load(w_ptr + cols, mask=cols < n, other=0.0)
    y = tl.sigmoid((x * w).to(tl.float32)).to(tl.float16)
    tl.store(y_ptr + at, tl.where(y < 1.5, 2 * y, y - 7), mask=cols < n)

class BentTriton(Bent):
    def forward(self, x):
        fits = x.dim() == 2 and x.numel() and x.dtype == self.w.dtype == torch.float16 and x.shape[1] == 40
        if not fits or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        bent_kernel[(x.shape[0],)](x, self.w, y, 40, BLOCK=64)
        return y
"""
    status, limits = _validated(validate, module, "Bent", kernel)
    assert (status, limits) == ("ok", ["where y >= 1.5 at module.py:10 (no input shows it)"])
