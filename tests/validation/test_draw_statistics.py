from __future__ import annotations

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


def test_draws_of_another_shape_or_dtype_are_told_apart() -> None:
    draws = [torch.zeros(4, 3) for _ in range(4)]
    assert draw_statistics.difference(draws, draws) == ""
    said = draw_statistics.difference([t.T for t in draws], draws)
    assert said == "output 0 is float32 of shape [3, 4], the module's float32 of shape [4, 3]"
    assert "output 0 is float16" in draw_statistics.difference([t.half() for t in draws], draws)
