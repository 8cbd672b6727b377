"""Inputs for which a comparison of the module's takes a side that no answer has shown so far (conditions.py).

Integers that are compared with (side_integers.py), random inputs of other sizes, signs and offsets, inputs that are equal to each other, and inputs
that are moved along the gradient of what is compared (side_values.py), and longer ones (side_lengths.py) are given to the module
alone, which costs little. Where a side shows, the candidate is compared there. The search is bounded by its work (work.py), not by the clock.

A candidate may round otherwise than eager, so inputs are used only where that can make no difference: float64 agrees with eager about as well as
it does on the example, no result is NaN, and no rounded number lies so near to what it is compared with that rounding could tip the comparison over.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp.validation import (
    agreement,
    candidate_state,
    compare,
    conditions,
    failures,
    plan,
    side_integers,
    side_lengths,
    side_values,
    weights,
)
from kernel_lsp.validation.conditions import ORDERED, Comparison, Watching
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.rounded import Rounded
from kernel_lsp.validation.side_values import Tried
from kernel_lsp.validation.trees import tensors_of
from kernel_lsp.validation.work import Work

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: shares of the search's work after which one kind of inputs is left for the next
_INTEGERS, _RANDOM, _DIRECTED, _LENGTHS = 0.25, 0.5, 0.75, 0.85
#: calls of eager's that a whole answer takes the time of, that with float64
_OF_AN_ANSWER = 3
#: comparisons with the candidate for one side, which does not show where the candidate leaves the call to eager
_MOST_COMPARED = 3
#: seconds of a call of the candidate's under the interpreter, at sizes longer than a check's
_MOST_SECONDS = 6.0
#: how far a rounded number has to be from what it is compared with: in floors of its dtype, and as a share where products are rounded as asked
_FLOORS, _ASKED = 2, 0.03
#: multiples of the error that is always allowed, or of eager's on the example, that eager's may be
_SOUND = 3.0


def check(referee: Referee, step: plan.Step, compared: Callable[[plan.Step], Any]) -> None:
    """Look for such inputs, and compare the candidate on what is found. ``compared`` makes a step.

    Raises:
        Failure: the candidate is found wanting there.
    """
    inputs = referee.inputs
    if not conditions.unshown(referee) or referee.oracle.double is None:
        return
    if inputs.computes_indices and not plan.takes_any_values(inputs):
        return
    search = _Search(referee, step, compared)
    if (constants := search.began()) is None:
        return
    search.run(side_integers.trees(referee, step, constants), _INTEGERS)
    if not inputs.unit_interval:
        search.run(side_values.random(referee, step), _RANDOM)
        search.run(side_values.directed(referee, step), _DIRECTED)
    search.run(side_lengths.trees(referee, step, constants), _LENGTHS)
    if not inputs.unit_interval:
        of_parameters, of_buffers = weights.negatable(referee.module)
        of_buffers = [name for name in of_buffers if name not in referee.oracle.moves]  # a running statistic
        for names, share in ((of_parameters, 0.95 if of_buffers else 1.0), (of_buffers, 1.0)):
            if names and search.goes_on(share):
                search.with_negated(names, side_values.random(referee, step), share)


class _Search:
    """What a search has found so far, and what is done with inputs."""

    def __init__(self, referee: Referee, step: plan.Step, compared: Callable[[plan.Step], Any]) -> None:
        self.referee, self.step, self.compared = referee, step, compared
        self.budget = referee.progress.searching
        self.work = Work()  # of a call of eager's at the step's sizes
        self.call = 0.0  # what that takes on a usual machine, in seconds
        self.moved = False  # parameters were changed, which the candidate was not told of
        self.tries: collections.Counter[tuple[Comparison, bool]] = collections.Counter()  # with the candidate

    def began(self) -> side_integers.Constants | None:
        """What the comparisons compare in a first call; None where the module does not take it."""
        referee = self.referee
        tree = referee.inputs.sample(dict(self.step.sizes or {}), "normal", 60)
        wanted = {comparison for comparison, _ in conditions.unshown(referee)}
        try:
            with self.budget.spending(), side_integers.Constants(wanted) as constants:
                referee.oracle.eager(tree)
        except Exception:
            return None
        self.work = constants.work = referee.sides.work
        self.call = self.work.seconds(referee.inputs.device.type)
        self.budget.spent += self.call
        return constants

    def _needed(self, tried: Tried) -> float:
        """Seconds of a usual machine that have to be left for inputs to be tried; larger ones only where the answer fits, too."""
        growth, work = tried.growth, self.work
        larger = Work(work.operators, round(work.elements * growth), round(work.operations * growth))
        on_cpu = conditions.seconds_to_show(self.referee, larger) if self._first_on_the_cpu(tried) else 0.0
        calls = 1 + _OF_AN_ANSWER if growth > 1 else 1
        return on_cpu + calls * larger.seconds(self.referee.inputs.device.type)

    def _first_on_the_cpu(self, tried: Tried) -> bool:
        """Whether the module is called on the CPU first, where an index out of range is an error: it ends a CUDA context."""
        return tried.beyond and not plan.takes_any_values(self.referee.inputs)

    def goes_on(self, share: float, seconds: float | None = None) -> bool:
        """Whether there is something left to find, and work left for a call or for ``seconds``, of the search's whole ``share``."""
        return self.budget.has(self.call if seconds is None else seconds, share) and bool(self._left())

    def run(self, trees: Iterator[Tried], share: float) -> None:
        """Try inputs while there is work left for it.

        Raises:
            Failure: the candidate is found wanting.
        """
        while self.goes_on(share):
            with self.budget.spending():
                tried = next(trees, None)
                if tried is None:
                    return
                self.budget.spent += tried.calls * self.call
                useful = tried.tree is not None and self.goes_on(share, self._needed(tried)) and self._useful(tried)
            if useful:
                self._compare(tried)

    def with_negated(self, names: list[str], trees: Iterator[Tried], share: float) -> None:
        """The same with the parameters or buffers of these names negated, which are put back.

        Raises:
            Failure: the candidate is found wanting.
        """
        self.referee.oracle.scale(-1.0, names)
        self.moved = True
        try:
            self.run(trees, share)
        finally:
            told = not self.moved
            self.moved = False
            self.referee.oracle.scale(-1.0, names)
        if told:  # after a failure nothing more is asked of the candidate
            candidate_state.send_state(self.referee)

    def _left(self) -> list[tuple[Comparison, bool]]:
        return [one for one in conditions.unshown(self.referee) if self.tries[one] < _MOST_COMPARED]

    def _useful(self, tried: Tried) -> bool:
        """Whether the inputs show a side that nothing has shown, and a candidate's rounding makes no difference there."""
        referee, tree = self.referee, tried.tree
        device = referee.inputs.device.type
        try:
            if self._first_on_the_cpu(tried):
                self.budget.spent += conditions.seconds_to_show(referee, self.work)
                conditions.OnTheCpu(referee, tree, False).answer(contextlib.nullcontext())
            self.budget.spent += self.call  # for a call that fails, or a small one
            referee.oracle.eager(tree)
            sides = referee.sides
            call = sides.work.seconds(device)
            self.budget.spent += max(0.0, call - self.call)
            left = [(one, side) for one, side in self._left() if side in sides.taken.get(one, ())]
            if not left:
                return False
            self.budget.spent += _OF_AN_ANSWER * call
            reference = referee.oracle.answer(tree)
            if not _sound(referee, reference):
                return False
            for one in left:
                self.budget.spent += conditions.seconds_to_show(referee, sides.work)
                if conditions.shows(referee, tree, reference, *one):
                    break
            else:
                return False
            self.budget.spent += call
            with _Near(referee) as near:
                referee.oracle.eager(tree)
            return not near.found
        except Exception:  # the module does not take such inputs, or there is no memory for them
            return False

    def _compare(self, tried: Tried) -> None:
        if self.moved:
            candidate_state.send_state(self.referee)
            self.moved = False
        taken = self.referee.sides.taken
        left = [(one, side) for one, side in self._left() if side in taken.get(one, ())]
        self.tries.update(left)
        name = f"{self.step.name}: {' and '.join(sorted(one.said(side) for one, side in left)[:2])}"
        step = dataclasses.replace(self.step, kind="values", name=name, make=lambda _: tried.tree)
        if tried.sizes is not None:
            step.sizes = tried.sizes
            step.most_seconds = _MOST_SECONDS if self.referee.mode == "interpreter" else None
        try:
            self.compared(step)
        except failures.Failure as failure:
            if step.most_seconds is None or failure.status != "not-interpretable":
                raise
            self.referee.progress.limits.append(f"{name} ({failure.reason})")
            self.tries.update(dict.fromkeys(left, _MOST_COMPARED))  # others would take as long


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
    return compare.compare(eager, eager, exact).eager_error <= max(most, _SOUND * referee.eager_error)


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
