"""Loops that torch.export unrolled become recurrences again where their steps are alike, and stay as they are elsewhere."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sympy
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.build import Build
from kernel_lsp.synthesis.graph.lowered import Graph
from kernel_lsp.synthesis.graph.value import Input, Recurrence, Value
from kernel_lsp.synthesis.graph.verify import verify
from kernel_lsp.synthesis.kernel.execution_plan import Planned
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.passes.rewrite import share
from kernel_lsp.synthesis.passes.rolling import roll
from kernel_lsp.synthesis.schedule.target import target
from kernel_lsp.synthesis.stages import lowered, planned
from tests.synthesis.cases import CASES

H100 = target("H100")
r = torch.randn


def plan_of(module: nn.Module, *inputs: torch.Tensor) -> Planned:
    return planned(lowered(capture(module.eval(), inputs), on=H100))


def loops(plan: Planned) -> list[Recurrence]:
    return [kernel.loop.loop for kernel in plan.kernels if kernel.loop is not None]


def of_case(name: str) -> Planned:
    case = CASES[name]
    return plan_of(case.kind(*case.init), *case.inputs(0))


def of_forward(forward: Callable[..., Any], *inputs: torch.Tensor) -> Planned:
    return plan_of(type("Module", (nn.Module,), {"forward": lambda self, *x: forward(*x)})(), *inputs)


@pytest.mark.parametrize(
    ("name", "steps", "launches"),
    [
        ("loop_rnn", [10], 3),
        ("loop_lstm_cell", [9], 2),
        ("loop_gru_cell", [6], 2),
        ("loop_own_lstm", [5], 6),
        ("loop_linear_recurrence", [12], 1),
        ("loop_two_layers", [8, 8], 4),
        ("loop_from_numbers", [6], 2),
        ("loop_half", [7], 3),
        ("loop_two_products", [5], 2),
        pytest.param("loop_selective_scan", [10], 2, marks=pytest.mark.slow),
        ("loop_one_row", [5], 2),
        pytest.param("loop_written", [6], 2, marks=pytest.mark.slow),
        ("loop_one_rolled", [5], None),
        ("loop_differs", [], 5),
    ],
)
def test_all_steps_are_one_launch(name: str, steps: list[int], launches: int | None) -> None:
    plan = of_case(name)
    assert [int(loop.steps) for loop in loops(plan)] == steps
    assert launches is None or len(plan.kernels) == launches
    assert not plan.graph.kept


def test_weights_of_several_gates_are_one_product() -> None:
    (loop,) = loops(of_case("loop_own_lstm"))
    assert [v.shape for v in loop.given if v.name == "weights"] == [(64, 16)]


class Places(nn.Module):
    """A step for each of ``places``."""

    def __init__(self, places: list[int]) -> None:
        super().__init__()
        self.places, self.layer = places, nn.Linear(20, 20)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        for t in self.places:
            h = torch.tanh(x[:, t] + self.layer(h))
        return h


@pytest.mark.parametrize(
    ("places", "steps"),
    [
        ([0, 1, 2], []),
        ([0, 1, 2, 3], [4]),
        ([0, 2, 4, 6, 8], [5]),
        ([7, 6, 5, 4, 3], [5]),
        ([4, 4, 4, 4, 4], [5]),
        ([0, 2, 3, 6, 8], []),
        ([5, 0, 1, 2, 3, 4], [5]),  # the first one stays apart
    ],
)
def test_places_move_by_one_stride_and_four_steps_are_the_least(places: list[int], steps: list[int]) -> None:
    assert [loop.steps for loop in loops(plan_of(Places(places), r(4, 9, 20), r(4, 20)))] == steps


def test_weights_that_do_not_fit_on_chip_stay_products_of_their_own() -> None:
    def rolled(width: int) -> bool:
        with torch.device("meta"):
            cell = nn.LSTMCell(32, width)

            def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
                h = c = x.new_zeros(x.shape[0], width)
                for t in range(5):
                    h, c = self.cell(x[:, t], (h, c))  # type: ignore[operator]
                return h

            module = type("Module", (nn.Module,), {"forward": forward})()
            module.cell = cell
            return bool(loops(plan_of(module, r(8, 5, 32))))

    assert rolled(256)
    assert not rolled(2048)


def test_few_elementwise_steps_stay_one_elementwise_kernel() -> None:
    def forward(x: torch.Tensor, h: torch.Tensor, count: int) -> torch.Tensor:
        for t in range(count):
            h = torch.tanh(x[:, t] * h)
        return h

    few = of_forward(lambda x, h: forward(x, h, 6), r(4, 20, 6), r(4, 6))
    assert not loops(few) and len(few.kernels) == 1
    many = of_forward(lambda x, h: forward(x, h, 20), r(4, 20, 6), r(4, 6))
    assert [loop.steps for loop in loops(many)] == [20]


def test_numbers_that_change_with_the_step_stay() -> None:
    def forward(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        for t in range(12):
            h = torch.tanh(x[:, t] * h * (t + 1))
        return h

    assert not loops(of_forward(forward, r(4, 12, 6), r(4, 6)))


def test_two_loops_of_one_cell_are_two_recurrences() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.RNNCell(6, 20)

        def run(self, x: torch.Tensor) -> torch.Tensor:
            h = x.new_zeros(x.shape[0], 20)
            for t in range(5):
                h = self.cell(x[:, t], h)
            return h

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.run(x) + self.run(y)

    assert [loop.steps for loop in loops(plan_of(Two(), r(4, 5, 6), r(4, 5, 6)))] == [5, 5]


class Deep(nn.Module):
    """Layers alike but for their weights, or one of them repeated, with what no recurrence takes in each."""

    def __init__(self, layers: int, repeated: bool) -> None:
        super().__init__()
        count = 1 if repeated else layers
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(16, 2, 32, batch_first=True) for _ in range(count)])
        self.times = layers if repeated else 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            for layer in self.layers:
                x = layer(x)
        return x


@pytest.mark.parametrize("repeated", [False, True])
def test_a_deep_network_stays_as_it_is(repeated: bool) -> None:
    graph = shared(Deep(5, repeated), r(2, 5, 16))
    assert roll(graph) == 0


def shared(module: nn.Module, *inputs: torch.Tensor) -> Graph:
    graph = lower(capture(module.eval(), inputs))
    share(graph)
    return graph


def long(steps: int) -> Graph:
    """The graph of a loop of so many steps, some ten values each."""
    x, weight, first = (
        Value(Input(name, "argument"), tuple(map(sympy.Integer, shape)), torch.float32, name)
        for name, shape in (("x", (steps, 3, 4)), ("weight", (12, 8)), ("first", (3, 8)))
    )
    state, outputs = first, []
    for t in range(steps):
        part = Build.select(x, 0, sympy.Integer(t))
        both = Build.concat((part, state), 1, (state.shape[0], sympy.Integer(12)), torch.float32)
        gate = Build.pointwise("sigmoid", Build.matmul(both, weight, torch.float32))
        fresh = Build.pointwise("tanh", Build.pointwise("mul", gate, 0.5))
        state = Build.pointwise("add", state, Build.pointwise("mul", gate, fresh))
        outputs.append(Build.pointwise("mul", state, 2.0))
    whole = tuple(Build.unsqueeze(v, 0) for v in outputs)
    stack = Build.concat(whole, 0, (sympy.Integer(steps), *first.shape), torch.float32)
    return Graph(inputs=[x, weight, first], outputs=[stack], output_leaves=[stack])


@pytest.fixture
def without_collection() -> Iterator[None]:
    """The collector looks at everything that the process holds, far more beside other tests than alone."""
    gc.disable()
    yield
    gc.enable()


def test_ten_times_the_steps_take_little_more_than_ten_times_as_long(without_collection: None) -> None:
    def seconds(steps: int) -> float:
        graph = long(steps)
        began = time.process_time()
        assert roll(graph) == 1
        verify(graph)
        return time.process_time() - began

    # 100 times as long if it were quadratic.
    assert min(seconds(1000) for _ in range(3)) < 40 * max(seconds(100) for _ in range(3))
