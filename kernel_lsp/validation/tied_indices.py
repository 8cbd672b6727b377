"""Results that are indices into values: among elements that are equal within rounding a candidate may choose others than eager.

The module runs again, in its own dtype and in float64, while the operators are watched that choose elements (argmax, topk, sort). A
result that holds what one of them gave is an index into that one's values. A candidate's index is as good as eager's where float64's
values differ by no more than a result of such a kind may be off (compare), or by no more than ``compare.FACTOR`` times what rounding
moved those two values by: a row's largest value may be a sum near zero of numbers that are not. Where forward casts to float32 by itself, float64's values have
its rounding, too; then two such results may differ. Where nothing was rounded on the way to the values nothing is allowed, and where
torch promises the first of equal elements, elements that are equal in both precisions are no choice.

A result may also hold such indices in other places, beside others, or with a number added to each (index_descent.py).

What is chosen after a choice may depend on it. Where a choice's values follow from one in which eager and float64 differ, float64's values
may be other numbers: such a choice is held to eager's own values, without a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.validation import chunks, compare, rounded_products
from kernel_lsp.validation.index_descent import Descent
from kernel_lsp.validation.rounded import Rounded
from kernel_lsp.validation.trees import filled, tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.oracle import Oracle, Reference
    from kernel_lsp.validation.referee import Referee

#: said of a kernel that chooses other elements than eager
OTHERS = "indices: of elements that are equal within rounding it chooses others than eager"

#: operators whose last result is indices → whether torch promises the first of equal elements; None: where it was asked to
_CHOOSING: dict[str, bool | None] = {
    **dict.fromkeys(("aten.argmax.default", "aten.argmin.default", "aten.max.dim", "aten.min.dim"), True),
    **dict.fromkeys(("aten.topk.default", "aten.sort.default"), False),
    "aten.sort.stable": None,
}

#: how often at most the module runs with other choices
_TIMES = 8


@dataclass
class _Choice:
    """A call of such an operator. ``values``: [..., n], and ``indices``: [..., k], which were along ``dim`` (None: of all elements).

    ``result``: as it was given, not a copy. ``promised``: whether that is the first of equal elements. ``rounded``: whether ``values`` were
    (rounded.py). ``explained``: the relative error of ``values`` that the precision explains which was asked for. ``moved``: by how much
    rounding moves each value at most, like ``values``; None where that is not known.
    ``exact``: the same choice in float64. ``after``: the numbers of the choices that the values follow from. ``follows``: in one of them
    eager and float64 differ. ``first``: of the places that stand for its elements (Descent).
    """

    operator: str
    values: torch.Tensor
    indices: torch.Tensor
    dim: int | None
    result: torch.Tensor
    promised: bool
    rounded: bool
    explained: float = 0.0
    moved: torch.Tensor | None = None
    exact: _Choice | None = None
    after: frozenset[int] = frozenset()
    follows: bool = False
    first: int = 0

    def last(self, result: torch.Tensor) -> torch.Tensor:
        """A result of this call's, or one with as many elements, as int64 [..., k]."""
        if self.dim is None:
            return result.reshape(1).long()
        result = result.reshape(self.result.shape).long()
        return (result if self.result.dim() == self.values.dim() else result.unsqueeze(self.dim)).movedim(self.dim, -1)

    def back(self, indices: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """The inverse of ``last``, with the shape and dtype of ``like``."""
        if self.dim is not None:
            indices = indices.movedim(-1, self.dim)
        return indices.reshape(like.shape).to(like.dtype)


class _Watching(TorchDispatchMode):
    """Keeps what the operators that choose elements were given, and what they gave."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[_Choice] = []
        self.rounded = Rounded()
        self.descent = Descent()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self.descent.note(func, args, kwargs, out)
        if str(func) in _CHOOSING:
            declared = [a.name for a in func._schema.arguments]
            given = {a.name: a.default_value for a in func._schema.arguments}
            given |= dict(zip(declared, args, strict=False)) | kwargs
            values = given["self"].detach().clone()
            result = out if isinstance(out, torch.Tensor) else out[-1]
            of_all = given["dim"] is None or values.dim() == 0
            dim = None if of_all else given["dim"] % values.dim()
            values = values.reshape(-1) if dim is None else values.movedim(dim, -1)
            promised = _CHOOSING[str(func)]
            if promised is None:
                promised = bool(given["stable"])
            rounded = given["self"] in self.rounded
            one = _Choice(str(func), values, result, dim, result, promised, rounded)
            one.indices = one.last(result.clone())
            one.after = self.descent.follows(given["self"])
            one.first = self.descent.chosen(len(self.found), result)
            self.found.append(one)
        self.rounded.note(func, args, kwargs, out)
        return out


def settled(referee: Referee, out: Any, reference: Reference, tree: Any, train: bool) -> Any:
    """A candidate's results with eager's index wherever its own chooses an element that is as good.

    ``tree``: the inputs. Costs two calls of the module where a tensor of integers differs, and nothing elsewhere.

    Raises:
        torch.OutOfMemoryError: the device has no memory for another call of the module.
    """
    mine, theirs = tensors_of(out), tensors_of(reference.eager)
    if len(mine) != len(theirs):
        return out
    differ = [i for i, pair in enumerate(zip(mine, theirs, strict=True)) if _differ(*pair)]
    if not differ:
        return out
    try:
        watched, results = _choices(referee.oracle, tree, reference, train, referee.held_to)
    except torch.OutOfMemoryError:
        raise
    except Exception:  # the module runs under no mode of torch's, or not now: then nothing is known of its indices
        return out
    if len(results) != len(theirs):
        return out
    for i in differ:
        for choice in watched.found:
            if choice.indices.numel() == theirs[i].numel() and torch.equal(
                choice.back(choice.indices, theirs[i]), theirs[i]
            ):
                mine[i] = _with_eagers(mine[i].to(theirs[i].device), choice)
                break
        else:
            if torch.equal(results[i], theirs[i]) and (at := watched.descent.places(results[i])) is not None:
                mine[i] = _moved_with_eagers(mine[i].to(theirs[i].device), theirs[i], at, watched.found)
    if any(_differ(mine[i], before) for i, before in zip(differ, (tensors_of(out)[i] for i in differ), strict=True)):
        referee.progress.limits.append(OTHERS)
    return filled(out, mine)


def part(oracle: Oracle, tree: Any, reference: Reference, train: bool) -> bool:
    """Whether eager and float64 part at a choice between elements that are equal within rounding, and at no other before."""
    try:
        choices = _choices(oracle, tree, reference, train, "strict")[0].found
    except torch.OutOfMemoryError:
        raise
    except Exception:  # as in ``settled``
        return False
    parted = (one for one in choices if one.exact is not None and not torch.equal(one.indices, one.exact.indices))
    if (first := next(parted, None)) is None or first.exact is None or not (share := _allowed(first)):
        return False
    return bool(_as_good(first.exact, first.indices, first.exact.indices, share).all())


def otherwise(oracle: Oracle, tree: Any, reference: Reference, train: bool) -> list[list[torch.Tensor]]:
    """Eager's results where each choice takes other elements that are equal to its own within rounding; none where it has no such.

    As many times as it takes to choose each element once, ``_TIMES`` at most. Choices that follow from one that is changed are made as ever.

    Raises:
        torch.OutOfMemoryError: as in ``settled``.
    """
    try:
        choices = _choices(oracle, tree, reference, train, "strict")[0].found
        tied = dict[int, torch.Tensor]()
        for number, one in enumerate(choices):
            if not one.after & tied.keys() and (free := _equal_to_the_last(one)) is not None:
                tied[number] = free
        found = []
        for time in range(min(max((_times(choices[n], free) for n, free in tied.items()), default=0), _TIMES)):
            others = {n: _others(choices[n], free, time) for n, free in tied.items()}
            with _Choosing(choices, others):
                found.append(tensors_of(oracle.eager(tree, train)))
        return found
    except torch.OutOfMemoryError:
        raise
    except Exception:  # as in ``settled``, or what follows refuses other indices
        return []


def _equal_to_the_last(choice: _Choice) -> torch.Tensor | None:
    """Which elements [..., n] are equal to the last of the chosen within rounding, in rows where one of them is not chosen; None without such."""
    right = choice.exact
    if right is None or choice.follows or not (share := _allowed(choice)):
        return None
    values, taken = right.values, choice.indices
    if not values.dtype.is_floating_point or taken.shape[-1] == values.shape[-1]:
        return None
    chosen = values.gather(-1, taken)
    is_taken = torch.zeros_like(values, dtype=torch.bool).scatter(-1, taken, True)
    largest = chosen.sum(-1) / chosen.shape[-1] >= torch.where(is_taken, 0, values).sum(-1) / (~is_taken).sum(-1)
    at = torch.where(largest, chosen.argmin(-1), chosen.argmax(-1))[..., None]  # the one that was just chosen
    last = chosen.gather(-1, at)
    free = _near(values, last.expand_as(values), share)
    if right.moved is not None:
        free |= (values - last).abs() <= compare.FACTOR * (right.moved + right.moved.gather(-1, taken.gather(-1, at)))
    if choice.promised:
        equal = compare.same(choice.values, choice.values.gather(-1, taken.gather(-1, at)))
        free &= is_taken | ~(equal & compare.same(values, last))
    free &= (free & ~is_taken).any(-1, keepdim=True)
    return free if bool(free.any()) else None


def _times(choice: _Choice, free: torch.Tensor) -> int:
    """How often others have to be taken until each of the ``free`` elements (_equal_to_the_last) was chosen."""
    offered, places = _offered(choice, free)
    return int((offered.sum(-1, keepdim=True) / places.clamp_min(1)).ceil().max())


def _others(choice: _Choice, free: torch.Tensor, time: int) -> torch.Tensor:
    """Indices in the shape of the result, with the ``free`` among them exchanged for others that are, others each ``time``."""
    taken = choice.indices
    k = taken.shape[-1]
    offered, places = _offered(choice, free)
    count = offered.sum(-1, keepdim=True).clamp_min(1)
    turn = (offered.cumsum(-1) - 1 - time * places) % count
    order = torch.where(offered, turn / count, 3.0)  # the lowest k are taken: first what no other is equal to
    ranks = torch.arange(k, device=taken.device, dtype=order.dtype).expand(taken.shape) - k
    order = order.scatter(-1, taken, torch.where(free.gather(-1, taken), 2.0, ranks))
    return choice.back(order.argsort(dim=-1, stable=True)[..., :k], choice.result)


def _offered(choice: _Choice, free: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(which of the ``free`` elements were not chosen, how many of each row were)."""
    taken = choice.indices
    return free & ~torch.zeros_like(free).scatter(-1, taken, True), free.gather(-1, taken).sum(-1, keepdim=True)


class _Choosing(TorchDispatchMode):
    """Has operators that choose elements choose ``others``: the number of the choice → indices in the shape of its result."""

    def __init__(self, choices: list[_Choice], others: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self._choices, self._others, self._count = choices, others, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if str(func) not in _CHOOSING:
            return out
        number, self._count = self._count, self._count + 1
        if (indices := self._others.get(number)) is None:
            return out
        if isinstance(out, torch.Tensor):
            return indices
        choice = self._choices[number]
        return choice.back(choice.values.gather(-1, choice.last(indices)), out[0]), indices


def _differ(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Whether these are indices, by their form, and not the same."""
    if mine.shape != theirs.shape or mine.dtype is not theirs.dtype or mine.is_meta:
        return False
    if theirs.dtype not in (torch.int64, torch.int32):
        return False
    return not chunks.identical(mine.to(theirs.device), theirs)


def _choices(
    oracle: Oracle, tree: Any, reference: Reference, train: bool, precision: str
) -> tuple[_Watching, list[torch.Tensor]]:
    """What was seen of eager's call, each choice with the same one in float64 where that runs as a whole; and eager's results, which may be parts of them.

    ``precision``: that was asked for.

    Raises:
        Exception: what the module raises.
    """
    with _Watching() as eager:
        again = tensors_of(oracle.eager(tree, train))
    if reference.exact is None or reference.exact is reference.eager or not eager.found:
        return eager, again
    with _Watching() as wide:
        oracle.exact(tree, train, reference.drawn)
    if [(one.operator, one.values.shape) for one in eager.found] != [
        (one.operator, one.values.shape) for one in wide.found
    ]:
        eager.found = []
        return eager, again
    for sample in range(len(rounded_products.SAMPLES) if precision != "strict" else 0):
        with rounded_products.rounding(precision, sample), _Watching() as rounded:
            oracle.exact(tree, train, reference.drawn)
        pairs = [[one.values for one in which.found] for which in (rounded, wide)]
        part = rounded_products.counts(sample)
        for one, values, error in zip(wide.found, pairs[0], compare.each_error(*pairs), strict=True):
            one.explained = max(one.explained, min(part * error, rounded_products.MOST))
            one.moved = _farther(one, values, part)
    differ = set[int]()
    for number, (one, exact) in enumerate(zip(eager.found, wide.found, strict=True)):
        exact.moved = _farther(exact, one.values)
        one.follows = bool(one.after & differ)
        one.exact = None if one.follows else exact
        if not torch.equal(one.indices, exact.indices):
            differ.add(number)
    return eager, again


def _farther(exact: _Choice, values: torch.Tensor, part: float = 1.0) -> torch.Tensor | None:
    """The larger of ``exact.moved`` and ``part`` of the distance of its values to ``values``, of equal shape; None for integers.

    ``MOST`` of an element and of the median of all is the most: beyond it rounding has tipped a comparison.
    """
    if not exact.values.dtype.is_floating_point:
        return None
    size = exact.values.abs()
    finite = size[torch.isfinite(size)]
    usual = finite.median() if finite.numel() else size.new_zeros(())
    moved = (values.to(size.dtype) - exact.values).abs().nan_to_num(0.0, 0.0, 0.0) * part
    moved = moved.minimum(rounded_products.MOST * (size + usual))
    return moved if exact.moved is None else torch.maximum(exact.moved, moved)


def _moved_with_eagers(
    mine: torch.Tensor, eagers: torch.Tensor, places: torch.Tensor, choices: list[_Choice]
) -> torch.Tensor:
    """A candidate's result with eager's elements where it holds indices that are as good. ``places``: of each element (Descent.places)."""
    mine = mine.clone()
    for choice in choices:
        here = (places >= choice.first) & (places < choice.first + choice.result.numel())
        if not bool(here.any()):
            continue
        at = places[here] - choice.first
        added = eagers[here].long() - choice.back(choice.indices, choice.result).reshape(-1)[at].long()
        found = _part_with_eagers(mine[here].long() - added, at, choice) + added
        mine[here] = found.to(mine.dtype)
    return mine


def _part_with_eagers(mine: torch.Tensor, places: torch.Tensor, choice: _Choice) -> torch.Tensor:
    """The same for a candidate's ``mine`` that has the elements at ``places`` of the choice's result alone; of the others nothing is known."""
    unknown = -1 - torch.arange(choice.result.numel(), device=mine.device)  # each once, and none that may be chosen
    whole = unknown.scatter(0, places.reshape(-1), mine.reshape(-1).long())
    if not torch.equal(whole[places], mine.long()):  # the view has an element twice, and this has two in its place
        return mine
    return _with_eagers(whole, choice).reshape(-1)[places].to(mine.dtype)


def _with_eagers(mine: torch.Tensor, choice: _Choice) -> torch.Tensor:
    """Indices of a candidate's with eager's in place of those that are as good."""
    right = choice.exact or choice
    found = choice.last(mine)
    at = found.clamp(0, right.values.shape[-1] - 1)
    good = _as_good(right, at, right.indices, _allowed(choice))
    good &= found == at
    if choice.promised:
        equal = compare.same(choice.values.gather(-1, at), choice.values.gather(-1, choice.indices))
        good &= ~(equal & compare.same(right.values.gather(-1, at), right.values.gather(-1, choice.indices)))
    ordered = found.sort(-1).values
    good &= ~(ordered[..., 1:] == ordered[..., :-1]).any(-1, keepdim=True)  # no element is chosen twice
    return choice.back(torch.where(good, choice.indices, found), mine)


def _as_good(of: _Choice, at: torch.Tensor, best: torch.Tensor, share: float) -> torch.Tensor:
    """Where the values of ``of`` at indices ``at`` [..., k] are as good as those at ``best``: equal, or no farther apart than rounding explains.

    ``share``: the relative difference that it explains; 0 where nothing was rounded.
    """
    chosen, right = of.values.gather(-1, at), of.values.gather(-1, best)
    good = compare.same(chosen, right)
    if share:
        good |= _near(chosen, right, share)
        if of.moved is not None:
            reach = of.moved.gather(-1, at) + of.moved.gather(-1, best)
            good |= (chosen - right).abs() <= compare.FACTOR * reach
    return good


def _near(chosen: torch.Tensor, best: torch.Tensor, share: float) -> torch.Tensor:
    """Where values [..., k] are as good as the ``best`` of their rows but for ``share``."""
    finite = torch.isfinite(best)
    # The scale is that of what is chosen in the row, its median: neither large numbers of a mask nor other rows count.
    ordered = torch.where(finite, best.abs(), torch.inf).sort(-1).values
    scale = ordered.gather(-1, (finite.sum(-1, keepdim=True) - 1).clamp_min(0) // 2)
    return ((chosen - best).abs() <= share * (best.abs() + scale)) & finite & torch.isfinite(chosen)


def _allowed(choice: _Choice) -> float:
    """The relative difference of values that rounding explains; 0 where they were not rounded."""
    values, exact = choice.values, choice.exact
    if choice.follows or not values.dtype.is_floating_point:
        return 0.0
    unknown = 2 * compare.allowed(0.0, values.dtype) if choice.rounded else 0.0
    if exact is None:
        return unknown
    wide = exact.values.dtype is torch.float64  # not after ``.float()``, which the copy in float64 calls, too
    if wide and chunks.identical(values.double(), exact.values):
        return 0.0
    of_eager = compare.compare(values, values, exact.values).eager_error
    found = compare.allowed(max(min(of_eager, rounded_products.MOST), exact.explained), values.dtype)
    return found if wide else max(found, unknown) if choice.rounded else 0.0
