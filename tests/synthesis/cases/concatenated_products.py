"""Concatenations of what products give: the kernel of each stores its piece, where nothing else needs that."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .registry import CASES, Case, case, r


class Fire(nn.Module):
    """SqueezeNet's: two convolutions of one tensor, one after the other along the channels."""

    def __init__(self):
        super().__init__()
        self.squeeze, self.one, self.three = nn.Conv2d(5, 6, 1), nn.Conv2d(6, 12, 1), nn.Conv2d(6, 20, 3, padding=1)

    def forward(self, x):
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.one(x)), torch.relu(self.three(x))], 1)


CASES["cat_fire"] = Case(Fire, lambda n: [r(2, 5, 6 + n, 7)], kernels=3)


class Further(Fire):
    """What follows reads all of it."""

    def forward(self, x):
        return functional.softmax(super().forward(x), 1)


CASES["cat_fire_softmax"] = Case(Further, lambda n: [r(2, 5, 6 + n, 7)], kernels=4)
CASES["cat_fire_float16"] = Case(  # a kernel that rounds the concatenation reads it, and computes none of its pieces
    nn.Sequential,
    lambda n: [r(2, 5, 6 + n, 7)],
    (Fire(), nn.Conv2d(32, 8, 3, padding=1)),
    tolerance=2e-3,
    halves=True,
    kernels=10,
)
# Each piece has a second kernel, for what float16 does not hold.
CASES["cat_fire_huge"] = Case(Fire, lambda n: [r(2, 5, 6 + n, 7) * 1e5], tolerance=2e-3, halves=True)


class Shares(nn.Module):
    """A piece that its product's kernel does not store: it would have to have whole rows in a tile. Such pieces in one another."""

    def __init__(self):
        super().__init__()
        self.left = nn.ModuleList([nn.Linear(512, 256) for _ in range(3)])
        self.right = nn.ModuleList([nn.Linear(512, 256) for _ in range(3)])

    def forward(self, x):
        for left, right in zip(self.left, self.right, strict=True):
            x = torch.cat([torch.softmax(left(x), -1), torch.relu(right(x))], -1)
        return x


CASES["cat_shares"] = Case(Shares, lambda n: [r(64 - n, 512)])


class Heads(nn.Module):
    """Two linear layers along the last dimension, and a piece that is no product."""

    def __init__(self, plain: bool):
        super().__init__()
        self.plain, self.left, self.right = plain, nn.Linear(24, 10), nn.Linear(24, 7)

    def forward(self, x):
        return torch.cat([self.left(x), torch.tanh(self.right(x)), *([x * 2.0] if self.plain else [])], -1)


CASES["cat_linear"] = Case(Heads, lambda n: [r(19 + n, 24)], (False,), kernels=2)
CASES["cat_linear_and_more"] = Case(Heads, lambda n: [r(19 + n, 24)], (True,), kernels=3)


class Kept(Heads):
    """A piece is an output, too."""

    def forward(self, x):
        left = self.left(x)
        return torch.cat([left, self.right(x)], -1), left


CASES["cat_linear_kept"] = Case(Kept, lambda n: [r(19 + n, 24)], (False,), kernels=3)


class Twice(Heads):
    """One product is both pieces; its result is wanted twice."""

    def forward(self, x):
        left = self.left(x)
        return torch.cat([left, left], 0)


CASES["cat_linear_twice"] = Case(Twice, lambda n: [r(19 + n, 24)], (False,))


class Levels(Heads):
    """A product after the concatenation has it stored while another kernel that needs it is planned, as YOLOv8's head does."""

    def __init__(self):
        super().__init__(False)
        self.further = nn.Linear(10, 6, bias=False)

    def forward(self, x):
        both = torch.cat([self.left(x), self.right(x)], -1)
        box, of_class = both.split((10, 7), -1)
        low, high = self.further(box.softmax(-1)).chunk(2, -1)
        return torch.cat([low + high, high - low, of_class.sigmoid()], -1), both + 1.0


CASES["cat_linear_in_levels"] = Case(Levels, lambda n: [r(19 + n, 24)])
case(
    "cat_products_of_batches",
    lambda self, x, y: torch.cat([x @ y, torch.relu(y @ x)], 0),
    lambda n: [r(3, 16, 16), r(3 + 0 * n, 16, 16)],
    kernels=2,
)
case(
    "stack_products",  # which is copied: a piece is a view of what its product gives
    lambda self, x, y: torch.stack([x @ y, y @ x, x @ x], 1),
    lambda n: [r(16, 16), r(16, 16)],
    kernels=3,
)


class Sums(nn.Module):
    """A piece that no product's kernel completes."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(24, 40), nn.Linear(24, 7)

    def forward(self, x):
        return torch.cat([torch.cumsum(self.left(x), -1), self.right(x)], -1)


CASES["cat_linear_cumsum"] = Case(Sums, lambda n: [r(19 + n, 24)])
