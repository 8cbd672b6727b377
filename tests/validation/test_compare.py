from __future__ import annotations

import torch

from kernel_lsp.validation.compare import compare


def test_rounding_of_the_same_size_as_eagers_passes_and_ten_times_more_does_not():
    exact = torch.randn(1000, dtype=torch.float64)
    eager = (exact * (1 + 1e-4)).float()
    assert compare((exact * (1 - 2e-4)).float(), eager, exact).passed
    assert "dtype float64" in compare(exact, eager, exact).reason
    result = compare((exact * (1 - 2e-3)).float(), eager, exact)
    assert "relative error 0.00" in result.reason and "of the elements are off" in result.reason


def test_tf32_does_not_pass_for_float32():
    exact = torch.randn(1000, dtype=torch.float64)
    assert not compare((exact * (1 + 5e-4)).float(), exact.float(), exact).passed


def test_zeros_have_an_error_of_the_size_of_the_answer():
    exact = torch.full((10,), 1e-9, dtype=torch.float64)
    assert not compare(torch.zeros(10), exact.float(), exact).passed


def test_nan_only_where_eager_or_the_oracle_has_it():
    exact = torch.tensor([1.0, float("nan"), float("inf"), 2.0], dtype=torch.float64)
    assert compare(exact.float(), exact.float(), exact).passed
    wrong = exact.float().clone()
    wrong[0] = float("nan")
    assert "output[0] is nan, the module computes 1" in compare(wrong, exact.float(), exact).reason
    tamed = exact.float().clone()
    tamed[1] = 0
    assert not compare(tamed, exact.float(), exact).passed


def test_an_overflow_of_eager_alone_may_be_bettered_or_shared():
    exact = torch.tensor([1e5, 1.0], dtype=torch.float64)
    eager = exact.half()
    assert eager[0].isinf()
    assert compare(eager.clone(), eager, exact).passed


def test_integers_are_exact_and_structures_are_the_same():
    right = torch.tensor([1, 2, 3])
    assert compare(right.clone(), right, right).passed
    assert "33 % of the elements differ" in compare(torch.tensor([1, 2, 4]), right, right).reason
    assert compare([right], (right,), (right,)).reason == "it returns [tensor], the module (tensor)"
    assert not compare({"a": right}, {"b": right}, {"b": right}).passed
    assert compare({"a": right}, {"a": right}, {"a": right}).passed


def test_nothing_at_all_compares():
    empty = torch.empty(0, 3)
    assert compare(empty.clone(), empty, empty.double()).passed
