"""Longer inputs for the search of reaching.py: comparisons between positions (``i - j < window``) have one side alone at small sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernel_lsp.validation import plan, sizes
from kernel_lsp.validation.side_integers import Constants
from kernel_lsp.validation.side_values import Tried

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: times as long as in the step, beside the example's own length and those that a constant asks for
_TIMES = (2, 4, 8)
#: elements of the largest input, and of the largest tensor that an operator may give
_MOST_ELEMENTS, _LARGEST = 1 << 20, 1 << 24


def trees(referee: Referee, step: plan.Step, constants: Constants) -> Iterator[Tried]:
    """Random inputs with one dynamic dimension longer than in the step, the others as short as can be; then as in the step."""
    inputs, base = referee.inputs, dict(step.sizes or {})
    # Positions are 0 and up, so a constant shows both of its sides at two more.
    asked = [abs(value) + 2 for value in (*constants.of_integers, *constants.of_floats)]
    seed = 300
    for symbol, size in base.items():
        lengths = [inputs.example_sizes.get(symbol, 0), *(times * size for times in _TIMES), *asked]
        for length in sorted({sizes.clamped(inputs, symbol, n) for n in lengths}):
            if length <= size:
                continue
            short = {s: min(n, sizes.least(inputs, s)) for s, n in base.items()} | {symbol: length}
            for at in [short] if len(base) == 1 else [short, base | {symbol: length}]:
                growth = _growth(base, at)
                if inputs.elements(at) > _MOST_ELEMENTS or constants.work.largest * growth > _LARGEST:
                    continue
                seed += 1
                yield Tried(
                    inputs.sample(at, "normal", seed),
                    sizes=at,
                    growth=growth,
                    beyond=inputs.has_op(*plan.STOPS_THE_GPU),
                )


def _growth(base: dict[str, int], at: dict[str, int]) -> float:
    """By how much the elements of a tensor can grow that has each dimension once, or the longer one twice (pairs of positions)."""
    growth = 1.0
    for symbol, size in base.items():
        ratio = at[symbol] / max(1, size)
        growth *= ratio**2 if ratio > 1 else ratio
    return growth
