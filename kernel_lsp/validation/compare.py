"""A candidate's outputs against the float64 oracle, with eager's own error as the yardstick.

An element c is compared with the oracle's o and eager's e by ``|c - o| / (|o| + mean|o|)``: relative, with the scale
of the whole tensor for what cancels to nearly zero, so that an answer of zeros has error 1 or more. It must not exceed
``max(FACTOR * largest eager error, floor of the dtype)``. What rounding alone may move an answer by (``noise``) is taken
off the difference where that is known. A NaN or an infinity has to be one where eager and float64 both have it. Tensors are looked at piece by piece: a comparison takes
memory for a piece in float64, not for a tensor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.validation.chunks import bits, pieces

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
        """Whether the outputs agree."""
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
    return "float" if isinstance(tree, float) else repr(tree)


def compare(
    candidate: Any,
    eager: Any,
    oracle: Any,
    what: str = "output",
    scales: list[torch.Tensor] | None = None,
    floors: list[float] | None = None,
    eager_error: float = 0.0,
    explained: list[float] | None = None,
) -> Comparison:
    """Trees of CPU or GPU tensors of one structure; ``oracle`` in float64, or eager's own where there is none.

    ``scales``: of each tensor, where these are parts of larger ones. ``floors``: for each tensor what it may be off by
    absolutely (noise.py). ``eager_error``: the largest that eager's was seen to be on other inputs.
    ``explained``: for each tensor the error that the precision explains which was asked for (rounded_products.py).
    """
    known, noise, asked = iter(scales or []), iter(floors or []), iter(explained or [])
    return _over_trees(
        candidate,
        eager,
        oracle,
        what,
        lambda c, e, o, name: _compare_one(
            *(c, e, o, name, None, next(known, None)),
            noise=next(noise, 0.0),
            eager_error=max(eager_error, next(asked, 0.0)),
        ),
    )


def each_error(found: Any, right: Any, scales: list[torch.Tensor] | None = None) -> list[float]:
    """Of each tensor of a tree the largest relative error; 0 where it is no finite number, or the trees differ.

    ``scales``: as in ``compare``.
    """
    if structure(found) != structure(right):
        return [0.0] * len(_tensors(right))
    known = iter(scales or [])
    errors = [
        _compare_one(f, r, r, "", math.inf, next(known, None)).error
        for f, r in zip(_tensors(found), _tensors(right), strict=True)
    ]
    return [error if math.isfinite(error) else 0.0 for error in errors]


def allowed(eager_error: float, dtype: torch.dtype) -> float:
    """The relative error that a candidate may have where eager's largest is ``eager_error``."""
    return max(FACTOR * eager_error, FLOOR.get(dtype, _FLOOR_OTHERS))


def agree(candidate: Any, eager: Any, eager_error: float, what: str = "output") -> Comparison:
    """The candidate against eager alone, in full, where eager's error against float64 is known to be ``eager_error``.

    Both may be off, in opposite directions and by more than was seen on the part that float64 was computed for: twice
    the sum of what each is allowed.
    """

    def one(c: torch.Tensor, e: torch.Tensor, _: torch.Tensor, name: str) -> Comparison:
        limit = 2 * max((FACTOR + 1) * eager_error, FLOOR.get(e.dtype, _FLOOR_OTHERS))
        if _surely_close(c, e, limit):
            return Comparison()
        return _compare_one(c, e, e, name, limit)

    return _over_trees(candidate, eager, eager, what, one)


def within(candidate: Any, eager: Any, tolerance: float) -> bool:
    """Whether all elements agree by ``|c - e| <= tolerance + tolerance * |e|`` (torch.allclose), NaN with NaN."""
    if structure(candidate) != structure(eager):
        return False
    for mine, theirs in zip(_tensors(candidate), _tensors(eager), strict=True):
        if mine.shape != theirs.shape or mine.is_meta:
            return False
        for _, (c, e) in pieces(mine.to(theirs.device), theirs):
            if c.dtype is not e.dtype or c.dtype not in (torch.float32, torch.float64):
                wide = torch.complex128 if e.dtype.is_complex or c.dtype.is_complex else torch.float64
                c, e = c.to(wide), e.to(wide)
            if not torch.allclose(c, e, rtol=tolerance, atol=tolerance, equal_nan=True):
                return False
    return True


def _surely_close(mine: torch.Tensor, eager: torch.Tensor, limit: float) -> bool:
    """Whether float32 tensors agree by ``limit`` so well that float64 is not needed to tell; several times faster.

    A difference of two float32 numbers that are close is exact, and its bound is off by a few roundings.
    """
    if mine.dtype is not torch.float32 or mine.shape != eager.shape or mine.dtype is not eager.dtype or mine.is_meta:
        return False
    mine = mine.to(eager.device)
    if eager.numel() == 0:
        return True
    scale = sum(part.abs().sum(dtype=torch.float64).item() for _, (part,) in pieces(eager)) / eager.numel()
    if not math.isfinite(scale):
        return False
    share, floor = 0.99 * limit, 0.99 * limit * scale
    return all(bool(((c - e).abs_() <= e.abs().mul_(share).add_(floor)).all()) for _, (c, e) in pieces(mine, eager))


