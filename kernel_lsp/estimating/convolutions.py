"""Which of torch's implementations a convolution takes in eager."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Convolution:
    """``spatial``: 1, 2 or 3 dimensions. ``channels`` and ``columns``: of a group, in and out. ``last``: the input's channels lie last."""

    spatial: int
    channels: int
    columns: int
    groups: int
    dtype: torch.dtype
    transposed: bool
    depthwise: bool
    dilated: bool
    bias: bool
    last: bool
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    output_padding: tuple[int, ...]


def convolution(args: Any, result: Any) -> Convolution:
    """From the arguments of ``aten.convolution``."""
    x, weight, bias, stride, _, dilation, transposed, output_padding, groups = args[:9]
    spatial = weight.dim() - 2
    channels, columns = int(x.shape[-spatial - 1]) // groups, int(result.shape[-spatial - 1]) // groups
    return Convolution(
        spatial=spatial,
        channels=channels,
        columns=columns,
        groups=groups,
        dtype=x.dtype,
        transposed=transposed,
        depthwise=groups > 1 and channels == 1 and not transposed,
        dilated=any(d != 1 for d in dilation),
        bias=bias is not None,
        last=_channels_last(x),
        kernel=tuple(int(n) for n in weight.shape[2:]),
        stride=tuple(stride),
        output_padding=tuple(output_padding),
    )


def _channels_last(x: torch.Tensor) -> bool:
    if x.dim() not in (4, 5) or x.is_contiguous():
        return False
    form = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    return x.is_contiguous(memory_format=form)
