"""Elements taken by index."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .registry import case, r

case("embedding", lambda self, i, w: F.embedding(i, w) * 2.0, lambda n: [torch.randint(0, 11, (3, 5 + n)), r(11, 24)])
case("gathered", lambda self, x, i: x.gather(1, i), lambda n: [r(4 + n, 24), torch.randint(0, 24, (4 + n, 24))])

case("list_of_places", lambda self, x: x[:, [0, 2, 3]] * 2.0, lambda n: [r(4 + n, 8)], kernels=1)
case("list_of_one_place", lambda self, x: x[..., [-2], :] * 2.0, lambda n: [r(4 + n, 8)], kernels=1)
case("list_in_steps", lambda self, x: x[[1, 3, 5]] + 1.0, lambda n: [r(6 + n, 8)], kernels=1)
case(
    "numbers_written_out",
    lambda self, x: x * torch.tensor([[1.0, -2.5], [0.1, 3.0]], device=x.device) + torch.tensor([4.0], device=x.device),
    lambda n: [r(3 + n, 2, 2)],
    kernels=1,
)
case(
    "bools_written_out",
    lambda self, x: torch.where(torch.tensor([True, False, True], device=x.device), x, 0.0),
    lambda n: [r(3 + n, 3)],
)