def _over_trees(candidate: Any, eager: Any, oracle: Any, what: str, one: Any) -> Comparison:
    if structure(candidate) != structure(eager):
        return Comparison(f"it returns {structure(candidate)}, the module {structure(eager)}", math.inf)
    worst = Comparison()
    triples = zip(_tensors(candidate), _tensors(eager), _tensors(oracle), strict=True)
    for i, (mine, theirs, exact) in enumerate(triples):
        found = one(mine, theirs, exact, what if len(_tensors(eager)) == 1 else f"{what} {i}")
        worst.error = max(worst.error, found.error)
        worst.eager_error = max(worst.eager_error, found.eager_error)
        if found.reason and not worst.reason:
            worst.reason = found.reason
    return worst


def _tensors(tree: Any) -> list[torch.Tensor]:
    """The leaves that are compared by value: tensors, and Python's floats as tensors of float32's tolerance."""
    found: list[torch.Tensor] = []
    for leaf in pytree.tree_leaves(tree):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif isinstance(leaf, float):
            found.append(torch.tensor(leaf, dtype=torch.float32))
    return found


def _compare_one(
    mine: torch.Tensor,
    eager: torch.Tensor,
    exact: torch.Tensor,
    name: str,
    limit: float | None,
    scale: torch.Tensor | None = None,
    noise: float = 0.0,
    eager_error: float = 0.0,
) -> Comparison:
    """``limit``: what is allowed, where that does not follow from eager's own error."""
    for property_name, a, b in (
        ("shape", list(mine.shape), list(eager.shape)),
        ("dtype", mine.dtype, eager.dtype),
    ):
        if a != b:
            return Comparison(
                f"{name} has {property_name} {_without_torch(a)}, the module's has {_without_torch(b)}", math.inf
            )
    if mine.numel() == 0:
        return Comparison()
    mine, exact = mine.to(eager.device), exact.to(eager.device)
    if mine.dtype.itemsize == 1 and mine.dtype.is_floating_point:  # a float8, of which torch knows no comparison
        limit = _FLOOR_OTHERS if limit is None else limit
        mine, eager, exact = mine.float(), eager.float(), exact.float()
    if not (mine.dtype.is_floating_point or mine.dtype.is_complex):
        return _compare_exactly(mine, eager, name)
    scale = scale_of(exact, eager) if scale is None else scale
    worst = _Worst(noise)
    for index, (c, e, o) in pieces(mine, eager, exact):
        reason = worst.look(index, c, e, o, scale)
        if reason:
            return Comparison(f"{name}{reason}", math.inf)
    if limit is None:
        limit = allowed(max(worst.eager, eager_error), mine.dtype)
    if worst.error <= limit:
        return Comparison("", worst.error, worst.eager)
    share = _share_above(limit, mine, eager, exact, scale, noise)
    of_eager = f", eager's is {worst.eager:.2g}" if exact is not eager else ""
    truth = "in float64 it is" if exact is not eager and exact.dtype != mine.dtype else "the module computes"
    reason = (
        f"{name}{worst.index} is {_number(worst.mine)}, {truth} {_number(worst.exact)}: relative error "
        f"{worst.error:.2g}{of_eager}, allowed is {limit:.2g}; {_percent(share)} of the elements are off"
    )
    return Comparison(reason, worst.error, worst.eager)


def _wide(t: torch.Tensor) -> torch.Tensor:
    return t.to(torch.complex128 if t.dtype.is_complex else torch.float64)


def scale_of(exact: torch.Tensor, eager: torch.Tensor | None = None) -> torch.Tensor:
    """mean|o| over what is finite, in float64; of ``eager`` where nothing of ``exact`` is; 0 where nothing is."""
    total = torch.zeros((), dtype=torch.float64, device=exact.device)
    count = torch.zeros((), dtype=torch.float64, device=exact.device)
    for _, (o,) in pieces(exact):
        finite = torch.isfinite(o)
        total += torch.where(finite, _wide(o).abs(), 0).sum()
        count += finite.sum()
    if not count and eager is not None:  # what is compared then is eager's
        return scale_of(eager)
    return total / count.clamp_min(1)


