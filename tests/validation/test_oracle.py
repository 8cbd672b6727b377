"""float64 slice by slice gives what float64 as a whole gives, and says how much of it was computed."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.validation import compare, memory, oracle, rounding_bounds, slices

ALONG = [{"size": 64, "inputs": [0], "outputs": [0]}]


@pytest.fixture
def little_memory(monkeypatch):
    """As if there were room for a few rows only."""
    monkeypatch.setattr(oracle, "_LITTLE", 0)
    monkeypatch.setattr(oracle, "_SLICE", 4096)


def answered(seconds=float("inf"), independent=ALONG):
    module = nn.Sequential(nn.Linear(16, 8), nn.Softmax(-1))
    x = torch.randn(64, 16)
    reference = oracle.Oracle(module, independent).answer(((x,), {}), seconds=seconds)
    return module, x, reference


def test_slices_together_are_the_whole(little_memory):
    module, x, reference = answered()
    assert reference.exact is None
    whole = module.double()(x.double())
    seen = torch.zeros(64, dtype=torch.bool)
    for part in reference.slices(reference):
        torch.testing.assert_close(part.exact, whole[part.start : part.stop], rtol=1e-12, atol=1e-12)
        seen[part.start : part.stop] = True
    assert seen.all() and reference.said == ""


def test_the_ends_are_computed_when_time_is_short_and_that_is_said(little_memory):
    _, _, reference = answered(seconds=0.0)
    parts = [(part.start, part.stop) for part in reference.slices(reference)]
    assert parts[0][0] == 0 and parts[1][1] == 64 and len(parts) == 2
    assert "of 64 slices" in reference.said


def test_without_independent_dimensions_and_room_it_says_how_much_it_would_take(little_memory, monkeypatch):
    monkeypatch.setattr(memory, "free", lambda tensors: 100)
    _, _, reference = answered(independent=[])
    assert reference.exact is None and reference.slices is None
    assert "it would take" in reference.said and "there were 100 bytes" in reference.said


def test_what_only_lacks_memory_that_other_lanes_have_is_not_answered_without_float64(little_memory, monkeypatch):
    monkeypatch.setattr(memory, "free", lambda tensors: 100)
    monkeypatch.setattr(memory, "free_alone", lambda tensors: 1 << 30)
    with pytest.raises(torch.OutOfMemoryError, match="float64 would take"):
        answered(independent=[])
    monkeypatch.setattr(memory, "free_alone", lambda tensors: 200)  # nor would it fit alone
    assert "it would take" in answered(independent=[])[2].said


def test_a_reference_keeps_no_tensors_when_it_is_gone(little_memory):
    gc.collect()
    gc.disable()  # what goes only with a collection is there while the next thing is timed
    try:
        _, x, reference = answered()
        list(reference.slices(reference))
        kept = [weakref.ref(x), weakref.ref(reference.eager)]
        del x, reference
        assert [one() for one in kept] == [None, None]
    finally:
        gc.enable()


def test_a_small_example_is_computed_as_a_whole():
    _, _, reference = answered()
    assert reference.exact is not None and reference.exact.dtype == torch.float64


@pytest.mark.parametrize(("size", "rows"), [(4, 2), (5, 2), (11, 5), (64, 64), (65, 64), (7, 7)])
def test_no_slice_is_shorter_than_two(size, rows):
    bounds = slices.bounds(size, rows)
    assert bounds[0][0] == 0 and bounds[-1][1] == size
    assert all(stop - start >= 2 for start, stop in bounds)
    assert [stop for _, stop in bounds[:-1]] == [start for start, _ in bounds[1:]]


class Scaled(nn.Module):
    """A product in float8: x is rounded on the way, so its rounding is part of the reference."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randn(32, 64).to(torch.float8_e4m3fn))
        self.register_buffer("scale", torch.rand(1, 32) + 0.5)
        self.register_buffer("bias", torch.randn(32).bfloat16())

    def forward(self, x, scale):
        x8 = (x / scale).to(torch.float8_e4m3fn)
        return torch._scaled_mm(x8, self.weight.t(), scale, self.scale, self.bias, out_dtype=torch.bfloat16)


def test_a_scaled_product_has_a_reference_in_float64():
    module, x, scale = Scaled(), torch.randn(16, 64), torch.rand(16, 1) + 0.5
    subject = oracle.Oracle(module, [])
    reference = subject.answer(((x, scale), {}))
    x8 = (x.double() / scale.double()).to(torch.float8_e4m3fn)
    product = x8.double() @ module.weight.double().t()
    exact = product * scale.double() * module.scale.double() + module.bias.double()
    torch.testing.assert_close(reference.exact, exact, rtol=1e-14, atol=1e-14)
    assert reference.eager.dtype == torch.bfloat16 and not subject.limits
    torch.testing.assert_close(reference.eager.double(), exact, rtol=1e-2, atol=1e-2)
    floors, worst = rounding_bounds.bounds(subject, ((x, scale), {}), reference, False)
    assert floors[0] > 0 and 0 < worst < 0.05


