"""What a module computes where rounding decides on which side of a bound a number lies: a comparison, a floor, a search among bounds.

The module runs a few more times in its own dtype. What is compared, rounded to whole numbers or searched for is moved there by as much as
eager's numbers are from float64's at that operator. Nothing else is. So an element of a result that comes out otherwise is one that
rounding decides, and all else is as it was, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.validation import compare, rounded_products
from kernel_lsp.validation.trees import filled, tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.oracle import Oracle, Reference

#: operators whose result jumps where a number passes a bound; equality does not, it is lost wherever numbers move
_DECIDING = frozenset(
    ("lt", "le", "gt", "ge", "floor", "ceil", "round", "trunc", "floor_divide", "sign", "searchsorted", "bucketize")
)
#: the largest error that counts, in units of what is always allowed
_MOST = 30.0
#: how many elements are rounded for one that is taken to be as it is by luck
_MANY = 4
#: runs of the module, and of it with other inputs that tell luck from what is never rounded
_TIMES, _NUDGES = 6, 12


def otherwise(oracle: Oracle, tree: Any, reference: Reference, train: bool) -> list[list[torch.Tensor]]:
    """Eager's results where what such operators are given is moved by its rounding; none where nothing is.

    Raises:
        torch.OutOfMemoryError: the device has no memory for another call of the module.
    """
    if reference.exact is None or reference.exact is reference.eager:
        return []
    try:
        with _Given() as eager:
            oracle.eager(tree, train)
        if not eager.found:
            return []
        with _Given() as wide:
            oracle.exact(tree, train, reference.drawn)
        if [[t.shape for t in one] for one in eager.found] != [[t.shape for t in one] for one in wide.found]:
            return []
        pairs = [list(zip(mine, exact, strict=True)) for mine, exact in zip(eager.found, wide.found, strict=True)]
        if any(bool(_equal(a, b).any()) for one in pairs for a, b in one):
            lives = _lives(oracle, tree, train, eager.found)
        else:
            lives = [[torch.zeros_like(a, dtype=torch.bool) for a, _ in one] for one in pairs]
        reach = [
            [_reach(a, b, c) for (a, b), c in zip(one, alive, strict=True)]
            for one, alive in zip(pairs, lives, strict=True)
        ]
        if not any(bool(t.any()) for one in reach for t in one):
            return []
        found = []
        for time in range(_TIMES):
            with _Moved(reach, time):
                found.append(tensors_of(oracle.eager(tree, train)))
        return found
    except torch.OutOfMemoryError:
        raise
    except Exception:  # the module runs under no mode of torch's, or what follows refuses another side
        return []


def _lives(oracle: Oracle, tree: Any, train: bool, found: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
    """Which elements of what is given to the operators vary where the inputs vary by a few units in the last place: a bound that clamps does not."""
    lives = [[torch.zeros_like(t, dtype=torch.bool) for t in one] for one in found]
    for time in range(_NUDGES):
        with _Given() as nudged:
            oracle.eager(filled(tree, [_nudged(t, time) for t in tensors_of(tree)]), train)
        if [[t.shape for t in one] for one in nudged.found] != [[t.shape for t in one] for one in found]:
            continue
        for alive, mine, other in zip(lives, found, nudged.found, strict=True):
            for one, a, b in zip(alive, mine, other, strict=True):
                one |= a != b
    return lives


def _nudged(given: torch.Tensor, time: int) -> torch.Tensor:
    if not given.is_floating_point():
        return given
    share = 2 * torch.rand(given.shape, generator=torch.Generator().manual_seed(time), dtype=torch.float64) - 1
    return (given.double() * (1 + 8 * torch.finfo(given.dtype).eps * share.to(given.device))).to(given.dtype)


def _equal(mine: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Which elements are float64's where others are not: by luck, or because a bound clamps them."""
    equal = mine == exact
    rounded = torch.isfinite(mine) & torch.isfinite(exact) & ~equal
    return equal & (exact != 0) & torch.isfinite(exact) & rounded.any()


def _reach(mine: torch.Tensor, exact: torch.Tensor, lives: torch.Tensor) -> torch.Tensor:
    """How far each element may be moved: by the largest error of any, and not at all where it was not rounded or is 0.

    Larger errors than ``_MOST`` roundings make are those of what another side was taken before. A few of many elements are equal to float64's
    by luck, as a sum of shares that is 1 in both precisions: those that ``lives``.
    """
    most = min(_MOST * compare.FLOOR.get(mine.dtype, 0.0), rounded_products.MOST)
    mine = mine.double()
    exact = exact.double()
    known = torch.isfinite(mine) & torch.isfinite(exact)
    sizes = torch.where(known, exact.abs(), 0)
    if sizes.dim():  # of one size are the elements of a row
        sizes = sizes + sizes.sum(-1, keepdim=True) / known.sum(-1, keepdim=True).clamp_min(1)
    apart = torch.where(known, (mine - exact).abs(), 0)
    if not bool((apart > 0).any()):
        return torch.zeros_like(apart)
    error = min(float((apart / sizes.clamp_min(1e-300)).max()), most)
    moved = known & (apart > 0)
    alike = _equal(mine, exact) & lives
    if _MANY * int(alike.sum()) < int(moved.sum()):
        moved |= alike
    return torch.where(moved, compare.FACTOR * error * sizes, 0)


def _decides(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    name = str(func).split(".")[1].removesuffix("_")
    rounds = name == "div" and kwargs.get("rounding_mode") is not None
    whole = name == "_to_copy" and kwargs.get("dtype") in (
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
    )
    return name in _DECIDING or rounds or whole


def _floats(args: Any) -> list[torch.Tensor]:
    return [t for t in args if isinstance(t, torch.Tensor) and t.dtype.is_floating_point]


class _Given(TorchDispatchMode):
    """Keeps the floating point numbers that deciding operators were given."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[list[torch.Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _decides(func, args, kwargs) and (given := _floats(args)):
            self.found.append([t.detach().clone() for t in given])
        return func(*args, **kwargs)


class _Moved(TorchDispatchMode):
    """Gives deciding operators other numbers than they were given, each within its ``reach``: [operator][operand]."""

    def __init__(self, reach: list[list[torch.Tensor]], time: int) -> None:
        super().__init__()
        self._reach, self._count = reach, 0
        self._draws = torch.Generator().manual_seed(time)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _decides(func, args, kwargs) or not _floats(args):
            return func(*args, **kwargs)
        number, self._count = self._count, self._count + 1
        if func._schema.name.endswith("_"):  # in place, where what is given is what is written
            return func(*args, **kwargs)
        moves = iter(self._reach[number])
        return func(*(self._moved(a, next(moves)) if _floats((a,)) else a for a in args), **kwargs)

    def _moved(self, given: torch.Tensor, reach: torch.Tensor) -> torch.Tensor:
        share = 2 * torch.rand(reach.shape, generator=self._draws, dtype=torch.float64) - 1
        return (given.double() + share.to(reach.device) * reach).to(given.dtype)
