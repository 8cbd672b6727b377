"""float32 products by tensor cores: each operand becomes two bfloat16 planes, and three products of those are added up.

x = high + low + rest, where high is x rounded to bfloat16 and low is what that leaves, rounded again; the rest is below
2^-16 of x. x * y is then low * high + high * low + high * high to about 2^-16. The method is that of Henry, Tang and
Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations" (2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import sympy
import torch

from ..graph.build import Build
from ..graph.division import Quotient, Remainder
from ..graph.map import Map, compose, dim
from ..graph.value import Concat, Contract, Graph, Value, View, numel, topological

#: The summed letter that goes through the three products.
_LETTER = "P"
_PRODUCTS, _TWO = sympy.Integer(3), sympy.Integer(2)


def split_into_planes(graph: Graph, worthwhile: Callable[[Contract], bool]) -> int:
    """Split the operands of the float32 products that are ``worthwhile``. Returns how many there were."""
    planes: dict[Value, Value] = {}
    products = [
        value
        for value in topological(graph.outputs)
        if isinstance(value.op, Contract)
        and value.op.left.dtype == value.op.right.dtype == torch.float32
        and not any(_repeats(operand, graph.hints) for operand in (value.op.left, value.op.right))
        and worthwhile(value.op)
    ]
    for value in products:
        op = value.op
        assert isinstance(op, Contract)
        # Of the planes (low, high) the products take, in this order, 0 1 1 on the left and 1 0 1 on the right: the small ones first.
        value.op = Contract(
            _chosen(op.left, Quotient(dim(0) + 1, _TWO), planes),
            _chosen(op.right, Remainder(dim(0) + 1, _TWO), planes),
            _LETTER + op.left_axes,
            _LETTER + op.right_axes,
            op.axes,
            outer=_LETTER,
        )
    return len(products)


def _repeats(operand: Value, hints: dict[sympy.Symbol, int]) -> bool:
    """Whether it is a view that has elements of a tensor several times, as windows do: its planes would be larger."""
    while isinstance(operand.op, View):
        seen, viewed = (numel(v.shape).subs(hints) for v in (operand, operand.op.operand))
        if operand.op.map.inverse is None and seen > viewed:
            return True
        operand = operand.op.operand
    return False


def _planes(x: Value) -> Value:
    """``x`` as [2, *x.shape] in bfloat16: what rounding it leaves, and ``x`` rounded.

    Of what rounds to an infinity, and of a NaN, nothing is left.
    """
    high = Build.pointwise("to_bfloat16", x, dtype=torch.bfloat16, name="high")
    rounded = Build.pointwise("to_float32", high, dtype=torch.float32, name="rounded")
    finite = Build.pointwise("lt", Build.pointwise("abs", rounded), math.inf, dtype=torch.bool)
    rest = Build.pointwise("where", finite, Build.pointwise("sub", x, rounded), 0.0)
    low = Build.pointwise("to_bfloat16", rest, dtype=torch.bfloat16, name="low")
    pieces = tuple(Build.unsqueeze(v, 0) for v in (low, high))
    name = f"{x.name}_planes" if x.name else ""
    both = Value(Concat(pieces, 0), (_TWO, *x.shape), torch.bfloat16, name, node=x.node)
    both.meaning = ("bfloat16_planes", (x,))
    return both


def _chosen(operand: Value, place: sympy.Expr, planes: dict[Value, Value]) -> Value:
    """[3, *operand.shape]: for each of the three products the plane at ``place``.

    Of an operand that is a view, what it views is split, in the order in which it lies in memory.
    """
    base, view = operand, None
    while isinstance(base.op, View) and base.op.map.inverse is not None:
        view = base.op.map if view is None else compose(view, base.op.map)
        base = base.op.operand
        assert view is not None, "maps without guards compose"
    if base not in planes:
        planes[base] = _planes(base)
    later = {dim(i): dim(i + 1) for i in range(len(operand.shape))}
    places = later.values() if view is None else (e.xreplace(later) for e in view.index)
    map = Map((_PRODUCTS, *operand.shape), planes[base].shape, (place, *places))
    return Build.view(planes[base], map, "plane")
