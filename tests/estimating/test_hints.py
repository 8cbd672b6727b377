"""What torch does slowly is said where it does so, and not where it does not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.estimating import hints
from tests.estimating.asking import run


def kinds(module, *shapes, version="2.13.0", cudnn=91500, dtype=torch.float32) -> list[str]:
    return [one.kind for one in hints.of(run(module, *shapes, dtype=dtype).operators, version, cudnn)]


class ChannelsLast(nn.Module):
    def __init__(self, last, groups):
        super().__init__()
        self.conv = nn.Conv2d(32, 32, 3, groups=groups)
        self.last = last

    def forward(self, x):
        return self.conv(x.contiguous(memory_format=torch.channels_last) if self.last else x)


@pytest.mark.parametrize(("last", "groups", "expected"), [(True, 32, True), (False, 32, False), (True, 1, False)])
def test_depthwise_under_channels_last(last: bool, groups: int, expected: bool) -> None:
    found = kinds(lambda: ChannelsLast(last, groups), (2, 32, 16, 16))
    assert found == (["depthwise-channels-last"] if expected else [])


@pytest.mark.parametrize(
    ("version", "cudnn", "dtype", "kernel", "expected"),
    [
        ("2.9.1+cu128", 91002, torch.bfloat16, 3, True),
        ("2.9.0", 91002, torch.float16, 3, True),
        ("2.9.1", 91501, torch.bfloat16, 3, False),
        ("2.10.0", 91002, torch.bfloat16, 3, False),
        ("2.9.1", 91002, torch.float32, 3, False),
        ("2.9.1", 91002, torch.bfloat16, 1, False),
    ],
)
def test_three_dimensions_in_half_precision_without_cudnn(version, cudnn, dtype, kernel, expected) -> None:
    found = kinds(lambda: nn.Conv3d(4, 8, kernel), (1, 4, 8, 8, 8), version=version, cudnn=cudnn, dtype=dtype)
    assert found == (["slow-convolution"] if expected else [])


@pytest.mark.parametrize(("dilation", "padding", "expected"), [(2, 1, True), (1, 0, False)])
def test_a_transposed_convolution_with_more_output_padding_than_cudnn_takes(dilation, padding, expected) -> None:
    # torch takes output_padding below the stride or the dilation; cuDNN the first alone.
    module = lambda: nn.ConvTranspose2d(4, 4, 3, stride=1, dilation=dilation, output_padding=padding)  # noqa: E731
    assert kinds(module, (1, 4, 8, 8)) == (["slow-convolution"] if expected else [])


class Layers(nn.Module):
    def __init__(self, kind, width, hidden, **more):
        super().__init__()
        self.layers = kind(width, hidden, **more)

    def forward(self, x):
        return self.layers(x)[0]


@pytest.mark.parametrize(
    ("kind", "hidden", "more", "dtype", "expected"),
    [
        (nn.LSTM, 256, {}, torch.float32, True),
        (nn.LSTM, 192, {}, torch.float32, False),
        (nn.GRU, 256, {}, torch.float32, True),
        (nn.LSTM, 256, {}, torch.float16, False),
        (nn.LSTM, 256, {"num_layers": 2}, torch.float16, True),
        (nn.RNN, 256, {}, torch.float32, False),
    ],
)
def test_recurrent_layers_outside_the_persistent_kernels(kind, hidden, more, dtype, expected) -> None:
    found = kinds(lambda: Layers(kind, 128, hidden, **more), (12, 8, 128), dtype=dtype)
    assert found == (["recurrent-steps"] if expected else [])


def test_a_hint_is_said_once_and_names_its_source() -> None:
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LSTM(256, 256), nn.LSTM(256, 256)

        def forward(self, x):
            return self.first(x)[0] + self.second(x)[0]

    (found,) = hints.of(run(Two, (12, 8, 256)).operators, "2.13.0", 0)
    assert "RNN.cpp" in found.source and "256" in found.message
