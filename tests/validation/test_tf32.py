"""TF32: what rounding the operands of products does to an answer, and whether torch rounds."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from kernel_lsp.validation import tf32
from kernel_lsp.validation.oracle import Oracle


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_rounded_keeps_eleven_bits_and_is_nearest(number):
    found = tf32.rounded(torch.tensor([number], dtype=torch.float64)).item()
    assert abs(found - number) <= 2.0**-11 * abs(number)
    mantissa, _ = torch.frexp(torch.tensor(found, dtype=torch.float64))
    assert (mantissa * 2**11).frac().item() == 0


def test_infinities_stay_and_other_dtypes_are_left_alone():
    assert tf32.rounded(torch.tensor([float("inf"), float("-inf")], dtype=torch.float64)).tolist() == [
        float("inf"),
        float("-inf"),
    ]
    x = torch.tensor([1.00001])
    assert tf32.rounded(x) is x


def error(module: nn.Module, x: torch.Tensor) -> float:
    oracle, tree = Oracle(module, []), ((x,), {})
    return tf32.error(oracle, tree, oracle.answer(tree), False)


@pytest.mark.parametrize("module", [nn.Conv2d(64, 8, 3), nn.ConvTranspose2d(64, 8, 1)], ids=["conv", "transposed"])
def test_a_convolution_is_off_by_what_its_operands_are(module):
    torch.manual_seed(0)
    x = torch.randn(2, 64, 9, 9)
    assert 1e-5 < error(module, x) < 1e-2
    with torch.no_grad():
        module.weight -= module.weight.mean((1, 2, 3) if module.transposed is False else (0, 2, 3), keepdim=True)
    inner = x[..., 3:6, 3:6]
    assert error(module, inner + 1000) > 30 * error(module, inner), "where the sum cancels, rounding costs more"
    before = module.weight.detach().clone()
    error(module, x)
    assert torch.equal(before, module.weight)


def test_a_linear_layer_is_not_rounded_where_torch_does_not():
    x = torch.randn(4, 64)
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = False
        assert error(nn.Linear(64, 8), x) < 1e-6
        torch.backends.cuda.matmul.allow_tf32 = True
        assert error(nn.Linear(64, 8), x) > 1e-5
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def test_on_a_cpu_torch_does_not_round():
    assert not tf32.used(Oracle(nn.Conv2d(8, 8, 3), []), ((torch.randn(1, 8, 5, 5),), {}))


def test_the_settings_stay():
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    tf32.used(Oracle(nn.Linear(2, 2), []), ((torch.randn(1, 2),), {}))
    assert before == (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32)


@pytest.mark.gpu
def test_torch_rounds_where_many_channels_are_convolved():
    torch.manual_seed(0)
    module = nn.Conv2d(64, 128, 3).cuda()
    assert tf32.used(Oracle(module, []), ((torch.randn(8, 64, 64, 64, device="cuda"),), {}))
