"""What a chained kernel makes of a tile of the first product, and carries along of it: the online softmax, or plain sums."""

from __future__ import annotations

import math
from typing import Any

import sympy
import torch

from ..graph.sizes import Index
from ..graph.value import Pointwise, Reduce, Scalar, Value, operands
from ..kernel.build import Builder, masked, spread
from ..kernel.ir import Apply, Axis, Expr, FoldAxis, Number, Ref, apply
from .chain_tiles import Parts
from .extents import multiplied
from .program import set_all


def _tile(parts: Parts, builder: Builder, value: Value, index: Index, keys: Axis, beyond: float, name: str) -> Ref:
    """A value of the scores' tile in a variable; ``beyond``: what it has to be after the last key."""
    builder.pad_hint, builder.reduced_axis = beyond, keys
    term = builder.value(value, index)
    pad = term.pad if keys in term.axes else None
    for axis in (parts.rows, keys):
        term = spread(term, axis)
    if keys.mask is not None and pad != beyond:
        term = masked(term, keys.mask, beyond, torch.float32)
    return term if isinstance(term, Ref) else builder.assign(name, term, torch.float32)


#: exp(x) is exp2 of x times this.
_BINARY = 1.4426950408889634


def _powers_of_two(parts: Parts) -> bool:
    """Whether exponentials are computed as powers of two, which takes a multiplication less where the scores are scaled anyway.

    It adds half a unit in the last place of a score, so float32 does without; and nothing else may need the greatest score.
    """
    chain = parts.chain
    asked = [factor for _, factor in chain.factors] + [v for v, _ in parts.kernel.stores]
    before = {chain.first, *chain.totals}
    found: set[Value] = set()
    while asked:
        v = asked.pop()
        if v not in found and v not in before and v is not parts.kernel.contract:
            found.add(v)
            asked += operands(v)
    return multiplied(parts.kernel.product) != torch.float32 and chain.highest not in found


def _scaled(v: Value, factor: float) -> Value:
    """``v`` times a number, which goes where it costs least: into a number that is there already."""
    if not isinstance(v.op, Pointwise):
        return Value(Pointwise("mul", (v, factor)), v.shape, v.dtype)

    def of(operand: Any) -> Any:
        return _scaled(operand, factor) if isinstance(operand, Value) else operand * factor

    function, rest = v.op.function, v.op.operands
    if function == "mul" and isinstance(rest[1], float):
        parts: tuple[Any, ...] = (rest[0], rest[1] * factor)
    elif function == "mul" and isinstance(rest[1], Scalar) and rest[1].is_float:
        parts = (rest[0], Scalar(rest[1].expr * sympy.Float(factor), is_float=True))
    elif function == "where" and not any(isinstance(o, Scalar) for o in rest):
        parts = (rest[0], of(rest[1]), of(rest[2]))
    elif function == "add" and not any(isinstance(o, Scalar) for o in rest):
        parts = tuple(map(of, rest))
    else:
        function, parts = "mul", (v, factor)
    return Value(Pointwise(function, parts), v.shape, v.dtype, v.name)


def softmax(parts: Parts, builder: Builder, keys: Axis, score: Value) -> Expr:
    """The exponentials of a tile, with what is carried along brought up to it."""
    index, power = parts.kernel.placed[parts.chain.score], "exp"
    if _powers_of_two(parts):
        score, power = _scaled(score, _BINARY), "exp2"
    builder.count(score, index)
    term = _tile(parts, builder, score, index, keys, -math.inf, "scores")
    highest, reached, shift, rescaled = map(parts.row, ("highest", "reached", "shift", "rescaled"))
    infinite = apply("eq", number("abs", reached), Number(math.inf), dtype=torch.bool)
    weights = Ref(parts.name("weights"), term.axes, torch.float32)
    builder.inner += set_all(
        (reached.variable, number("maximum_int", highest, _folded("max", term, keys))),
        (shift.variable, number("where", infinite, Number(0.0), reached)),
        (rescaled.variable, number(power, number("sub", highest, shift))),
        (weights.variable, number(power, number("sub", term, shift))),
    )
    for carried in (*parts.totals.values(), parts.acc):
        kept = number("mul", carried, rescaled)
        whole = kept if carried == parts.acc else number("add", kept, _folded("sum", weights, keys))
        builder.inner += set_all((carried.variable, whole))
    return weights


def elements(parts: Parts, builder: Builder, keys: Axis, element: Value) -> Expr:
    """The elements of a tile where they need no number of the row, with their sums carried along."""
    chain, placed = parts.chain, parts.kernel.placed
    folded = [fold.op.operand for fold in chain.totals if isinstance(fold.op, Reduce)]
    for v in (chain.element, *folded):
        builder.count(v, placed[v])
    for carried, v in zip(parts.totals.values(), folded, strict=True):
        term = _tile(parts, builder, v, placed[v], keys, 0.0, "summed")
        builder.inner += set_all((carried.variable, number("add", carried, _folded("sum", term, keys))))
    return _tile(parts, builder, element, placed[chain.element], keys, 0.0, "weights")


def number(function: str, *operands: Expr) -> Apply:
    """``function`` of ``operands`` in float32."""
    return apply(function, *operands, dtype=torch.float32)


def _folded(kind: str, term: Expr, keys: Axis) -> FoldAxis:
    """A number of each row: the elements of a tile along its keys."""
    return FoldAxis(kind, term, keys, 1, True, False, torch.float32)
