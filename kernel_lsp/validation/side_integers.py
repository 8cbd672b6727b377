"""Integers for the search of reaching.py: those that a comparison compares with, which random ones seldom hit (``ids == 500``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp.validation import plan
from kernel_lsp.validation.conditions import ORDERED, Comparison, Watching
from kernel_lsp.validation.inputs import Inputs, Leaf, is_integer
from kernel_lsp.validation.side_values import MOST_CHANGED, Tried, with_tensors
from kernel_lsp.validation.trees import tensors_of
from kernel_lsp.validation.work import Work

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: numbers of one operand, and of all; elements of an operand of which all are looked at
_OF_AN_OPERAND, _MOST, _LOOKED_AT = 8, 24, 1 << 12
#: inputs with all values from the least to the greatest, in turn
_SWEEPS = 4
#: an element in this many is given the constant
_ONE_IN = 3


class Constants(Watching):
    """Collects the numbers in the operands of some comparisons, integers first: the first is the most likely to be a constant."""

    def __init__(self, wanted: set[Comparison]) -> None:
        super().__init__()
        self.of_integers: list[int] = []  # of comparisons with a tensor of integers
        self.of_floats: list[int] = []  # of others, cut to integers
        self.work = Work()  # of the call
        self._wanted = wanted

    def met(self, comparison: Comparison, out: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
        """``out``."""
        if comparison in self._wanted and comparison.operator in (*ORDERED, "isin"):
            tensors = [t for t in args[:2] if isinstance(t, torch.Tensor)]
            integers = any(is_integer(t.dtype) for t in tensors)
            values = self.of_integers if integers else self.of_floats
            for operand in sorted(args[:2], key=lambda o: o.numel() if isinstance(o, torch.Tensor) else 0):
                values += [value for value in _values(operand) if value not in values]
                if not isinstance(operand, torch.Tensor) or operand.numel() == 1:
                    break  # a constant: what it is compared with says nothing more
        return out


def trees(referee: Referee, step: plan.Step, constants: Constants) -> Iterator[Tried]:
    """The constants, and the integers next to them, in a third of the elements of the integer inputs, in half a row, in all; then all values in turn.

    What lies outside of the example's least and greatest value is ``beyond``: the module may read there.
    """
    inputs, sizes = referee.inputs, dict(step.sizes or {})
    which = [i for i, leaf in enumerate(inputs.leaves) if leaf.example.numel() and is_integer(leaf.example.dtype)]
    if not which or not constants.of_integers:
        return
    groups = [[i] for i in which[:MOST_CHANGED]] + ([which] if len(which) > 1 else [])
    around = [value + by for by in (0, 1, -1) for value in constants.of_integers[:_MOST]]
    seed = 200
    for value in dict.fromkeys(around):
        for group in groups:
            if not all(_holds(inputs.leaves[i].example.dtype, value) for i in group):
                continue
            beyond = not all(_usual(inputs, inputs.leaves[i], value, sizes) for i in group)
            for where in ("some", "half", "all"):
                seed += 1
                sample = inputs.sample(sizes, "normal", seed)
                generator = torch.Generator(inputs.device).manual_seed(seed)
                yield Tried(_placed(sample, group, value, where, generator), beyond=beyond)
    for turn in range(_SWEEPS):
        sample = inputs.sample(sizes, "normal", 199)
        yield Tried(with_tensors(sample, lambda i, t, n=turn: _swept(inputs, i, t, sizes, n) if i in which else t))  # type: ignore[misc]


def _placed(sample: Any, group: list[int], value: int, where: str, generator: torch.Generator) -> Any:
    """``sample`` with the value in some inputs; in inputs of one shape at the same places."""
    places: dict[torch.Size, torch.Tensor] = {}
    for i, tensor in enumerate(tensors_of(sample)):
        if i in group and tensor.shape not in places:
            chosen = torch.ones(tensor.shape, dtype=torch.bool, device=tensor.device)
            if where == "some":
                chosen = torch.randint(0, _ONE_IN, tensor.shape, generator=generator, device=tensor.device) == 0
                chosen.view(-1)[:1] = True
            elif where == "half" and tensor.dim():
                chosen[..., : tensor.shape[-1] // 2] = False
            places[tensor.shape] = chosen
    return with_tensors(sample, lambda i, t: torch.where(places[t.shape], value, t).to(t.dtype) if i in group else t)


def _swept(inputs: Inputs, i: int, tensor: torch.Tensor, sizes: dict[str, int], turn: int) -> torch.Tensor:
    """All values from the least to the greatest of the example's in turn; in a later ``turn`` those that had no place before."""
    leaf = inputs.leaves[i]
    count = leaf.high - leaf.low + 1
    at = torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape) + turn * tensor.numel()
    return inputs.bounded((leaf.low + at % count).to(tensor.dtype), leaf, sizes)


def _usual(inputs: Inputs, leaf: Leaf, value: int, sizes: dict[str, int]) -> bool:
    """Whether random inputs might have the value there."""
    if not leaf.low <= value <= leaf.high:
        return False
    return int(inputs.bounded(torch.tensor(value), leaf, sizes)) == value


def _values(operand: Any) -> list[int]:
    """The integers of an operand, or the first few of many; floats are cut."""
    if isinstance(operand, torch.Tensor):
        if operand.dtype is torch.bool or operand.is_complex():
            return []
        found = operand.detach().reshape(-1)[:_LOOKED_AT].double()
        return list(map(int, found[found.isfinite()].unique()[:_OF_AN_OPERAND].tolist()))
    known = isinstance(operand, int | float) and not isinstance(operand, bool) and abs(operand) < 1 << 62
    return [int(operand)] if known else []


def _holds(dtype: torch.dtype, value: int) -> bool:
    return torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max
