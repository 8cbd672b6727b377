from __future__ import annotations

import math

import pytest
import torch

from kernel_lsp.validation import chunks
from kernel_lsp.validation.compare import agree, compare, within


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


def test_where_float64_has_no_number_at_all_eager_is_what_counts():
    """A mask of ``finfo(x.dtype).min`` is no float32: in float64 a softmax in float32 of a row that is masked is NaN."""
    eager = torch.tensor([0.5, -2.0])
    nowhere = torch.full((2,), float("nan"), dtype=torch.float64)
    assert compare(eager * (1 + 1e-6), eager, nowhere).passed
    off = compare(eager * 1.001, eager, nowhere)
    assert not off.passed and math.isclose(off.error, 2e-3 / 3.25, rel_tol=0.01)


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


@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_piece_by_piece_finds_what_the_whole_finds(monkeypatch, layout):
    exact = torch.randn(37, 41, dtype=torch.float64)
    mine = exact.float().clone()
    mine[30, 7] += 5
    if layout == "transposed":
        exact, mine = exact.t(), mine.t()
    at = "output[30, 7]" if layout == "contiguous" else "output[7, 30]"
    whole = compare(mine, exact.float(), exact)
    monkeypatch.setattr(chunks, "PIECE", 100)
    parts = compare(mine, exact.float(), exact)
    assert whole.reason.startswith(at) and whole.reason == parts.reason
    assert (parts.error, parts.eager_error) == pytest.approx((whole.error, whole.eager_error))
    counted = compare(mine.long(), exact.long(), exact.long())
    assert "of the elements differ" in counted.reason


def test_eager_alone_as_the_reference_allows_what_both_may_be_off_by():
    eager = torch.randn(10_000)
    assert agree(eager * (1 + 5e-4), eager, 1e-4).passed
    assert not agree(eager * (1 + 5e-3), eager, 1e-4).passed
    assert not agree(eager * (1 + 1e-4), eager, 0.0).passed
    assert agree(eager.clone(), eager, 0.0).passed
    poisoned = eager.clone()
    poisoned[17] = float("nan")
    assert "output[17] is nan" in agree(poisoned, eager, 1e-4).reason
    both = eager.clone()
    both[17] = float("nan")
    assert agree(poisoned, both, 1e-4).passed


def test_the_published_standard_of_error():
    eager = torch.tensor([1.0, 0.0, float("nan"), float("inf")])
    assert within(torch.tensor([1.019, 0.009, float("nan"), float("inf")]), eager, 1e-2)
    assert not within(torch.tensor([1.021, 0.0, float("nan"), float("inf")]), eager, 1e-2)
    assert not within(torch.tensor([1.0, 0.0, 0.0, float("inf")]), eager, 1e-2)
    assert not within([eager], eager, 1e-2) and not within(eager[:2], eager, 1e-2)
