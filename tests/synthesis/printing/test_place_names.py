"""The places of a transposed convolution's filter and result have names, which the offset and the mask share."""

from __future__ import annotations

import re

import torch
from torch import nn

from tests.synthesis.schedule.test_tile_order import written


def test_an_offset_and_its_mask_have_one_name_for_a_place() -> None:
    text = written(nn.ConvTranspose2d(6, 8, 3, stride=2), torch.randn(2, 6, 5, 7))
    for name, parts in (("filter_row", "phase_row + tap_row * 2"), ("out_col", "phase_col + pixel_col * 2")):
        assert text.count(parts) == 1 and f"    {name} = {parts}\n" in text
    assert "filter_row[None, :] * 3 + filter_col[None, :]" in text and "(filter_row[:, None] < 3)" in text
    assert "out_row * out_width + out_col" in text and "(out_row < out_height)" in text


def test_along_one_dimension_it_is_a_place() -> None:
    text = written(nn.ConvTranspose1d(6, 8, 3, stride=2), torch.randn(2, 6, 5))
    assert "out_place = phase + pixel * 2" in text and "filter_place = phase + tap * 2" in text


def test_sizes_stay_one_factor() -> None:
    text = written(nn.ConvTranspose2d(32, 8, (3, 3), stride=(2, 3)), torch.randn(2, 32, 5, 7))
    assert not re.search(r"out_(row|col) \* \w+ \* ", text)


def test_a_convolution_has_no_such_places() -> None:
    text = written(nn.Conv2d(6, 8, 3, stride=2), torch.randn(2, 6, 9, 11))
    assert "filter_" not in text and "out_row" not in text


def test_where_a_phase_begins_has_a_name() -> None:
    text = written(nn.ConvTranspose2d(6, 8, 3, stride=2, padding=1), torch.randn(2, 6, 5, 7))
    for along in ("row", "col"):
        start = f"(phase_{along} - ((phase_{along} + 1) % 2) + 1) // 2"
        assert text.count(start) == 1 and f"    first_{along} = {start}\n" in text
        assert f"input_{along} = pixel_{along} - tap_{along}[:, None] + first_{along}\n" in text
