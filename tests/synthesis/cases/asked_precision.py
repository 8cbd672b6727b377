"""Products in float32 that are rounded because the setting ``precision`` asks for it."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .registry import case, module, r

TF32 = {"tolerance": 2e-3, "precision": "tf32"}
HALF = {"tolerance": 2e-3, "precision": "half"}
case("asked_tf32_mm", lambda self, x, y: torch.relu(x @ y), lambda n: [r(33 + n, 72), r(72, 24)], kernels=1, **TF32)
case(
    "asked_tf32_attention",
    lambda self, q, k, v: functional.scaled_dot_product_attention(q, k, v),
    lambda n: [r(1, 2, 20 + n, 16), r(1, 2, 20 + n, 16), r(1, 2, 20 + n, 16)],
    **TF32,
)
case("asked_tf32_nothing", lambda self, x: torch.softmax(x, -1), lambda n: [r(7 + n, 33)], precision="tf32")
module("asked_half_linear", nn.Linear, (70, 24), lambda n: [r(19 + n, 70)], kernels=4, **HALF)
module("asked_half_conv2d", nn.Conv2d, (20, 24, 3, 1, 1), lambda n: [r(2, 20, 9 + n, 11)], kernels=4, **HALF)
case(
    "asked_half_bmm",
    lambda self, x, y: torch.bmm(torch.relu(x), y.mT),
    lambda n: [r(3, 17 + n, 40), r(3, 20, 40)],
    **HALF,
)
case("asked_half_square", lambda self, x: x @ x.mT, lambda n: [r(2, 19 + n, 35)], **HALF)
# A reduction comes before what is rounded: another kernel rounds its result, and notes the range.
case(
    "asked_half_softmax",
    lambda self, x, y: torch.softmax(x, -1) @ y,
    lambda n: [r(19 + n, 40), r(40, 24)],
    kernels=5,
    **HALF,
)
case(
    "asked_half_pooled",
    lambda self, x, y: functional.max_pool2d(x, 2).flatten(1) @ y,
    lambda n: [r(5 + n, 4, 6, 6), r(36, 24)],
    kernels=4,
    **HALF,
)


def _scaled(self, x, y):
    largest = x.abs().amax(-1, keepdim=True)
    return (x / largest @ y) * largest


case("asked_half_scaled", _scaled, lambda n: [r(19 + n, 40), r(40, 24)], kernels=5, **HALF)
# What float16 does not hold is multiplied in float32.
module("asked_half_huge", nn.Linear, (70, 24), lambda n: [r(19 + n, 70) * 1e5], precision="half")
module("asked_half_tiny", nn.Linear, (70, 24), lambda n: [r(19 + n, 70) * 1e-8], precision="half")
