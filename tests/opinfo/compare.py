"""Whether a result is as right as eager's own: beside float64, or equal to eager where numbers are whole."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

#: least difference that counts, relative to an element and to the largest finite one
RELATIVE, ABSOLUTE = 3e-4, 2e-5


def difference(got: Any, expected: Any, exact: Any) -> str:
    """What is wrong with ``got``, "" if nothing. ``expected``: eager's result; ``exact``: in float64."""
    results, wanted, doubles = (pytree.tree_leaves(tree) for tree in (got, expected, exact))
    if len(results) != len(wanted):
        return f"{len(results)} results for {len(wanted)}"
    if len(doubles) != len(wanted):
        doubles = wanted
    for i, (a, b, c) in enumerate(zip(results, wanted, doubles, strict=True)):
        if found := _one(a, b, c):
            return f"result {i}: {found}" if len(results) > 1 else found
    return ""


def _one(a: Any, b: Any, c: Any) -> str:
    if not isinstance(b, torch.Tensor):
        return "" if a == b or (a != a and b != b) else f"{a} for {b}"
    if not isinstance(a, torch.Tensor):
        return f"{type(a).__name__} for a tensor"
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype} {list(a.shape)} for {b.dtype} {list(b.shape)}"
    if not b.is_floating_point():
        right = a == b
    else:
        right = _near(a, b)
        if isinstance(c, torch.Tensor) and c.shape == b.shape and not c.is_complex():
            right |= _near(a, c)
    if bool(right.all()):
        return ""
    place = tuple((~right).nonzero()[0].tolist()) if right.dim() else ()
    return f"{int((~right).sum())} of {right.numel()}: {a[place].item()!r} for {b[place].item()!r}"


def _near(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x, y = a.double(), b.double()
    finite = y[y.isfinite()]
    largest = max(1.0, finite.abs().max().item()) if finite.numel() else 1.0
    close = y.isfinite() & ((x - y).abs() <= RELATIVE * y.abs() + ABSOLUTE * min(largest, 1e3))
    return close | (x == y) | (x.isnan() & y.isnan())
