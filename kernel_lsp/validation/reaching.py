"""Inputs for which a comparison of the module's takes a side that no answer has shown so far (conditions.py).

Random inputs of other sizes, signs and offsets, inputs that are equal to each other, and inputs that are moved along the
gradient of what is compared are given to the module alone, which costs little. Where a side shows, the candidate is compared there.

A candidate may round otherwise than eager, so inputs are used only where that can make no difference: float64 agrees with eager about as well as
it does on the example, no result is NaN, and no rounded number lies so near to what it is compared with that rounding could tip the comparison over.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.validation import agreement, candidate_state, compare, conditions, plan, state
from kernel_lsp.validation.conditions import ORDERED, Comparison, Watching
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.rounded import Rounded
from kernel_lsp.validation.trees import tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: seconds for the search; what a comparison with the candidate takes comes on top
_SECONDS = 0.5
#: shares of it after which random inputs are left for directed ones, and these for other parameters
_RANDOM, _DIRECTED = 0.4, 0.8
#: inputs that are changed each by itself
_MOST_CHANGED = 3
#: steps along a gradient: by which share of the size of an input's rows
_MOVES = (0.5, 0.5, 0.5, 1.0, 2.0, 4.0)
#: how far a rounded number has to be from what it is compared with: in floors of its dtype, and as a share where products are rounded as asked
_FLOORS, _ASKED = 2, 0.03
#: multiples of the error that is always allowed, or of eager's on the example, that eager's may be
_SOUND = 3.0

_Change = Callable[[torch.Tensor], torch.Tensor]


def check(referee: Referee, step: plan.Step, compared: Callable[[plan.Step], Any]) -> None:
    """Look for such inputs, and compare the candidate on what is found. ``compared`` makes a step.

    Raises:
        Failure: the candidate is found wanting there.
    """
    if not conditions.unshown(referee) or referee.inputs.unit_interval or referee.oracle.double is None:
        return
    if referee.inputs.computes_indices and not plan.takes_any_values(referee.inputs):
        return
    search = _Search(referee, step, compared)
    search.run(_random(referee, step), _RANDOM)
    search.run(_directed(referee, step, search), _DIRECTED)
    if search.goes_on(1.0) and any(p.is_floating_point() for p in referee.module.parameters()):
        search.with_other_parameters(lambda: _random(referee, step))


class _Search:
    """The time that is left of a search, and what is done with inputs."""

    def __init__(self, referee: Referee, step: plan.Step, compared: Callable[[plan.Step], Any]) -> None:
        self.referee, self.step, self.compared = referee, step, compared
        self.spent = 0.0
        self.moved = False  # parameters were changed, which the candidate was not told of

    def goes_on(self, share: float) -> bool:
        """Whether there is something left to find and time, of the search's whole ``share``."""
        return self.spent < share * _SECONDS and bool(conditions.unshown(self.referee))

    def run(self, trees: Iterator[Any], share: float) -> None:
        """Try inputs while there is time.

        Raises:
            Failure: the candidate is found wanting.
        """
        while True:
            began = time.monotonic()
            tree = next(trees, None) if self.goes_on(share) else None
            useful = tree is not None and self._useful(tree)
            self.spent += time.monotonic() - began
            if tree is None:
                return
            if useful:
                self._compare(tree)

    def with_other_parameters(self, trees: Callable[[], Iterator[Any]]) -> None:
        """The same with all parameters negated, which are put back.

        Raises:
            Failure: the candidate is found wanting.
        """
        self.referee.oracle.scale(-1.0)
        self.moved = True
        try:
            self.run(trees(), 1.0)
        finally:
            told = not self.moved
            self.referee.oracle.scale(-1.0)
        if told:  # after a failure nothing more is asked of the candidate
            candidate_state.send_state(self.referee)

    def _useful(self, tree: Any) -> bool:
        """Whether the inputs show a side that nothing has shown, and a candidate's rounding makes no difference there."""
        referee = self.referee
        try:
            referee.oracle.eager(tree)
            taken = dict(referee.sides.taken)
            left = [(one, side) for one, side in conditions.unshown(referee) if side in taken.get(one, ())]
            if not left:
                return False
            reference = referee.oracle.answer(tree)
            if not _sound(referee, reference) or not any(conditions.shows(referee, tree, reference, *o) for o in left):
                return False
            with _Near(referee) as near:
                referee.oracle.eager(tree)
            return not near.found
        except Exception:  # the module does not take such inputs, or there is no memory for them
            return False

    def _compare(self, tree: Any) -> None:
        if self.moved:
            candidate_state.send_state(self.referee)
            self.moved = False
        left = set(conditions.unshown(self.referee))
        taken = self.referee.sides.taken
        said = [one.said(side) for one, side in left if side in taken.get(one, ())]
        name = f"{self.step.name}: {' and '.join(sorted(said)[:2])}"
        self.compared(dataclasses.replace(self.step, kind="values", name=name, make=lambda _: tree))