def _errors(
    c: torch.Tensor,
    e: torch.Tensor,
    o: torch.Tensor,
    scale: torch.Tensor,
    usable: torch.Tensor,
    dtype: torch.dtype,
    noise: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Relative errors of the candidate and of eager, in float64; zero where that is settled otherwise."""
    # A difference of equal numbers is exactly zero in one order of rounding and an epsilon of an epsilon in another.
    resolution = torch.finfo(dtype).eps ** 2
    c = torch.where((o == 0) & (c.abs() < resolution), 0, c)
    weight = torch.where(usable, o.abs(), 0) + scale + torch.finfo(dtype).tiny
    error = (torch.where(usable, (c - o).abs(), 0) - noise).clamp_min(0) / weight
    both = usable & torch.isfinite(e)
    of_eager = torch.where(both, (torch.where(both, e, 0) - torch.where(both, o, 0)).abs(), 0)
    eager_error = (of_eager - noise).clamp_min(0) / weight
    return error, eager_error


def _usable(c: torch.Tensor, e: torch.Tensor, o: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(where numbers are compared, where agreeing with a NaN or an infinity of either settles it)."""
    settled = same(c, e) & ~torch.isfinite(e) | same(c, o) & ~torch.isfinite(o)
    # Where nothing is right, an infinity is as good as a NaN.
    settled |= torch.isnan(e) & torch.isnan(o) & ~torch.isfinite(c)
    return torch.isfinite(o) & ~settled, settled


class _Worst:
    """The largest errors so far, and where the candidate's is."""

    def __init__(self, noise: float = 0.0) -> None:
        self.noise = noise
        self.error = self.eager = 0.0
        self.index = ""
        self.mine: Any = None
        self.exact: Any = None

    def look(self, index: Any, c: torch.Tensor, e: torch.Tensor, o: torch.Tensor, scale: torch.Tensor) -> str:
        """Take a piece into account; the end of a sentence where it cannot be right at all."""
        dtype = c.dtype
        c, e, o = _wide(c), _wide(e), _wide(o)
        # Where eager or the oracle overflows or is undefined, agreeing with either is right.
        usable, settled = _usable(c, e, o)
        bad = ~torch.isfinite(c) & ~settled
        if bad.any():
            at = _first(bad)
            return f"{_shown(index(at), bad)} is {_at(c, at)}, the module computes {_at(e, at):.6g}"
        # Eager is NaN or infinite, the oracle finite: the candidate may be better than eager, so it is held to the oracle.
        # The other way round it is held to eager.
        o = torch.where(~torch.isfinite(o) & torch.isfinite(e) & torch.isfinite(c), e, o)
        usable, settled = _usable(c, e, o)
        odd = ~torch.isfinite(o) & ~settled
        if odd.any():
            at = _first(odd)
            return f"{_shown(index(at), odd)} is {_at(c, at):.6g}, the module computes {_at(e, at)}"
        if not usable.any():
            return ""
        error, eager_error = _errors(c, e, o, scale, usable, dtype, self.noise)
        self.eager = max(self.eager, eager_error.max().item())
        largest = error.max().item()
        if largest > self.error or not self.index:
            at = int(error.reshape(-1).argmax())
            self.error, self.index = largest, _shown(index(at), error)
            self.mine, self.exact = c.reshape(-1)[at].to(dtype), o.reshape(-1)[at]
        return ""


def _share_above(
    limit: float, mine: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, scale: torch.Tensor, noise: float
) -> float:
    above = 0
    for _, (c, e, o) in pieces(mine, eager, exact):
        c, e, o = _wide(c), _wide(e), _wide(o)
        usable, _ = _usable(c, e, o)
        above += int((_errors(c, e, o, scale, usable, mine.dtype, noise)[0] > limit).sum())
    return above / mine.numel()


def _compare_exactly(mine: torch.Tensor, eager: torch.Tensor, name: str) -> Comparison:
    count, where = 0, ""
    for index, (c, e) in pieces(mine, eager):
        different = bits(c) != bits(e)
        if different.any():
            if not count:
                at = _first(different)
                where = f"{_shown(index(at), different)} is {_at(c, at)}, the module computes {_at(e, at)}"
            count += int(different.sum())
    if not count:
        return Comparison()
    share = count / mine.numel()
    return Comparison(f"{name}{where}; {_percent(share)} of the elements differ", share)


def same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Where elements are equal; a NaN is as good as another."""
    return (a == b) | (torch.isnan(a) & torch.isnan(b))


def _first(mask: torch.Tensor) -> int:
    return int(torch.nonzero(mask.reshape(-1))[0])


def _at(tensor: torch.Tensor, at: int) -> Any:
    return tensor.reshape(-1)[at].item()


def _shown(index: tuple[int, ...], of: torch.Tensor) -> str:
    return "[" + ", ".join(map(str, index)) + "]" if index else ""


def _number(value: torch.Tensor) -> str:
    item = value.item()
    return f"{item:.7g}" if isinstance(item, float) else str(item)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 else "under 1 %"


def _without_torch(value: Any) -> str:
    return str(value).removeprefix("torch.")
