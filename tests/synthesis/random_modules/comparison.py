"""What differs between results of a kernel and of its module, by more than rounding can explain.

A kernel is held to what the module gives in float64, as near as eager is. Where eager itself changes by as much when its inputs change
by their rounding (a comparison of two numbers that are almost equal, a sum that cancels), nothing follows from a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

#: Relative to an element and the mean magnitude, by the dtype of a result.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11, torch.float16: 4e-3, torch.bfloat16: 3e-2}
#: The same where a module computes in float16 or bfloat16 on its way.
TOLERANCE_OF_HALVES = 4e-2
#: Below float32's smallest number but the subnormal ones, which a GPU may flush to zero.
_TINY = 1e-37

Runs = Callable[[], list[Any]]


def difference(got: Any, eager: Any, exact: Any | None, again: Runs, least: float = 0.0) -> str:
    """Words for the first difference, or "". ``exact``: results in float64; ``again``: eager's for inputs that are rounded otherwise.

    ``least``: the least tolerance.
    """
    if pytree.tree_structure(got) != pytree.tree_structure(eager):
        return f"{pytree.tree_structure(got)} instead of {pytree.tree_structure(eager)}"
    wobbled: list[list[Any]] | None = None
    wanted = pytree.tree_leaves(exact) if exact is not None else None
    for n, (a, b) in enumerate(zip(pytree.tree_leaves(got), pytree.tree_leaves(eager), strict=True)):
        if not isinstance(b, torch.Tensor):
            if type(a) is not type(b) or (a != b and a == a):
                return f"result {n} is {a!r} instead of {b!r}"
            continue
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"result {n} is {a.dtype} {[*a.shape]} instead of {b.dtype} {[*b.shape]}"
        e = wanted[n] if wanted is not None and wanted[n].shape == b.shape else None
        wrong = _wrong(a, b, e, least)
        if not wrong.any():
            continue
        wobbled = [pytree.tree_leaves(run) for run in again()] if wobbled is None else wobbled
        for run in wobbled:
            wrong &= ~_explained(a, b, run[n])
        if wrong.any():
            at = tuple(wrong.nonzero()[0].tolist())
            truth = f", in float64 {e[at].item()}" if e is not None else ""
            elements = f"{int(wrong.sum())} of {wrong.numel()} elements"
            return f"result {n}{[*at]} {b.dtype} is {a[at].item()} instead of {b[at].item()}{truth}; {elements}"
    return ""


def _wrong(got: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor | None, least: float) -> torch.Tensor:
    if not eager.numel():
        return torch.zeros(eager.shape, dtype=torch.bool)
    if not eager.dtype.is_floating_point:
        differs = got != eager
        return differs if exact is None or exact.dtype.is_floating_point else differs & (exact == eager)
    a, e = got.double(), eager.double()
    truth = e if exact is None else exact.double()
    finite = e.isfinite() & truth.isfinite()
    wrong = (finite & ~a.isfinite()) | (~e.isfinite() & ~truth.isfinite() & a.isfinite())
    magnitude = truth.abs() + (truth[finite].abs().mean() if finite.any() else 0.0) + 1e-300
    mine = torch.where(finite & a.isfinite(), (a - truth).abs() / magnitude, 0.0)
    eagers = torch.where(finite, (e - truth).abs() / magnitude, 0.0)
    tolerance = max(TOLERANCE[eager.dtype], least) * (1 if exact is not None else 10)
    far = mine > max(tolerance, 4 * eagers.max().item())
    return wrong | (far & ((a - truth).abs() >= _TINY))


def _explained(got: torch.Tensor, eager: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where eager's results for inputs rounded otherwise differ from eager's as much as a kernel's do, in part."""
    if other.shape != eager.shape:
        return torch.ones(eager.shape, dtype=torch.bool)
    if not eager.dtype.is_floating_point:
        return other != eager
    o, e = other.double(), eager.double()
    return ((o - e).abs() > 0.25 * (got.double() - e).abs()) | (o.isfinite() != e.isfinite())
