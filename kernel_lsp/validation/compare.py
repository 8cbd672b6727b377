"""A candidate's outputs against the float64 oracle, with eager's own error as the yardstick.

An element c is compared with the oracle's o and eager's e by ``|c - o| / (|o| + mean|o|)``: relative, with the scale
of the whole tensor for what cancels to nearly zero, so that an answer of zeros has error 1 or more. It must not exceed
``max(FACTOR * largest eager error, floor of the dtype)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

#: how much worse than eager's error a candidate's may be
FACTOR = 3.0

#: relative error that is always allowed. float32: the fast exponential of a GPU is off by up to |x| ulp; half types:
#: one rounding of the result and one of an intermediate, which eager does elsewhere. TF32 (5e-4) is far above float32's.
FLOOR = {
    torch.float64: 1e-11,
    torch.complex128: 1e-11,
    torch.float32: 1e-5,
    torch.complex64: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}
_FLOOR_OTHERS = 0.13  # float8: one unit of three mantissa bits


@dataclass
class Comparison:
    """``reason`` is empty when everything fits."""

    reason: str = ""
    error: float = 0.0  # largest relative error of the candidate
    eager_error: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.reason


def structure(tree: Any) -> str:
    """The containers of a result, by name: ``(tensor, [tensor])``."""
    if isinstance(tree, torch.Tensor):
        return "tensor"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{k}: {structure(v)}" for k, v in tree.items()) + "}"
    if isinstance(tree, (list, tuple)):
        inner = ", ".join(structure(t) for t in tree)
        return f"[{inner}]" if isinstance(tree, list) else f"({inner})"
    return repr(tree)


def compare(candidate: Any, eager: Any, oracle: Any, what: str = "output") -> Comparison:
    """Trees of CPU or GPU tensors of one structure; ``oracle`` in float64, or eager's own where there is none."""
    if structure(candidate) != structure(eager):
        return Comparison(f"it returns {structure(candidate)}, the module {structure(eager)}", math.inf)
    worst = Comparison()
    triples = zip(_tensors(candidate), _tensors(eager), _tensors(oracle), strict=True)
    for i, (mine, theirs, exact) in enumerate(triples):
        name = what if len(_tensors(eager)) == 1 else f"{what} {i}"
        one = _compare_one(mine, theirs, exact, name)
        worst.error = max(worst.error, one.error)
        worst.eager_error = max(worst.eager_error, one.eager_error)
        if one.reason and not worst.reason:
            worst.reason = one.reason
    return worst


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def _compare_one(mine: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, name: str) -> Comparison:
    for property_name, a, b in (
        ("shape", list(mine.shape), list(eager.shape)),
        ("dtype", mine.dtype, eager.dtype),
    ):
        if a != b:
            return Comparison(f"{name} has {property_name} {_plain(a)}, the module's has {_plain(b)}", math.inf)
    if mine.numel() == 0:
        return Comparison()
    mine = mine.to(eager.device)
    if not (mine.dtype.is_floating_point or mine.dtype.is_complex):
        return _compare_exactly(mine, eager, name)
    wide = torch.complex128 if mine.dtype.is_complex else torch.float64
    c, e, o = mine.to(wide), eager.to(wide), exact.to(eager.device).to(wide)
    # Where eager or the oracle overflows or is undefined, agreeing with either is right.
    settled = _same(c, e) & ~torch.isfinite(e) | _same(c, o) & ~torch.isfinite(o)
    usable = torch.isfinite(o) & ~settled
    bad = ~torch.isfinite(c) & ~settled
    if bad.any():
        return Comparison(
            f"{name}{_index(bad)} is {c[_first(bad)].item()}, the module computes {e[_first(bad)].item():.6g}", math.inf
        )
    # Eager is NaN or infinite, the oracle finite: the candidate may be better than eager, so it is held to the oracle.
    odd = ~torch.isfinite(o) & ~settled
    if odd.any():
        return Comparison(
            f"{name}{_index(odd)} is {c[_first(odd)].item():.6g}, the module computes {e[_first(odd)].item()}", math.inf
        )
    if not usable.any():
        return Comparison()
    # A difference of equal numbers is exactly zero in one order of rounding and an epsilon of an epsilon in another.
    resolution = torch.finfo(mine.dtype).eps ** 2
    c = torch.where((o == 0) & (c.abs() < resolution), 0, c)
    scale = o[torch.isfinite(o)].abs().mean()
    weight = torch.where(usable, o.abs(), 0) + scale
    tiny = torch.finfo(mine.dtype).tiny
    error = torch.where(usable, (c - o).abs(), 0) / (weight + tiny)
    both = usable & torch.isfinite(e)
    eager_error = torch.where(both, (torch.where(both, e, 0) - torch.where(both, o, 0)).abs(), 0) / (weight + tiny)
    largest, allowed = error.max().item(), eager_error.max().item()
    limit = max(FACTOR * allowed, FLOOR.get(mine.dtype, _FLOOR_OTHERS))
    if largest <= limit:
        return Comparison("", largest, allowed)
    at = error == error.max()
    share = (error > limit).double().mean().item()
    reason = (
        f"{name}{_index(at)} is {_number(c[_first(at)])}, in float64 it is {_number(o[_first(at)])}: relative error "
        f"{largest:.2g}, eager's is {allowed:.2g}, allowed is {limit:.2g}; {_percent(share)} of the elements are off"
    )
    return Comparison(reason, largest, allowed)


def _compare_exactly(mine: torch.Tensor, eager: torch.Tensor, name: str) -> Comparison:
    different = mine != eager
    if not different.any():
        return Comparison()
    at = _first(different)
    share = different.double().mean().item()
    return Comparison(
        f"{name}{_index(different)} is {mine[at].item()}, the module computes {eager[at].item()}; "
        f"{_percent(share)} of the elements differ",
        share,
    )


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | (torch.isnan(a) & torch.isnan(b))


def _first(mask: torch.Tensor) -> tuple[int, ...]:
    return tuple(torch.nonzero(mask)[0].tolist())


def _index(mask: torch.Tensor) -> str:
    return "[" + ", ".join(map(str, _first(mask))) + "]" if mask.dim() else ""


def _number(value: torch.Tensor) -> str:
    item = value.item()
    return f"{item:.7g}" if isinstance(item, float) else str(item)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 else "under 1 %"


def _plain(value: Any) -> str:
    return str(value).removeprefix("torch.")
