"""Sizes that are no polynomial get a symbol of their own, so that their products stay products.

The result of a convolution or a pooling is ``(height - 1) // 2 + 1`` high. Left as it is, that and the like multiply out into
long sums in every index.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import sympy

from ..graph.lowered import Graph
from ..graph.order import topological
from ..graph.value import Op, Recur, TorchCall, Value

#: What a dimension's size is called, by the rank of the tensor.
_NAMES = {
    3: ("batch", "channels", "length"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}


def name_quotients(graph: Graph) -> dict[sympy.Symbol, sympy.Expr]:
    """Replace each ``a // b + c`` that is a size by a symbol, in all of the graph. Returns what each symbol stands for.

    A size that is a quotient alone stays: ``width // 2`` is as plain as a name for it.
    """
    defined: dict[sympy.Symbol, sympy.Expr] = {}
    for _ in range(100):  # quotients of quotients: one after the other, the innermost first
        found = _next(graph)
        if found is None:
            break
        quotient, added, wanted = found
        taken = {symbol.name for symbol in defined}
        name = next(n for i in range(1, 1000) if (n := f"out_{wanted}{'' if i == 1 else i}") not in taken)
        symbol = sympy.Symbol(name, integer=True, positive=True)
        defined[symbol] = quotient + added
        graph.hints[symbol] = int((quotient + added).subs(graph.hints))
        _replace(graph, quotient, symbol - added)
    return defined


def _next(graph: Graph) -> tuple[sympy.Expr, sympy.Expr, str] | None:
    """A quotient that no other contains, what is added to it in a size, and a name for that size."""
    found: tuple[sympy.Expr, sympy.Expr, str] | None = None
    for value in topological(graph.outputs):
        names = _NAMES.get(len(value.shape), ())
        for d, n in enumerate(value.shape):
            for quotient in _quotients(n):
                added = sympy.expand(n - quotient)
                if not added.is_Integer or added == 0 or (found is not None and found[:2] != (quotient, added)):
                    continue
                if names:
                    return quotient, added, names[d]
                found = found or (quotient, added, "size")
    return found


def _quotients(expr: sympy.Expr) -> list[sympy.Expr]:
    """The quotients of an expression that contain no other."""
    found = [e for e in sympy.preorder_traversal(expr) if e.func.__name__ == "FloorDiv"]
    return [e for e in found if not any(_quotients(a) for a in e.args)]


def _replace(graph: Graph, old: sympy.Expr, new: sympy.Expr) -> None:
    def swap(item: Any) -> Any:
        if isinstance(item, sympy.Basic):
            return sympy.expand(item.xreplace({old: new})) if item.has(old) else item
        if isinstance(item, list | tuple):
            return type(item)(swap(i) for i in item)
        if isinstance(item, dict):
            return {key: swap(i) for key, i in item.items()}
        if dataclasses.is_dataclass(item) and not isinstance(item, type | Value | Op):
            fields = {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
            changed = {name: swap(field) for name, field in fields.items()}
            same = all(changed[name] is field or changed[name] == field for name, field in fields.items())
            return item if same else type(item)(**changed)
        return item

    order = topological(graph.outputs)
    bodies = dict.fromkeys(value.op.loop for value in order if isinstance(value.op, Recur))
    for value in [*order, *(inner for loop in bodies for inner in topological([*loop.next, *loop.held, *loop.parts]))]:
        value.shape = swap(value.shape)
        op = value.op
        calls: list[Op] = [op, op.call] if isinstance(op, TorchCall) and op.call is not None else [op]
        for one in [*calls, op.loop] if isinstance(op, Recur) else calls:
            for field in dataclasses.fields(one):
                if field.name not in ("call", "loop"):
                    setattr(one, field.name, swap(getattr(one, field.name)))
