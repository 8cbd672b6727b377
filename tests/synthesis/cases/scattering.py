"""Other elements in places that a mask tells, or that are few; distances of rows, bilinear forms."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .registry import case, module, r


def _masked(self: Any, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[y < 0] = 0.5
    y[:, 0] = 1.0
    y[:, -1] += x[:, 0]
    return y


def _rows_masked(self: Any, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    y = x * 2.0
    y[rows] = -1.0
    return y


def _two_by_two(self: Any, x: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(x.shape[0], 8, device=x.device)
    table[:, 0::2] = x.sin()
    table[:, 1::2] = x.cos()
    return table


def _places(n: int) -> torch.Tensor:
    return torch.stack([torch.randperm(9)[:4] for _ in range(4 + n)])


def _points_embedded(self: Any, x: torch.Tensor, labels: torch.Tensor, tables: torch.Tensor) -> torch.Tensor:
    y = x.sin()  # as an encoder of prompts: rows of points that are none, or of one of two kinds
    y[labels == -1] = 0.0
    y[labels == -1] += tables[0:1]
    y[labels == 0] += tables[1:2]
    return y


def _rows_replaced(self: Any, x: torch.Tensor, rows: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[rows] = row
    y[rows[:, 0].logical_not()] = row[:1]
    y[:, rows[0]] = x[:, :1] * 2.0
    return y


def _rows_in_order(self: Any, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    y = x * 2.0
    y[torch.arange(x.shape[0]) < 3] = rows  # one for each row that the mask selects: torch runs it
    return y


def _quotients(self: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    result = torch.full_like(x, -1.0)
    mask = y > 0
    result[mask] = torch.log(y[mask]) + x[mask] / y[mask]
    return result


def _boxes(self: Any, boxes: torch.Tensor) -> torch.Tensor:
    area = boxes.new_zeros(boxes.shape[:-1])
    valid = (boxes[..., 2] > boxes[..., 0]) & (boxes[..., 3] > boxes[..., 1])
    area[valid] = (boxes[valid][:, 2] - boxes[valid][:, 0]) * (boxes[valid][:, 3] - boxes[valid][:, 1])
    return area


def _in_steps(self: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    result = x.clone()
    result[x > 0] *= 3
    result[x > 0] += y[x > 0]
    result[y > 0] = y[y > 0].exp()
    result[:, y[0] < 0] -= y[:, y[0] < 0]
    return result


def _converted(self: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    counts, half, chosen = (x * 8).int(), x.half(), x > 0.5
    counts[y > 0] = (y[y > 0] * 100).int()
    counts[y < -1] = 2.7
    half[y > 0] += y[y > 0]
    chosen[y < 0] = y[y < 0] > -0.5
    chosen[y < -1] |= x[y < -1] < 0
    return torch.where(chosen, counts + half, half)


def _undefined_outside(self: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with_nan = torch.where(y > 0.5, float("nan"), torch.where(y < -0.5, float("inf"), y))
    result, mask = x.clone(), y.abs() <= 0.5
    result[mask] += with_nan[mask]
    result[mask] *= 1.0 / (1.0 + with_nan[mask])
    return result


case(
    "points_embedded",
    _points_embedded,
    lambda n: [r(3, 5 + n, 8), torch.randint(-1, 2, (3, 5 + n)), r(2, 8)],
    kernels=1,
)
case("rows_replaced", _rows_replaced, lambda n: [r(5 + n, 4, 6), torch.rand(5 + n, 4) > 0.5, r(4, 6)[:1]], kernels=1)
case("rows_filled_in_order", _rows_in_order, lambda n: [r(5 + n, 6), r(3, 6)], kept=1)
case("masked_quotients", _quotients, lambda n: [r(5 + n, 6), r(5 + n, 6)], kernels=1)
case("masked_boxes", _boxes, lambda n: [r(5 + n, 7, 4)], kernels=1)
case("masked_in_steps", _in_steps, lambda n: [r(5 + n, 6), r(5 + n, 6)], kernels=1)
case("masked_converted", _converted, lambda n: [r(5 + n, 6), r(5 + n, 6)], kernels=1, tolerance=1e-3)
case("masked_undefined", _undefined_outside, lambda n: [r(5 + n, 6), r(5 + n, 6)], kernels=1)
case("mask_filled", _masked, lambda n: [r(5 + n, 6)], kernels=1)
case("rows_filled", _rows_masked, lambda n: [r(5 + n, 6), torch.rand(5 + n) > 0.5], kernels=1)
case("every_other_set", _two_by_two, lambda n: [r(5 + n, 4)], kernels=1)
case(
    "one_place_copied",  # a step of a cache
    lambda self, cache, new, at: cache.index_copy(1, at, new) * 2.0,
    lambda n: [r(3, 9 + n, 4), r(3, 1, 4), torch.tensor([4])],
    kernels=1,
)
case(
    "places_added",
    lambda self, x, new, at: x.index_add(0, at[:3], new[:3], alpha=0.5),
    lambda n: [r(9 + n, 4), r(4, 4), torch.tensor([4, 0, 4, 1])],
    kernels=1,
)
case(
    "places_filled",
    lambda self, x, at: x.index_fill(1, at[:2], -2.0),
    lambda n: [r(4 + n, 9), torch.tensor([4, 0, 1])],
    kernels=1,
)
case(
    "places_of_a_mask_filled",  # with a number that is not zero
    lambda self, x, at: x.gt(0).index_fill(1, at[:2], 3) * 3,
    lambda n: [r(4 + n, 9), torch.tensor([4, 0, 1])],
    kernels=1,
)
case(
    "places_filled_from_the_end",
    lambda self, x, at: x.index_fill(1, at[:2] - 2, -2.0),
    lambda n: [r(4 + n, 9), torch.tensor([4, 0, 1])],
    kernels=1,
)
case(
    "places_filled_with_a_fraction",
    lambda self, x, at: x.long().index_fill(1, at[:2], -2.5) * 2,
    lambda n: [r(4 + n, 9), torch.tensor([4, 0, 1])],
    kernels=1,
)
case(
    "places_filled_below_zero",  # which wraps around
    lambda self, x, at: x.to(torch.uint8).index_fill(1, at[:2], -2).float(),
    lambda n: [r(4 + n, 9).abs(), torch.tensor([4, 0, 1])],
    kernels=1,
)
case(
    "scattered",
    lambda self, x, at, new: x.scatter(1, at[:, :3], new[:, :3]),
    lambda n: [r(4 + n, 9), _places(n), r(4 + n, 4)],
)
case(
    "scattered_ones",
    lambda self, x, at: x * torch.zeros_like(x).scatter_(1, at[:, :3], 1.0),
    lambda n: [r(4 + n, 9), _places(n)],
    kernels=1,
)
case(
    "scattered_sums",
    lambda self, x, at, new: x.scatter_add(1, at[:, :3], new[:, :3]),
    lambda n: [r(4 + n, 9), _places(n) // 2, r(4 + n, 4)],
    kernels=1,
)


def _with_loops(self: nn.Module, adjacency: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    adjacency = adjacency.clone()
    nodes = torch.arange(x.shape[1])
    adjacency[:, nodes, nodes] = 1
    return torch.softmax(adjacency * x, dim=-1)


case("loops_added_to_a_graph", _with_loops, lambda n: [r(2, 5 + n, 5 + n), r(2, 5 + n, 5 + n)], kept=1)
for _p in (1.0, 2.0, float("inf")):
    case(
        f"cdist_{_p}".replace(".0", ""),
        lambda self, x, y, p=_p: torch.cdist(x, y, p),
        lambda n: [r(2, 5 + n, 6), r(2, 4, 6)],
        kernels=1,
    )
case("distances_to_itself", lambda self, x: torch.cdist(x, x), lambda n: [r(12 + n, 6)], kernels=1)
case("prod_of_few", lambda self, x: (x - 0.5)[:, :3].prod(-1), lambda n: [r(7 + n, 4)], kernels=1)
module("bilinear_form", nn.Bilinear, (8, 6, 5), lambda n: [r(3 + n, 8), r(3 + n, 6)])
