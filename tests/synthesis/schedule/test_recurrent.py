"""Recurrences: which schedules they get, what their programs need of a launch, and that all of them compute the same."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sympy
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.build import Build
from kernel_lsp.synthesis.graph.loops import results
from kernel_lsp.synthesis.graph.lowered import Graph
from kernel_lsp.synthesis.graph.names import variable_name
from kernel_lsp.synthesis.graph.value import Given, Held, Input, Recurrence, Value
from kernel_lsp.synthesis.kernel.arguments import Arguments
from kernel_lsp.synthesis.kernel.execution_plan import Kernel, Planned
from kernel_lsp.synthesis.operators.filling import full
from kernel_lsp.synthesis.passes.regions import plan
from kernel_lsp.synthesis.printing.triton import definition
from kernel_lsp.synthesis.schedule.choices import scheduled
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.program import Program
from kernel_lsp.synthesis.schedule.schedules import Resident, Schedule, Steps
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from kernel_lsp.synthesis.stages import lowered, planned

H100 = target("H100")


def found(layer: nn.Module, *shape: int, joined: bool = False) -> tuple[Kernel, Planned]:
    """The kernel of a layer's (first) recurrence, for an input of ``shape``."""
    exported = capture(layer.eval(), (torch.empty(shape, dtype=next(layer.parameters()).dtype, device="meta"),))
    plan = planned(lowered(exported, on=H100, joined=joined))
    return next(kernel for kernel in plan.kernels if kernel.loop is not None), plan


def meta(kind: type[nn.Module], *sizes: int, **more: Any) -> nn.Module:
    return kind(*sizes, device="meta", **more)


@cache
def lstm(width: int) -> tuple[Kernel, Planned]:
    return found(meta(nn.LSTM, 32, width), 50, 40, 32)


def written(kernel: Kernel, plan: Planned, schedule: Schedule) -> Program:
    names = {n: variable_name(v) for v in plan.graph.inputs for n in v.shape if isinstance(n, sympy.Symbol)}
    return scheduled(kernel, "kernel", Arguments(names), plan.hints, plan.plan.stored, schedule, set())


@pytest.mark.parametrize(
    ("layer", "batch", "kind", "programs"),
    [
        (meta(nn.LSTM, 64, 64), 10, Resident, 1),
        (meta(nn.LSTM, 256, 256), 10, Resident, 16),
        (meta(nn.GRU, 256, 256), 100, Resident, 112),
        (meta(nn.RNN, 256, 256), 10, Resident, 16),
        (meta(nn.LSTM, 512, 512, dtype=torch.float16), 16, Resident, 32),
        (meta(nn.LSTM, 256, 256), 5000, Steps, 313),
        (meta(nn.LSTM, 1024, 1024), 10, Steps, 1),
    ],
)
def test_the_default_keeps_the_weights_on_chip_where_they_fit(
    layer: nn.Module, batch: int, kind: type, programs: int
) -> None:
    kernel, plan = found(layer, 50, batch, layer.input_size)  # type: ignore[arg-type]
    first = space(kernel, H100, plan.hints)[0]
    assert isinstance(first, kind)
    assert cost(kernel, first, H100, plan.hints).programs == programs


