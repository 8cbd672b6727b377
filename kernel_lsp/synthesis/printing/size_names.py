"""Names for sizes that are sums and that a kernel needs several times: ``out_width`` for the ``1 + 2 * width`` of a transposed convolution.

Each is computed once, at the top of the kernel.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import sympy

from ..kernel.arguments import Arguments
from ..kernel.ir import Expr, Ref, Variable
from ..kernel.statements import Set, Statement
from ..schedule.program import Program, expressions

#: The extents of images, whose sums have names.
_EXTENTS = frozenset(["length", "depth", "height", "width"])


def named(program: Program, body: list[Statement]) -> tuple[list[Statement], list[Variable]]:
    """``body`` with names for such sizes, and the new variables."""
    known = _names(program.arguments)
    counts: dict[Expr, int] = {}
    for expr in expressions(body):
        if expr in known:
            counts[expr] = counts.get(expr, 0) + 1
    chosen = {expr: Variable(known[expr]) for expr, count in counts.items() if count > 1}
    if not chosen:
        return body, []
    first = [Set(variable, expr) for expr, variable in chosen.items()]
    return [*first, *(_with_names(statement, chosen) for statement in body)], list(chosen.values())


def _names(arguments: Arguments) -> dict[Expr, str]:
    """What the sums among a kernel's sizes are called: after the extent of an image that they are made of."""
    stored = {sympy.expand(size) for value in arguments.outputs for size in value.shape}
    found: dict[Expr, str] = {}
    for expr, size in arguments.sums.items():
        names = [arguments.symbols.get(symbol, "") for symbol in size.free_symbols]
        kind = "out" if size in stored or size in arguments.places else "phase" if size in arguments.phases else ""
        if kind and len(names) == 1 and names[0] in _EXTENTS:
            found[expr] = f"{kind}_{names[0]}"
    return found


def _with_names(node: Any, chosen: dict[Expr, Variable]) -> Any:
    """A statement or an expression with variables in place of the sizes."""
    if isinstance(node, tuple):
        return tuple(_with_names(part, chosen) for part in node)
    if isinstance(node, Expr) and node in chosen:
        return Ref(chosen[node])
    if not isinstance(node, Expr | Statement):
        return node
    fields = {field.name: _with_names(getattr(node, field.name), chosen) for field in dataclasses.fields(node)}
    return dataclasses.replace(node, **fields)
