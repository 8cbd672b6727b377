"""float8: casts are torch's own, conversions from it are exact, and products of it stay products of it where that is exact."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.functions import FUNCTIONS
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Contract
from kernel_lsp.synthesis.schedule.target import float8_of, target
from kernel_lsp.targets import A100, H100, L4, MI300X

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
DTYPES = pytest.mark.parametrize("dtype", [E4M3, E5M2], ids=["e4m3fn", "e5m2"])
ONE = torch.tensor(0.5)


def eighths(*shape: int, dtype: torch.dtype = E4M3) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


class Applied(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def lowered(function: Any, *inputs: torch.Tensor, on: Any = H100) -> Any:
    return stages.lowered(capture(Applied(function).eval(), inputs), on=on).graph


def product(function: Any, *inputs: torch.Tensor) -> Contract:
    graph = lowered(function, *inputs)
    assert not graph.kept
    (found,) = (v.op for v in topological(graph.outputs) if isinstance(v.op, Contract))
    return found


def multiplied(op: Contract) -> tuple[torch.dtype, torch.dtype]:
    return op.left.dtype, op.right.dtype


# -- casts -----------------------------------------------------------------------------------------------------------


@DTYPES
@pytest.mark.parametrize("wide", [torch.float16, torch.bfloat16, torch.float32])
def test_every_float8_is_a_number_of_the_wider_dtypes(dtype: torch.dtype, wide: torch.dtype) -> None:
    numbers = torch.arange(256).to(torch.uint8).view(dtype)
    converted = numbers.to(wide)
    torch.testing.assert_close(converted.double(), numbers.to(torch.float64), rtol=0, atol=0, equal_nan=True)
    number = ~converted.isnan()
    assert torch.equal(converted.to(dtype).view(torch.uint8)[number], numbers.view(torch.uint8)[number])


@given(st.floats(width=32))
def test_a_constant_is_rounded_as_torch_rounds(number: float) -> None:
    for dtype in (E4M3, E5M2):
        found = FUNCTIONS[f"to_{str(dtype).removeprefix('torch.')}"].evaluate(number)
        wanted = float(torch.tensor(number, dtype=torch.float32).to(dtype))
        assert found == wanted or (found != found and wanted != wanted)


def cast_differently(device: str) -> dict[str, dict[str, list[float]]]:
    environment = dict(os.environ, KERNEL_LSP_TEST_DEVICE=device)
    script = Path(__file__).with_name("float8_casts.py")
    ran = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return {cast: numbers for cast, numbers in json.loads(ran.stdout).items() if numbers}


@pytest.mark.slow
def test_kernels_cast_as_torch_does() -> None:
    assert cast_differently("cpu") == {}


@pytest.mark.gpu
def test_kernels_cast_as_torch_does_on_the_gpu() -> None:
    assert cast_differently("cuda") == {}


# -- products --------------------------------------------------------------------------------------------------------


def test_scales_and_bias_are_operands_of_the_epilogue() -> None:
    def forward(x, y, a, b, bias):
        return torch._scaled_mm(x, y.t(), a, b, bias=bias, out_dtype=torch.bfloat16)

    inputs = eighths(20, 96), eighths(64, 96), torch.rand(20, 1), torch.rand(1, 64), torch.randn(64).bfloat16()
    op = product(forward, *inputs)
    assert multiplied(op) == (E4M3, E4M3) and not op.short_sums
    plan = stages.planned(stages.lowered(capture(Applied(forward).eval(), inputs), on=H100))
    assert len(plan.kernels) == 1 and len(plan.kernels[0].leaves) == 3


@pytest.mark.parametrize("fast", [False, True])
def test_sums_are_short_where_fast_accumulation_is_asked_for(fast: bool) -> None:
    def forward(x, y, s):
        return torch._scaled_mm(x, y.t(), s, s, out_dtype=torch.bfloat16, use_fast_accum=fast)

    module, inputs = Applied(forward).eval(), (eighths(20, 96), eighths(64, 96), ONE)
    source = synthesize(module, capture(module, inputs), class_name="Applied", import_from="applied")[0].source
    assert ("acc = tl.dot(args_1, args_0, acc)" in source) == fast
    assert ("acc += tl.dot(args_1, args_0, max_num_imprecise_acc=RESTART)" in source) == (not fast)


@pytest.mark.parametrize(
    ("through", "multiplies"), [(torch.bfloat16, E4M3), (torch.float16, E4M3), (torch.float32, torch.float16)]
)
def test_exact_conversions_are_left_out(through: torch.dtype, multiplies: torch.dtype) -> None:
    op = product(lambda x, w: x.to(through) @ w.to(through).T, eighths(20, 96), eighths(64, 96))
    assert multiplied(op) == (multiplies, multiplies)
    assert op.full_sums == (through == torch.float32)


@pytest.mark.parametrize(
    "forward",
    [
        lambda x, w: x.to(torch.float32) @ (w.to(torch.float32) * 0.3).T,  # rounded when it is scaled
        lambda x, w: (x.to(torch.float32) + 0.0) @ w.to(torch.float32).T,
        lambda x, w: torch.relu(x.to(torch.float32)) @ w.to(torch.float32).T,
    ],
)
def test_what_is_computed_before_a_product_is_not_taken_for_a_conversion(forward: Any) -> None:
    assert multiplied(product(forward, eighths(20, 96), eighths(64, 96))) == (torch.float32, torch.float32)


def test_a_product_checks_what_torch_export_did_not() -> None:
    """Nothing in an exported scaled product says that its two inner sizes are equal."""
    graph = lowered(
        lambda x, y, s: torch._scaled_mm(x, y.t(), s, s, out_dtype=torch.bfloat16),
        eighths(20, 96),
        eighths(64, 96),
        ONE,
    )
    left, right = (v.shape[1] for v in graph.inputs[:2])
    assert left == right or (left, right) in graph.equal


# -- what stays with torch -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forward", "inputs", "kept"),
    [
        (lambda x: (x * x).to(torch.float32) + 1, (eighths(4, 5),), "aten.mul.Tensor"),
        (lambda x: x.to(torch.float32) + 1, (torch.ones(4, 5).to(torch.float8_e4m3fnuz),), "aten.to.dtype"),
        (lambda x: x.view(torch.uint8) + 1, (eighths(4, 5),), "aten.view.dtype"),
        (lambda x, y: torch.cat([x, y]).to(torch.float32) + 1, (eighths(4, 5), eighths(3, 5)), "aten.cat.default"),
        (
            lambda x, y, s: torch._scaled_mm(x, y.t(), s, s, out_dtype=E4M3).to(torch.float32) + 1,
            (eighths(16, 32), eighths(16, 32), ONE),
            "aten._scaled_mm.default",
        ),
        (
            lambda x, y, s: torch._scaled_mm(x, y.t(), s, s, scale_result=s, out_dtype=torch.bfloat16) + 1,
            (eighths(16, 32), eighths(16, 32), ONE),
            "aten._scaled_mm.default",
        ),
    ],
)
def test_what_has_no_lowering_in_float8(forward: Any, inputs: tuple[torch.Tensor, ...], kept: str) -> None:
    assert lowered(forward, *inputs).kept == [kept]


def test_gpus_differ_in_what_they_do_with_float8() -> None:
    assert [float8_of(one) for one in (A100, MI300X, L4, H100, target("B200"))] == [
        "",
        "",
        "read",
        "rounded",
        "rounded",
    ]
    rounds = (lambda x: (x * 2).to(E4M3)), torch.randn(4, 5)
    reads = (lambda x: x.to(torch.float32) * 2), eighths(4, 5)
    kept = {one.name: [lowered(*case, on=one).kept for case in (rounds, reads)] for one in (A100, L4, H100)}
    assert kept == {"A100": [["aten.to.dtype"]] * 2, "L4": [["aten.to.dtype"], []], "H100": [[], []]}
