"""Sums and means that are taken before the linear map that they are of: when, what is left to multiply, and that the file says so."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Contract
from tests.synthesis.cases import CASES, proposed
from tests.synthesis.passes.test_products import planned


class Of(nn.Module):
    """A layer, and what ``then`` makes of its result."""

    def __init__(self, layer: nn.Module, then: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.then = layer, then

    def forward(self, x: torch.Tensor) -> Any:
        return self.then(self.layer(x))


def multiplications(module: nn.Module, *inputs: torch.Tensor) -> int:
    """How many the plan's products make, at the example's sizes."""
    graph = planned(module.eval(), *inputs).graph
    ops = [value.op for value in topological(graph.outputs) if isinstance(value.op, Contract)]
    ops = [op for op in ops if not any(other.exact and other.exact.product is op for other in ops)]
    letters = [(op, set(op.left_axes + op.right_axes) - set(op.planes)) for op in ops]
    return sum(math.prod(int(op.size(a).subs(graph.hints)) for a in of) for op, of in letters)


@pytest.mark.parametrize(
    ("module", "x", "most"),
    [
        (Of(nn.Linear(64, 512), lambda y: y.sum(1)), (256, 64), 0),  # sums of what is multiplied element by element
        (Of(nn.ConvTranspose2d(16, 32, 3), lambda y: y.mean((2, 3))), (4, 16, 64, 64), 4 * 16 * 32),
        (Of(nn.ConvTranspose2d(16, 32, 3, 2, 1), lambda y: y.mean((2, 3))), (4, 16, 64, 64), 4 * 16 * 9 * 32),
        (Of(nn.Conv2d(16, 32, 3, 2), lambda y: (y * 2).mean((2, 3))), (4, 16, 64, 64), 4 * 16 * 9 * 32),
        (Of(nn.Conv2d(16, 32, 3), nn.AvgPool2d(4)), (4, 16, 66, 66), 4 * 16 * 32 * 36 * 16 * 16),
        (Of(nn.Conv2d(16, 32, 1), nn.AvgPool2d(2)), (4, 16, 64, 64), 4 * 16 * 32 * 32 * 32),
        (Of(nn.ConvTranspose2d(16, 32, 3, 2, 1), nn.AvgPool2d(2)), (4, 16, 32, 32), 4 * 16 * 32 * 4 * 32 * 32),
    ],
)
def test_so_much_is_left_to_multiply(module: nn.Module, x: tuple[int, ...], most: int) -> None:
    assert multiplications(module, torch.empty(x)) <= most


@pytest.mark.parametrize(
    ("module", "x"),
    [
        (Of(nn.Linear(64, 512), lambda y: (y, y.sum(1))), (256, 64)),  # all of it is wanted
        (Of(nn.Linear(64, 512), lambda y: torch.relu(y).sum(1)), (256, 64)),
        (Of(nn.Linear(64, 512), lambda y: (y * y).sum(1)), (256, 64)),
        (Of(nn.Linear(64, 512), lambda y: y.amax(1)), (256, 64)),
        (Of(nn.Conv2d(16, 32, 3), nn.AvgPool2d(3, 1)), (4, 16, 66, 66)),  # windows overlap: more would be multiplied
        (Of(nn.Conv2d(16, 32, 3), nn.AvgPool2d(2, padding=1)), (4, 16, 66, 66)),  # zeros among what is averaged
        (Of(nn.Conv2d(16, 32, 3), nn.AvgPool2d(3, 3, ceil_mode=True)), (4, 16, 66, 66)),
        (Of(nn.Conv2d(16, 32, 3), nn.MaxPool2d(2)), (4, 16, 66, 66)),
    ],
)
def test_what_is_no_sum_of_a_linear_map_stays_as_it_is(module: nn.Module, x: tuple[int, ...]) -> None:
    assert planned(module.eval(), torch.empty(x)).graph.collapsed == []


@pytest.mark.parametrize(
    ("then", "collapsed"),
    [
        (torch.sigmoid, False),
        (lambda y: torch.tanh(y + 1.0) * 2.0, False),
        (torch.relu, False),
        (lambda y: y.clamp(min=-1.0), False),
        (nn.functional.silu, True),
        (nn.functional.gelu, True),
        (nn.functional.hardswish, True),
        (nn.functional.mish, True),
        (lambda y: y / 2.0 + 1.0, True),
    ],
)
def test_where_an_infinity_would_become_a_number_the_sum_comes_last(
    then: Callable[[torch.Tensor], torch.Tensor], collapsed: bool
) -> None:
    """The module adds infinities of both signs to NaN, where a sum of the inputs may stay infinite: a sigmoid makes 0 or 1 of that."""
    module = Of(nn.Conv2d(16, 32, 3), lambda y: then(nn.functional.avg_pool2d(y, 4)))
    assert bool(planned(module.eval(), torch.empty(4, 16, 66, 66)).graph.collapsed) == collapsed


@pytest.mark.parametrize(
    ("module", "x"),
    [
        (Of(nn.Linear(64, 512), lambda y: torch.sigmoid(y.sum(1))), (256, 64)),
        (Of(nn.ConvTranspose2d(16, 32, 3), lambda y: torch.relu(y.mean((2, 3)))), (4, 16, 64, 64)),
        (Of(nn.Linear(64, 512), lambda y: nn.functional.elu(y.sum(1))), (256, 64)),
        (Of(nn.Linear(64, 512), lambda y: 1.0 / y.sum(1)), (256, 64)),
        (Of(nn.Linear(64, 512), lambda y: y.sum(1) > 0.0), (256, 64)),
        (Of(nn.Linear(64, 512), lambda y: torch.exp(-y.sum(1))), (256, 64)),
        (Of(nn.Linear(64, 512), lambda y: torch.sigmoid(-y.sum(1, keepdim=True))), (256, 64)),
    ],
)
def test_views_and_negation_do_not_hide_what_follows(module: nn.Module, x: tuple[int, ...]) -> None:
    assert planned(module.eval(), torch.empty(x)).graph.collapsed == []


def test_in_half_precision_each_result_is_rounded_before_it_is_summed() -> None:
    module = Of(nn.Linear(64, 512), lambda y: y.sum(1)).half()
    assert planned(module, torch.empty(256, 64, dtype=torch.float16)).graph.collapsed == []


def test_the_file_and_the_note_say_so() -> None:
    case = CASES["collapsed_pools"]
    first = proposed(case, case.kind(*case.init).eval(), case.inputs(0), "cases")[0]
    assert first.note == "5 of 5 ops in Triton; computed before the linear operation: avg_pool3d"
    assert "Computed before the linear operation that it follows in the module" in first.source


def test_it_comes_before_the_candidate_that_leaves_the_convolution_to_torch() -> None:
    module = Of(nn.ConvTranspose2d(64, 128, 3), lambda y: y.mean((2, 3))).eval()
    exported = torch.export.export(module, (torch.empty(4, 64, 8, 8),))
    found = synthesize(module, exported, class_name="Of", import_from=__name__, gpu="NVIDIA H200")
    assert not found[0].kept and any("left to torch" in one.variant for one in found[1:])
