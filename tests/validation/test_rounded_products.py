"""What a kernel may be off by that was asked for at a lower precision: what rounding its operands explains, and no more."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from kernel_lsp.validation import agreement, compare, rounded_products, tf32
from kernel_lsp.validation import oracle as oracle_module
from kernel_lsp.validation.oracle import Oracle
from kernel_lsp.validation.progress import Progress
from kernel_lsp.validation.slices import Part

EVERY = len(rounded_products.SAMPLES)


class Attention(nn.Module):
    def forward(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v)


class Product(nn.Module):
    def forward(self, x, y):
        return x @ y


def errors(module, *inputs, precision="tf32", samples=EVERY, wide=True):
    oracle, tree = Oracle(module, []), (inputs, {})
    if not wide:
        oracle.double = None
    reference = oracle.answer(tree)
    return rounded_products.errors(oracle, tree, reference, False, precision, samples)


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


MODULES = {
    "linear": (nn.Linear(512, 64), [randn(8, 512)]),
    "convolution": (nn.Conv2d(64, 32, 3), [randn(2, 64, 9, 9)]),
    "transposed": (nn.ConvTranspose1d(32, 16, 3), [randn(2, 32, 9)]),
    "attention": (Attention(), [randn(2, 4, 64, 32)] * 3),
    "batched": (Product(), [randn(3, 20, 200), randn(3, 200, 10)]),
}


@pytest.mark.parametrize("wide", [True, False], ids=["float64", "eager"])
@pytest.mark.parametrize("precision", ["tf32", "half"])
@pytest.mark.parametrize("name", MODULES)
def test_products_are_off_by_what_eleven_bits_cost(name, precision, wide):
    module, inputs = MODULES[name]
    (one,) = errors(module, *inputs, precision=precision, samples=1, wide=wide)
    (all_of_them,) = errors(module, *inputs, precision=precision, wide=wide)
    assert 1e-4 < one <= all_of_them < 5e-3


def test_where_magnitudes_add_up_errors_of_rounding_average_out_and_those_of_cutting_off_do_not():
    (rounded,) = errors(Product(), torch.rand(64, 4096), torch.rand(4096, 64), samples=1)
    (positive,) = errors(Product(), torch.rand(64, 4096), torch.rand(4096, 64))
    (signed,) = errors(Product(), randn(64, 4096), randn(4096, 64))
    assert rounded < 1e-4 < positive < 3e-4 < 4e-4 < signed


def test_half_precision_is_rounded_and_not_cut_off():
    numbers = torch.rand(64, 1024), torch.rand(1024, 64)
    for factor, least, most in ((1.0, 0.0, 1e-4), (1e6, 1e-4, 3e-4)):  # the larger ones are TF32 numbers
        (found,) = errors(Product(), *(x * factor for x in numbers), precision="half")
        assert least < found < most


def test_tensor_cores_cut_off_what_is_behind_ten_bits():
    x = torch.tensor([1 + 2**-10 + 2**-11, -1 - 2**-11 - 2**-20, 3e38, 1e-40, 0.0, torch.inf, -torch.inf, torch.nan])
    for one in (x, x.double()):
        cut = rounded_products.cut_to_ten_bits(one)
        assert cut.dtype == one.dtype
        assert cut[0] == 1 + 2**-10 and cut[1] == -1 and not cut[4]
        assert 0.999 * one[2] < cut[2] <= one[2]
        assert torch.isposinf(cut[5]) and torch.isneginf(cut[6]) and torch.isnan(cut[7])


def test_the_sum_of_a_tensor_core_is_part_of_it():
    numbers = torch.full((16, 1 << 16), 1.0), torch.full((1 << 16, 16), 1.0)  # which rounding leaves alone
    assert errors(Product(), *numbers)[0] == pytest.approx(2.0**-11, rel=0.01)  # of the number and the mean of all


@pytest.mark.parametrize("module", [nn.Softmax(-1), nn.LayerNorm(16)], ids=["softmax", "norm"])
def test_what_has_no_product_explains_nothing(module):
    assert errors(module, randn(4, 16)) is None


def test_each_output_has_its_own():
    class Two(nn.Module):
        def forward(self, x, y):
            return x @ y, x.sum(-1)

    product, total = errors(Two(), randn(20, 300), randn(300, 20))
    assert product > 1e-4 and total == 0


@pytest.mark.parametrize(("factor", "same"), [(1.0, True), (1e-8, False), (1e6, False)])
def test_half_is_tf32_where_float16_has_no_such_numbers(factor, same):
    x = randn(1000).double() * factor
    assert torch.equal(rounded_products.in_half(x), x.half().double()) == same
    assert torch.equal(rounded_products.in_half(x), tf32.rounded(x)) or same
    assert rounded_products.in_half(torch.tensor([])).numel() == 0


def test_where_sums_cancel_no_more_is_explained_than_a_bound():
    class Cancelling(nn.Module):
        def forward(self, x, y):
            return x @ y - (x @ y).detach().clone() * (1 + 1e-5)

    found = errors(Cancelling(), randn(20, 300), randn(300, 20) * 1000)
    assert found == [0.0] or found[0] <= rounded_products.MOST

    class Near(nn.Module):
        def forward(self, x, y):
            return x @ y - 1e5 * 300

    assert errors(Near(), 300 + randn(20, 300), 330 + randn(300, 20)) == [pytest.approx(0.0, abs=rounded_products.MOST)]


def test_a_slice_explains_what_the_whole_does():
    module = nn.Linear(512, 64)
    x = randn(8, 512)
    oracle = Oracle(module, [{"inputs": [0], "outputs": [0], "size": 8}])
    exact = oracle.answer(((x,), {})).exact
    part = Part(2, 6, exact[2:6], [0])
    scales = [compare.scale_of(exact)]
    (found,) = rounded_products.errors_of_slice(oracle, ((x,), {}), part, False, "tf32", EVERY, scales)
    (whole,) = errors(module, x)
    assert 0.3 * whole < found <= 1.5 * whole


def test_the_module_and_torchs_flags_stay_as_they_are():
    module = nn.Linear(16, 8)
    before = [p.detach().clone() for p in module.parameters()]
    flags = torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()
    errors(module, randn(4, 16))
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert flags == (torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled())


class Layer(nn.Linear):
    """A layer whose rows are independent."""


def validated(monkeypatch, how, out_of, held_to="tf32"):
    """The comparison of what ``out_of`` makes of the layer's answer, where float64 fits as a whole, in slices, or not at all."""
    torch.manual_seed(0)
    module, x = Layer(256, 32), randn(16, 256)
    if how != "whole":
        monkeypatch.setattr(oracle_module, "_SHARE", 0.0)
        monkeypatch.setattr(oracle_module, "_LITTLE", 0)
    along = [{"inputs": [0], "outputs": [0], "size": 16}] if how == "slices" else []
    oracle = Oracle(module, along)
    referee = SimpleNamespace(oracle=oracle, held_to=held_to, explained=0.0, progress=Progress(), mode="interpreter")
    reference = oracle.answer(((x,), {}))
    assert (reference.exact is None, reference.slices is None) == (how != "whole", how != "slices")
    with torch.no_grad():
        rounded = tf32.rounded(x.double()) @ tf32.rounded(module.weight.double()).T + module.bias.double()
        out = out_of(rounded.float())
    return agreement.compared(referee, out, reference, 0.0, ((x,), {})), referee


@pytest.mark.parametrize("how", ["whole", "slices", "eager"])
def test_a_kernel_that_rounds_passes_where_it_may_and_one_that_is_off_does_not(monkeypatch, how):
    found, referee = validated(monkeypatch, how, lambda out: out)
    assert found.passed and 1e-4 < referee.explained < 5e-3
    strict, _ = validated(monkeypatch, how, lambda out: out, held_to="strict")
    assert not strict.passed
    off = torch.zeros(16, 32)
    off[-1, -1] = 0.1
    wrong, _ = validated(monkeypatch, how, lambda out: out + off)
    assert not wrong.passed and ", 31]" in wrong.reason
    assert wrong.reason.endswith("(at TF32)")
    zeros, _ = validated(monkeypatch, how, torch.zeros_like)
    assert not zeros.passed
