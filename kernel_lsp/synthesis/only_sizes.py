"""Dimensions that torch.export leaves dynamic, though of the sizes that are tried the forward takes the example's alone.

``x.view(b, x.shape[1] // 64, 64)`` beside a parameter of two such blocks has torch.export note down that ``s % 64 == 0`` and
``s // 64 == 2``. It does not conclude that ``s`` is 128, and a lowering that needs two sizes to be equal could not know that ``s // (s // 64)``
is 64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from .graph.assumptions import checked, environment

#: Sizes beside the example's that are tried; multiples of it, and steps from it by numbers that the conditions have.
_NEAR, _MULTIPLES = 512, 8


def fix(exported: ExportedProgram) -> None:
    """Let torch.export's own record of sizes say of each such dimension what its size is."""
    env = environment(exported)
    if env is None:
        return
    conditions = [part for guard in env.guards for part in sympy.And.make_args(env.replace(guard.expr))]
    equations = [part for part in dict.fromkeys(conditions) if isinstance(part, sympy.Eq)]
    for size in _input_sizes(exported):
        symbol = size.node.expr
        of_it = [part for part in equations if part.free_symbols == {symbol}]
        example = size.node.hint
        steps = {int(number) for part in of_it for number in part.atoms(sympy.Integer) if number > 1}
        if of_it and not any(_holds(of_it, symbol, other) for other in _others(example, steps)):
            bool(size == example)  # which torch.export's symbols note down


def _input_sizes(exported: ExportedProgram) -> Iterator[Any]:
    """The sizes of the inputs that are a symbol each."""
    for node in exported.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        for size in value.shape if isinstance(value, torch.Tensor) else ():
            if isinstance(size, torch.SymInt) and isinstance(size.node.expr, sympy.Symbol):
                yield size


def _others(example: int, steps: Iterable[int]) -> Iterator[int]:
    yield from range(max(2, example - _NEAR), example)
    yield from range(example + 1, example + 1 + _NEAR)
    yield from (example * n for n in range(2, _MULTIPLES + 1))
    yield from (example // n for n in range(2, _MULTIPLES + 1) if example // n >= 2)
    for step in steps:
        yield from (example + step * n for n in range(1, _MULTIPLES + 1))
        yield from (example - step * n for n in range(1, _MULTIPLES + 1) if example - step * n >= 2)


def _holds(equations: list[sympy.Basic], symbol: sympy.Symbol, size: int) -> bool:
    try:
        return all(checked(part)({symbol: size}) for part in equations)
    except ZeroDivisionError:  # what divides is a quotient itself: there is no such size
        return False