@pytest.mark.parametrize("name", ["H100", "L4", "A100", "RTX 4090"])
@pytest.mark.parametrize("width", [20, 64, 200, 256, 512])
def test_programs_that_wait_for_each_other_run_at_once(name: str, width: int) -> None:
    gpu = target(name)
    kernel, plan = lstm(width)
    schedules = space(kernel, gpu, plan.hints)
    assert any(isinstance(schedule, Steps) for schedule in schedules), "which any size of batch takes"
    for schedule in schedules:
        program = written(kernel, plan, schedule)
        if not isinstance(schedule, Resident) or schedule.units >= width:
            assert not program.together and not program.zeroed
            continue
        assert program.together and len(program.zeroed) == 1
        split = -(-width // schedule.units)
        (most,) = [most for size, most in program.limits if size == kernel.loop.loop.held[0].shape[0]]  # type: ignore[union-attr]
        assert split * (most // schedule.rows) <= gpu.multiprocessors
        held = 4 * schedule.units * max(16, 1 << (width - 1).bit_length()) * 4
        assert held < gpu.shared_memory


@pytest.mark.parametrize(("width", "depth", "stages"), [(200, 16, 2), (20, 32, 1), (20, 0, 1)])
def test_no_load_runs_ahead_of_the_step_before(width: int, depth: int, stages: int) -> None:
    kernel, plan = lstm(width)
    assert written(kernel, plan, Steps(16, depth, 4)).num_stages == stages
    assert written(kernel, plan, Resident(16, 16, 4, 4)).num_stages == 1


def test_other_gpus_get_programs_that_do_not_wait_for_each_other() -> None:
    kernel, plan = found(meta(nn.LSTM, 256, 256), 50, 10, 256)
    assert all(isinstance(schedule, Steps) for schedule in space(kernel, target("MI300X"), plan.hints))


def test_weights_that_stay_on_chip_are_estimated_to_be_faster() -> None:
    kernel, plan = found(meta(nn.LSTM, 256, 256), 512, 10, 256)
    seconds = {type(s): cost(kernel, s, H100, plan.hints).seconds for s in space(kernel, H100, plan.hints)}
    assert 2e-3 < seconds[Resident] < seconds[Steps] / 3


def test_layers_of_a_stack_run_in_one_launch() -> None:
    kernel, plan = found(meta(nn.LSTM, 128, 256, num_layers=6), 512, 10, 128, joined=True)
    assert [k for k in plan.kernels if k.loop is not None] == [kernel]
    first = space(kernel, H100, plan.hints)[0]
    assert cost(kernel, first, H100, plan.hints).programs == 96
    text = definition(written(kernel, plan, first), "")
    assert text.count("_wait_for(") == 2 and text.count("tl.dot(") == 6


def slow(*values: str) -> Any:
    """Parameters that make test-slow or make test-cases has: make test has another layer with such a schedule."""
    return pytest.param(*values, marks=pytest.mark.slow)


def order_of(text: str, names: list[str]) -> list[int]:
    return [text.index(f"        {name} = ") for name in names]


@pytest.mark.parametrize(
    ("kind", "gates"),
    [
        (nn.LSTM, ["input_gate", "forget_gate", "candidate", "output_gate"]),
        (nn.GRU, ["reset_gate", "update_gate", "candidate"]),
    ],
    ids=["lstm", "gru"],
)
@pytest.mark.parametrize("width", [20, 256])
def test_gates_have_the_names_and_the_order_of_torch(kind: type[nn.Module], gates: list[str], width: int) -> None:
    kernel, plan = found(meta(kind, 32, width), 50, 10, 32)
    for schedule in space(kernel, H100, plan.hints):
        text = definition(written(kernel, plan, schedule), "")
        for names in (gates, [f"projected_{gate}" for gate in gates]):
            if f"        {names[0]} = " in text:
                assert order_of(text, names) == sorted(order_of(text, names))
        assert f"        {gates[0]} = tl.sigmoid(" in text
        assert "projected_part" not in text and "weight_hh_l0_part" not in text
        if isinstance(schedule, Resident):
            assert f"{', '.join(f'{gate}_acc' for gate in gates)}" in text


@pytest.mark.parametrize("width", [20, 64])
def test_one_program_has_no_axis_of_units_and_no_bare_sizes(width: int) -> None:
    kernel, plan = found(meta(nn.LSTM, 32, width), 50, 10, 32)
    units = max(32, width)
    program = written(kernel, plan, Resident(units, 16, 4, 4))
    text = definition(program, "")
    assert len(program.grid) == 1 and "tl.program_id(1)" not in text and "batch_block" not in text
    assert (
        "tl.load(projected_tile_ptr + 3 * HIDDEN," in text and text.count("projected_tile_ptr = projected_ptr + ") == 1
    )
    assert str(2 * width) not in text and str(3 * width) not in text
    assert ("gate_row" in text) == (units != width)
    assert [v.wanted for v in program.blocks] == ["BLOCK_HIDDEN", "BLOCK_BATCH", "SPLIT"]


@pytest.mark.parametrize(
    "layer",
    [meta(nn.LSTM, 32, 64), meta(nn.GRU, 32, 64, bidirectional=True), meta(nn.RNN, 32, 64, num_layers=2)],
    ids=["lstm", "two directions", "two layers"],
)
@pytest.mark.parametrize("joined", [False, True])
def test_zeros_before_the_first_step_are_not_stored(layer: nn.Module, joined: bool) -> None:
    kernel, plan = found(layer, 50, 10, 32, joined=joined)
    for schedule in space(kernel, H100, plan.hints):
        text = definition(written(kernel, plan, schedule), "")
        assert "tl.store(" not in text[: text.index("    for step in range(")]
        assert ("step > 0" in text) == ("hidden_before = " in text or "hidden_part = " in text)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_one_program_keeps_the_state_in_registers(dtype: torch.dtype) -> None:
    kernel, plan = found(meta(nn.LSTM, 32, 64, dtype=dtype), 50, 10, 32)
    text = definition(written(kernel, plan, Resident(64, 16, 4, 4)), "")
    assert "tl.load(hidden_ptr" not in text and "barrier" not in text and "_wait_for" not in text
    if dtype == torch.float16:
        assert "tl.dot(weight_hh_l0, hidden.to(tl.float16))" in text  # as it would be read back


def test_what_programs_wait_for_is_said_once() -> None:
    kernel, plan = found(meta(nn.LSTM, 128, 256, num_layers=2), 512, 10, 128, joined=True)
    text = definition(written(kernel, plan, Resident(16, 16, 4, 4)), "")
    lines = [line.strip() for line in text.splitlines()]
    for before, said in (
        ("_arrive(", "Other programs read these units"),
        ("_wait_for(", "The layer below is other programs'"),
        ("weight_below_high", "float32 as two float16 planes"),
    ):
        assert text.count(said) == 1 and text.index(said) < text.index(before)
    assert max(map(len, (line for line in lines if line.startswith("#")))) <= 88


def test_weights_of_all_layers_are_called_after_none_of_them() -> None:
    kernel, plan = found(meta(nn.GRU, 64, 64, num_layers=2), 50, 10, 64, joined=True)
    text = definition(written(kernel, plan, Resident(64, 16, 4, 4)), "")
    assert "weight_hh_ptr" in text and "weight_hh_l0" not in text


def test_a_layer_that_is_one_program_waits_for_the_layer_below_alone() -> None:
    kernel, plan = found(meta(nn.LSTM, 64, 64, num_layers=2), 50, 10, 64, joined=True)
    text = definition(written(kernel, plan, Resident(64, 16, 4, 4)), "")
    assert text.count("_wait_for(") == 1 and text.count("_arrive(") == 1
    assert text.count("tl.load(hidden_ptr") == 1  # what the layer below made


def test_a_recurrence_without_products_has_no_barrier() -> None:
    """h = a * h + b, of two tensors [steps, rows]."""
    steps, rows = sympy.Symbol("steps", integer=True, positive=True), sympy.Integer(300)
    a, b = (Value(Input(name, "argument"), (steps, rows), torch.float32, name) for name in "ab")
    zero = full(shape=(rows,), out=torch.float32, fill=0.0)
    held = Value(Held(), (rows,), torch.float32, "state")
    parts = tuple(Value(Given(0), (rows,), torch.float32, name) for name in "ab")
    after = Build.pointwise("add", Build.pointwise("mul", parts[0], held), parts[1], name="next_state")
    loop = Recurrence("", steps, False, (held,), parts, (after,), (zero,), (a, b))
    result = results(loop, 0, torch.float32, "state", each=True)
    graph = Graph(inputs=[a, b], outputs=[result], hints={steps: 7})
    (kernel,) = [step for step in plan(graph).steps if isinstance(step, Kernel)]
    first = space(kernel, H100, graph.hints)[0]
    assert isinstance(first, Steps)
    text = definition(scheduled(kernel, "kernel", Arguments({steps: "steps"}), graph.hints, {a, b}, first, set()), "")
    assert "for step in range(n_steps):" in text and "a * state + b" in text
    assert "barrier" not in text and "tl.dot" not in text


@pytest.mark.parametrize(
    ("case", "variant"),
    [
        ("lstm", "through all steps, weights kept on chip"),
        slow("lstm", "weights read 32 at a time"),
        ("lstm", "16 units and 16 rows"),
        ("lstm_states", "weights read 16 at a time"),
        ("lstm_two_layers", "recurrences in one launch"),  # 16 units a program, so that two wait for each other
        slow("lstm_two_layers", "through all steps, weights kept on chip"),
        slow("gru_bidirectional", "weights read 16 at a time"),
        ("gru_half", "through all steps, weights kept on chip"),
        slow("rnn_relu", "weights read 32 at a time"),
        ("rnn_relu", "recurrences in one launch; 32 units"),
    ],
)
def test_every_schedule_computes_the_same(case: str, variant: str, interpreter: Any, tmp_path: Path) -> None:
    request = {"case": case, "folder": str(tmp_path), "variant": variant}
    interpreter.stdin.write(json.dumps(request) + "\n")
    interpreter.stdin.flush()
    answer = json.loads(interpreter.stdout.readline())
    assert "problem" not in answer, answer["trace"]
    assert all(answer["inside"]) and max(answer["errors"]) <= (2e-3 if "half" in case else 2e-5), answer["errors"]


def test_torch_comes_first_where_weights_would_be_read_at_each_step() -> None:
    layer = meta(nn.LSTM, 1024, 1024).eval()
    exported = capture(layer, (torch.empty(20, 4, 1024, device="meta"),))
    first, *others = synthesize(layer, exported, class_name="LSTM", import_from="torch.nn")
    assert first.variant == "recurrent layers left to torch" and first.kept
    assert not any(other.kept for other in others)
