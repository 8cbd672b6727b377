"""Elements taken by index."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .registry import case, module, positive, r

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


class Searched(nn.Module):
    """Among numbers that are the same for all, in rows of each, and in an order of its own; a NaN is beyond all numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", torch.tensor([-1.5, -0.5, 0.0, 0.0, 0.25, 1.0, torch.nan]))

    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        alike = torch.searchsorted(self.edges, x), torch.searchsorted(self.edges, x * 2, right=True, out_int32=True)
        of_rows = torch.searchsorted(rows[..., :6].cumsum(-1), x, side="right")
        sorted = torch.searchsorted(rows[..., :5], x, sorter=rows[..., :5].argsort(-1))
        return *alike, of_rows, sorted, torch.searchsorted(self.edges, 0.25) + torch.bucketize(x, self.edges)


module(
    "searched",
    Searched,
    (),
    lambda n: [r(4 + n, 3).masked_fill_(torch.eye(4 + n, 3) > 0, torch.nan), positive(4 + n, 7)],
    kept=1,
)


class Bags(nn.Module):
    """The rows of a table that two dimensions of indices name, in each of the ways that there are."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(20, 8))

    def forward(self, i: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ways = [F.embedding_bag(i, self.table, mode=mode) for mode in ("sum", "mean", "max")]
        ways += [F.embedding_bag(i, self.table, mode=mode, padding_idx=3) for mode in ("sum", "mean", "max")]
        even = F.embedding_bag(i[:, :4].flatten(), self.table, torch.arange(0, 4 * i.shape[0], 4, device=i.device))
        return *ways, F.embedding_bag(i, self.table, mode="sum", per_sample_weights=weights), even


def _indices(*shape: int) -> torch.Tensor:
    """One row has nothing but 3 in it."""
    i = torch.randint(0, 6, shape)
    i[1] = 3
    return i


module("bags", Bags, (), lambda n: [_indices(4 + n, 6), r(4 + n, 6)])
module("bags_of_a_layer", nn.EmbeddingBag, (20, 8), lambda n: [torch.randint(0, 20, (4 + n, 6 + n))], kernels=1)
