from __future__ import annotations

import math

import pytest
import torch

from kernel_lsp.validation import draw_statistics


@pytest.mark.parametrize("count", [draw_statistics.MANY, draw_statistics.FEW])
def test_other_draws_of_one_distribution_are_not_told_apart(count: int) -> None:
    generator = torch.Generator().manual_seed(0)

    def draws(p: float, scale: float) -> list[torch.Tensor]:
        return [(torch.rand(200, generator=generator) > p) * scale for _ in range(count)]

    for _ in range(20):
        assert draw_statistics.difference(draws(0.5, 2.0), draws(0.5, 2.0)) == ""
    assert "mean of output 0" in draw_statistics.difference(draws(0.5, 1.0), draws(0.5, 2.0))
    assert "mean square of output 0" in draw_statistics.difference(draws(0.1, 1 / 0.9), draws(0.5, 2.0))


def test_a_mean_that_is_zero_but_for_rounding_is_not_told_apart() -> None:
    generator = torch.Generator().manual_seed(0)

    def draws(rounding: float) -> list[torch.Tensor]:
        signs = [torch.rand(200, generator=generator).sub(0.5).sign() for _ in range(16)]
        return [torch.cat((one, -one)).double() + rounding for one in signs]

    assert draw_statistics.difference(draws(0.0), draws(1e-7)) == ""
    assert "mean of output 0" in draw_statistics.difference(draws(0.0), draws(0.01))


def test_elements_that_are_not_finite_are_counted_and_hide_nothing() -> None:
    generator = torch.Generator().manual_seed(0)

    def draws(number: float, scale: float = 1.0) -> list[torch.Tensor]:
        return [torch.cat((torch.randn(200, generator=generator) * scale, torch.tensor([number]))) for _ in range(16)]

    for number in (math.nan, math.inf):
        assert draw_statistics.difference(draws(number), draws(number)) == ""
        assert "mean square of output 0" in draw_statistics.difference(draws(number, 2.0), draws(number))
    assert "share of NaN of output 0" in draw_statistics.difference(draws(0.0), draws(math.nan))
    one = [*draws(0.0)[:15], draws(math.nan)[0]]
    assert draw_statistics.difference(one, draws(0.0)) == "output 0 has NaN in 1 of 16 calls, the module's in none"
    assert "share of infinite elements of output 0" in draw_statistics.difference(draws(0.0), draws(-math.inf))
    none = [torch.full((4,), math.nan) for _ in range(16)]
    assert draw_statistics.difference(none, none) == ""


def test_draws_that_spread_widely_are_not_allowed_more_for_it() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        right = [torch.randn(200, generator=generator) for _ in range(16)]
        wild = [torch.empty(200).cauchy_(generator=generator) for _ in range(16)]
        assert "mean square of output 0" in draw_statistics.difference(wild, right)


def test_what_happens_in_few_draws_is_not_told_apart() -> None:
    """A layer that is left out now and then, in no draw of the one and in some of the other."""
    generator = torch.Generator().manual_seed(0)
    for left_out in (0, 1, 3):
        kept = [torch.randn(200, generator=generator) for _ in range(32)]
        for i in range(left_out):
            kept[5 * i] = torch.zeros(200)
        assert draw_statistics.difference(kept[:16], kept[16:]) == ""


def test_draws_of_another_shape_or_dtype_are_told_apart() -> None:
    draws = [torch.zeros(4, 3) for _ in range(4)]
    assert draw_statistics.difference(draws, draws) == ""
    said = draw_statistics.difference([t.T for t in draws], draws)
    assert said == "output 0 is float32 of shape [3, 4], the module's float32 of shape [4, 3]"
    assert "output 0 is float16" in draw_statistics.difference([t.half() for t in draws], draws)
