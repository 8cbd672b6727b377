"""Numbers in a row: integers and others, evenly apart, and the grids of them."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered, Operand, normalise, number_or_size
from ..graph.value import Iota, Pointwise, Reduce, Scalar, Shape, TorchCall, Value, View
from .registry import lowers


@lowers("aten.arange", about="Numbers in a row", addressing=True)
def arange(*args: Any, shape: Shape, out: torch.dtype, **_: Any) -> Value:
    """(start, end, step) or (end,): ``step`` times the place, plus ``start``.

    Raises:
        NotLowered: where start or step is a float computed from sizes, or not an integer although the result has integers.
    """
    start = args[0] if len(args) >= 2 else 0
    step = args[2] if len(args) >= 3 else 1
    if any(isinstance(n, Scalar) and n.is_float for n in (start, step)):
        raise NotLowered("arange with numbers that are computed from sizes")
    if not out.is_floating_point and not all(isinstance(n, int | Scalar) for n in (start, step)):
        raise NotLowered("integers between numbers that are not")
    value: Any = Build.iota(shape, 0, torch.int32, "position")
    if any(isinstance(n, float) for n in (start, step)):
        value = Build.cast(value, out)
    if step != 1:
        value = Build.pointwise("mul", value, step)
    if start != 0:
        value = Build.pointwise("add", value, start)
    cast = Build.cast(value, out)
    assert isinstance(cast, Value)
    return cast


#: conversions that keep every place in a dimension; int8 and int16 would have others for large ones
_WIDE = ("to_int32", "to_int64")


def steps_of(value: Value) -> tuple[sympy.Expr, sympy.Expr] | None:
    """(start, step) of whole numbers evenly apart along one dimension; None of anything else."""
    op = value.op
    if isinstance(op, Iota) and len(value.shape) == 1:
        return op.start, op.step
    function, operands = (op.function, op.operands) if isinstance(op, Pointwise) else ("", ())
    if function in _WIDE:
        return steps_of(operands[0])
    if function == "neg":
        function, operands = "mul", (*operands, -1)
    if function == "sub" and isinstance(operands[1], Value):  # a number less each of them
        inner, number = steps_of(operands[1]), _whole(operands[0])
        return None if inner is None or number is None else (number - inner[0], -inner[1])
    if function not in ("add", "sub", "mul") or not isinstance(operands[0], Value):
        return None
    inner, number = steps_of(operands[0]), _whole(operands[1])
    if inner is None or number is None:
        return None
    if function == "mul":
        return inner[0] * number, inner[1] * number
    return (inner[0] + number if function == "add" else inner[0] - number), inner[1]


def _whole(operand: Operand) -> sympy.Expr | None:
    """A whole number, or a size; None of anything else."""
    if isinstance(operand, Value | float):
        return None
    return operand.expr if isinstance(operand, Scalar) else sympy.sympify(operand)


#: operators whose result (None: the only one) are places in a dimension → which argument that is
_PLACED = {
    ("torch.ops.aten.argsort.default", None): 1,
    ("torch.ops.aten.sort.default", 1): 1,
    ("torch.ops.aten.argsort.stable", None): 1,
    ("torch.ops.aten.sort.stable", 1): 1,
    ("torch.ops.aten.topk.default", 1): 2,
}

#: views that have all elements of what they are of
_ALL_ELEMENTS = ("expand", "unsqueeze", "squeeze", "permute", "reshape")


def ends_of(value: Value) -> tuple[sympy.Expr, sympy.Expr] | None:
    """(least, greatest) of whole numbers evenly apart, also repeated along further dims, and bounds of places in a dimension.

    None of anything else, and where the order is not known.
    """
    if (places := _places(value)) is not None:
        return places
    while isinstance(value.op, View) and value.op.name in _ALL_ELEMENTS:
        value = value.op.operand
    op = value.op
    if isinstance(op, Pointwise) and op.function == "identity" and isinstance(op.operands[0], Scalar):  # a size
        return op.operands[0].expr, op.operands[0].expr
    found = steps_of(value)
    if found is None or not found[1].is_number:
        return None
    first, step = found
    last = sympy.expand(first + step * (value.shape[0] - 1))
    return (first, last) if step > 0 else (last, first)


def _places(value: Value) -> tuple[sympy.Expr, sympy.Expr] | None:
    """Bounds of what argmax, argmin, sort and topk give, or of some of it: the places of the dimension that they go along."""
    while True:
        op = value.op
        if isinstance(op, View) and not op.map.guard:
            value = op.operand
        elif isinstance(op, Pointwise) and op.function in _WIDE and isinstance(op.operands[0], Value):
            value = op.operands[0]
        else:
            break
    if isinstance(op, Reduce) and op.kind in ("argmax", "argmin") and not op.part:
        return sympy.Integer(0), sympy.prod(op.operand.shape[dim] for dim in op.dims) - 1
    if not isinstance(op, TorchCall):
        return None
    call = op.call or op
    if (call.target, op.output) not in _PLACED:
        return None
    dim = _PLACED[call.target, op.output]
    among, given = call.args[0], call.kwargs.get("dim", call.args[dim] if len(call.args) > dim else -1)
    if not isinstance(among, Value) or not among.shape or not isinstance(given, int):
        return None
    return sympy.Integer(0), among.shape[normalise(given, len(among.shape))] - 1


@lowers("aten.linspace", about="Numbers evenly apart, the last one included", addressing=True)
def linspace(start: float, end: float, _: Any, *, shape: Shape, out: torch.dtype) -> Value:
    """Computed from both ends, each as far as the middle, as torch does.

    Raises:
        NotLowered: for dtypes other than float32.
    """
    if out != torch.float32:
        raise NotLowered("linspace in other dtypes than float32")
    size = shape[0]
    last = sympy.Max(size - 1, 1)
    between = number_or_size(last)
    position = Build.iota(shape, 0, torch.int32, "position")
    rest = Build.pointwise("sub", number_or_size(size - 1), position, dtype=torch.int32)

    def far(places: Value) -> Value:
        distance = Build.pointwise("mul", Build.cast(places, torch.float32), float(end) - float(start))
        return Build.pointwise("div", distance, between)

    first = Build.pointwise("add", far(position), float(start))
    second = Build.pointwise("sub", float(end), far(rest), dtype=torch.float32)
    # A row of one is its start.
    nearer = Build.comparison("le", position, rest)
    return Build.pointwise("where", nearer, first, second, dtype=torch.float32)


@lowers("aten.meshgrid", about="Each of several rows along a dim of its own", addressing=True)
def meshgrid(rows: list[Value], *, indexing: str = "ij", shapes: list[Shape], **_: Any) -> list[Value]:
    """Each row [n] or () expanded to the shape of all; ``indexing="xy"`` exchanges the first two dims."""
    order = list(range(len(rows)))
    if indexing == "xy" and len(rows) > 1:
        order[0], order[1] = 1, 0
    grids = []
    for row, d, shape in zip(rows, order, shapes, strict=True):
        line = row if row.shape else Build.unsqueeze(row, 0)
        for other in range(len(rows)):
            if other != d:
                line = Build.unsqueeze(line, normalise(other, len(rows)))
        grids.append(Build.expand(line, shape))
    return grids
