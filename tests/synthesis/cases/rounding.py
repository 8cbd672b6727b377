"""Bitwise operators on integers."""

from __future__ import annotations

import torch

from .registry import case, r


def _bytes(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8)


case(
    "int4_unpacked",
    lambda self, packed, scale: torch.stack([packed & 15, packed >> 4], -1).flatten(-2).float() * scale,
    lambda n: [_bytes(6 + n, 8), r(6 + n, 1)],
    kernels=1,
)


def _shifted(self: object, x: torch.Tensor, y: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """By numbers that the width does not hold, and by those of a tensor, among them negative ones."""
    bytes = x << 3, x >> 8, x << -1, x >> 257, x >> places.to(torch.uint8), x << places.to(torch.uint8), 200 >> (x & 7)
    return *bytes, x >> places, y >> places, y << places, y >> -1, y << 9, y >> 257


case(
    "shifts_of_bytes",
    _shifted,
    lambda n: [_bytes(7 + n, 5), _bytes(7 + n, 5).to(torch.int8), torch.randint(-3, 11, (7 + n, 5)).to(torch.int8)],
    kernels=1,
)