def test_a_product_that_devices_scale_otherwise_has_no_reference_in_float64():
    class OfResult(nn.Module):
        def forward(self, x, y, scale):
            return torch._scaled_mm(x, y.t(), scale, scale, scale_result=scale, out_dtype=torch.float32)

    x, y = torch.randn(16, 64).to(torch.float8_e4m3fn), torch.randn(32, 64).to(torch.float8_e4m3fn)
    subject = oracle.Oracle(OfResult(), [])
    reference = subject.answer(((x, y, torch.tensor(0.5)), {}))
    assert reference.exact is reference.eager
    assert subject.limits == ["the reference is eager in its own precision, not float64 (NotImplementedError there)"]


def test_float64_goes_on_where_it_draws_other_numbers_beside_the_example():
    class Redrawn(nn.Module):
        """In float64 it draws once more where x is off the example by a unit in float32's last place, as neighbours are."""

        def __init__(self, example):
            super().__init__()
            self.register_buffer("example", example)

        def forward(self, x):
            y = F.dropout(x, 0.5, training=True)
            moved = ((x - self.example).abs() > 2**-28 * self.example.abs()).any()
            return y + torch.rand(()) if x.dtype is torch.float64 and moved else y

    x = torch.randn(16, 8)
    held = oracle.Oracle(Redrawn(x), [])
    rounding_bounds.bounds(held, ((x,), {}), held.answer(((x,), {})), False)
    assert held.answer(((x,), {})).exact.dtype == torch.float64 and held.limits == []


@pytest.mark.parametrize("begins", [0.0, 1e-6, 1e-4])
def test_a_branch_behind_a_scale_of_nearly_nothing_shows_in_the_answer(begins):
    class LayerScale(nn.Module):
        def __init__(self):
            super().__init__()
            self.gamma = nn.Parameter(begins * torch.ones(8))

        def forward(self, x):
            return x + self.gamma * torch.tanh(x)

    module, x = LayerScale(), torch.randn(16, 8)
    held = oracle.Oracle(module, [])
    held.perturb(3)
    branch = held.answer(((x,), {})).eager - x
    assert branch.abs().mean() > 0.01 * x.abs().mean()


@pytest.mark.parametrize("begins", [1e-5, 1e-4, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_moved_parameters_keep_a_sign_that_all_elements_have(begins, sign):
    class Normal(nn.Module):
        """The logarithm of a density: of a negative sigma there is none."""

        def __init__(self):
            super().__init__()
            self.sigma = nn.Parameter(sign * begins * torch.linspace(0.1, 1.9, 64))

        def forward(self, x):
            sigma = sign * self.sigma
            return -0.5 * (x / sigma) ** 2 - torch.log(sigma)

    module = Normal()
    before = module.sigma.clone()
    held = oracle.Oracle(module, [])
    held.perturb(3)
    assert held.answer(((torch.randn(16, 64),), {})).eager.isfinite().all()
    assert (module.sigma != before).all()


class OfTime(nn.Module):
    """An embedding of a timestep, which is float32 whatever the module is; ``last`` is applied to it at first."""

    def __init__(self, last=lambda e: e):
        super().__init__()
        self.last = last
        self.project = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x, t):
        frequencies = torch.exp(-torch.arange(4, dtype=torch.float32))
        angles = t[:, None].float() * frequencies * torch.tensor(0.1, dtype=torch.float32)
        embedding = self.project(self.last(torch.cat([angles.cos(), angles.sin()], -1)))
        return self.norm(x) * embedding[:, None]


OFFSET = 1000 + torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0)), torch.tensor([3, 700])


def test_conversions_to_float32_are_lifted_where_float64_does_not_run_without():
    module = OfTime()
    held = oracle.Oracle(module, [])
    reference = held.answer((OFFSET, {}))
    assert reference.exact.dtype == torch.float64 and not held.limits
    x, t = (one.double() for one in OFFSET)
    angles = t[:, None] * torch.exp(-torch.arange(4).double()) * torch.tensor(0.1).double()
    wide = oracle.widen(module)
    exact = wide.norm(x) * wide.project(torch.cat([angles.cos(), angles.sin()], -1))[:, None]
    torch.testing.assert_close(reference.exact, exact, rtol=1e-12, atol=1e-12)
    module.float()
    assert compare.compare(reference.eager, reference.eager, reference.exact).eager_error > 1e-6
    floors, worst = rounding_bounds.bounds(held, (OFFSET, {}), reference, False)
    assert floors[0] > 0 and 0 < worst < 1e-3


def test_conversions_to_float32_stay_where_float64_runs_with_them():
    class Rounds(nn.Module):
        def forward(self, x):
            return (x / 3).float() * 2

    held = oracle.Oracle(Rounds(), [])
    assert held.answer(((torch.randn(8),), {})).exact.dtype == torch.float32 and not held.lifts


def test_what_looks_at_the_bits_of_float32_is_not_lifted_and_may_be_off_by_what_eager_moves():
    bits = OfTime(lambda e: (e.view(torch.int32) & -256).view(torch.float32))
    held = oracle.Oracle(bits, [])
    reference = held.answer((OFFSET, {}))
    assert reference.exact is reference.eager and not held.lifts
    assert held.limits == ["the reference is eager in its own precision, not float64 (RuntimeError there)"]
    floors, worst = rounding_bounds.bounds(held, (OFFSET, {}), reference, False)
    assert floors == [0.0] and 1e-6 < worst < 1e-3