def _sound(referee: Referee, reference: Reference) -> bool:
    """Whether float64 agrees with eager, and no result is NaN."""
    if reference.exact is None or reference.exact is reference.eager:
        return False
    eager, exact = agreement.plainly(reference.eager), agreement.plainly(reference.exact)
    most = compare.FLOOR[torch.float32]
    for mine, wide in zip(tensors_of(eager), tensors_of(exact), strict=True):
        if not mine.is_floating_point() and not mine.is_complex():
            if not torch.equal(mine, wide.to(mine.dtype)):
                return False
            continue
        if bool(torch.isnan(mine).any()) or not torch.equal(torch.isinf(mine), torch.isinf(wide)):
            return False
        most = max(most, compare.FLOOR.get(mine.dtype, 0.0))
    return compare.compare(eager, eager, exact).eager_error <= max(most, _SOUND * referee.example_error)


class _Near(Watching):
    """Finds out whether any rounded number lies next to what it is compared with."""

    def __init__(self, referee: Referee) -> None:
        super().__init__()
        self.found = False
        self._share = 0.0 if referee.held_to == "strict" else _ASKED
        self._rounded = Rounded()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_dispatch__(func, types, args, kwargs)
        self._rounded.note(func, args, kwargs or {}, out)
        return out

    def met(self, comparison: Comparison, out: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
        """``out``."""
        operands = [t for t in args[:2] if isinstance(t, torch.Tensor)]
        floats = [t for t in operands if t.is_floating_point()]
        if comparison.operator not in ORDERED or not floats or not any(t in self._rounded for t in floats):
            return out
        share = max([self._share, *(_FLOORS * compare.FLOOR.get(t.dtype, 0.1) for t in floats)])
        a, b = (torch.as_tensor(t, dtype=torch.float64, device=out.device) for t in args[:2])
        size = torch.maximum(a.abs(), b.abs()).clamp_min(a.abs().mean())
        self.found = self.found or bool(((a - b).abs() <= share * size).any())
        return out


def _random(referee: Referee, step: plan.Step) -> Iterator[Any]:
    """Inputs of other sizes, signs and offsets: all of them, then each by itself; then those that are equal to each other."""
    inputs, sizes = referee.inputs, dict(step.sizes or {})
    changes: list[_Change] = [
        *(lambda t, by=by: t * by for by in (10.0, 1000.0, 0.1, 1e-3)),  # type: ignore[misc]
        *(lambda t, by=by: by * t.abs() for by in (1.0, -1.0, 100.0, -100.0)),  # type: ignore[misc]
        *(lambda t, by=by: t + by for by in (3.0, -3.0, 30.0, -30.0, -1000.0)),  # type: ignore[misc]
        lambda t: t[:1].expand(t.shape).clone() if t.dim() else t,
        torch.zeros_like,
        torch.ones_like,
        lambda t: -torch.ones_like(t),
    ]
    floats = [i for i, leaf in enumerate(inputs.leaves) if leaf.example.is_floating_point()]
    each = [[i] for i in floats[:_MOST_CHANGED]] if len(floats) > 1 else []
    seed = 60
    for which in [floats, *each]:
        for change in changes:
            seed += 1
            yield _changed(inputs.sample(sizes, "normal", seed), lambda i, t, w=which, c=change: c(t) if i in w else t)  # type: ignore[misc]
    for sign in (1.0, -1.0):
        for noise in (0.0, 0.2):
            seed += 1
            yield _alike(inputs.sample(sizes, "normal", seed), sign, noise)
    for _ in range(8):
        seed += 1
        yield inputs.sample(sizes, "normal", seed)


def _changed(tree: Any, change: Callable[[int, torch.Tensor], torch.Tensor]) -> Any:
    """A tree with its tensors changed, of the dtypes and shapes that they had. ``change`` gets each one's number."""
    tensors = tensors_of(tree)
    found = iter([change(i, t).to(t.dtype) if t.is_floating_point() else t for i, t in enumerate(tensors)])
    return pytree.tree_map(lambda v: next(found) if isinstance(v, torch.Tensor) else v, tree)


def _alike(tree: Any, sign: float, noise: float) -> Any:
    """Each input as another one before it of its shape, or its negative, but for ``noise``."""
    first: dict[Any, torch.Tensor] = {}

    def change(_: int, tensor: torch.Tensor) -> torch.Tensor:
        like = first.setdefault(tensor.shape, tensor)
        return tensor if like is tensor else sign * like.to(tensor.dtype) + noise * tensor

    return _changed(tree, change)


def _directed(referee: Referee, step: plan.Step, search: _Search) -> Iterator[Any]:
    """Inputs that are moved along the gradient of what is compared, for each side that nothing has shown."""
    generator = torch.Generator(referee.inputs.device).manual_seed(90)
    for way in ("of an index", "one", "all"):
        for comparison, side in conditions.unshown(referee):
            tree = referee.inputs.sample(dict(step.sizes or {}), "normal", 91)
            for move in _MOVES:
                if (comparison, side) not in conditions.unshown(referee):
                    break
                moved = _moved(referee, tree, comparison, side, way, move, generator)
                if moved is None:
                    break
                yield (tree := moved)


class _Operands(Watching):
    """Keeps what one comparison compares."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__()
        self.comparison = comparison
        self.found: tuple[Any, ...] = ()

    def met(self, comparison: Comparison, out: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
        """``out``."""
        if comparison == self.comparison:
            self.found = args[:2]
        return out


def _moved(
    referee: Referee,
    tree: Any,
    comparison: Comparison,
    side: bool,
    way: str,
    move: float,
    generator: torch.Generator,
) -> Any:
    """The inputs moved towards ``side``; None where there is no way. ``move``: the share of the size of each row."""
    if comparison.operator not in ("gt", "ge", "lt", "le"):
        return None
    oracle = referee.oracle
    leaves = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in tensors_of(tree)]
    wanted = [t for t in leaves if t.requires_grad]
    given = iter([t.clone() for t in leaves])  # a forward may write to its inputs
    args, kwargs = pytree.tree_map(lambda v: next(given) if isinstance(v, torch.Tensor) else v, tree)
    try:
        with torch.enable_grad(), state.unchanged(oracle.module), oracle.around(), _Operands(comparison) as operands:
            oracle.put_in_mode(oracle.module, False)
            oracle.module(*args, **kwargs)
            a, b = operands.found
            upwards = side is (comparison.operator in ("gt", "ge"))
            difference = (a - b) * (1.0 if upwards else -1.0)
            chosen = _chosen(difference, leaves, way, generator)
            if chosen is None or not difference.requires_grad:
                return None
            gradients = torch.autograd.grad((difference * chosen).sum(), wanted, allow_unused=True)
    except Exception:  # it takes no gradient, or made no such comparison there
        return None
    found = dict(zip(map(id, wanted), gradients, strict=True))

    def change(i: int, tensor: torch.Tensor) -> torch.Tensor:
        gradient = found.get(id(leaves[i]))
        if gradient is None:
            return tensor
        length, size = _length(gradient), _length(tensor).clamp_min(1.0)
        return tensor + move * size * gradient / length.clamp_min(torch.finfo(gradient.dtype).tiny)

    return _changed(tree, change) if any(g is not None and bool(g.any()) for g in gradients) else None


def _length(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.norm(dim=-1, keepdim=True) if tensor.dim() else tensor.abs()


def _chosen(
    difference: torch.Tensor, leaves: list[torch.Tensor], way: str, generator: torch.Generator
) -> torch.Tensor | None:
    """1 for the elements that are to change sides: all, one of each row, or the one that an integer input is an index of."""
    if way == "all" or not difference.dim():
        return torch.ones_like(difference)
    n = difference.shape[-1]
    if way == "one":
        at = torch.randint(0, n, difference.shape[:-1], generator=generator, device=difference.device)
    else:
        fitting = [t for t in leaves if t.dtype is torch.int64 and t.shape == difference.shape[:-1]]
        fitting = [t for t in fitting if t.numel() and 0 <= int(t.min()) <= int(t.max()) < n]
        if not fitting:
            return None
        at = fitting[0]
    return torch.nn.functional.one_hot(at, n).to(difference.dtype)
