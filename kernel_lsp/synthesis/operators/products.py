"""Matrix products and what contains them: mm, bmm, matmul, linear, addmm."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, NotLowered, broadcast_shapes, size_operand
from ..graph.sizes import ONE, ZERO
from ..graph.value import Pointwise, Value, View, operands
from .registry import lowers


def _of_one_number(v: Value) -> bool:
    """Whether every element is the same number, made of constants (``torch.zeros``) and sizes alone."""
    waiting, seen = [v], {v}
    while waiting:
        part = waiting.pop()
        if not isinstance(part.op, Pointwise | View):
            return False
        waiting += (more := set(operands(part)) - seen)
        seen |= more
    return True


def _times_a_number(x: Value, y: Value) -> Value:
    """A product with a matrix of one number c: sums of the other one, times c, repeated. NaN and infinity stay."""

    def element(v: Value) -> Value:
        for _ in v.shape:
            v = Build.select(v, 0, ZERO)
        return v

    rows, columns = x.shape[:-1][-1:], y.shape[1:][-1:]
    left, right = x if len(x.shape) > 1 else Build.unsqueeze(x, 0), y if len(y.shape) > 1 else Build.unsqueeze(y, 1)
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*batch, *rows, *columns)
    if _of_one_number(x) and _of_one_number(y):
        square = Build.pointwise("mul", element(x), element(y))
        value = Build.pointwise("mul", square, size_operand(x.shape[-1]))
    elif _of_one_number(x):
        dim = len(right.shape) - 2
        value = Build.reduce("sum", Build.pointwise("mul", right, element(x)), (dim,), name="product")
        value = value if rows else Build.squeeze(value, (dim,))
        value = value if columns else Build.squeeze(value, (len(value.shape) - 1,))
    else:
        dim = len(left.shape) - 1
        value = Build.reduce("sum", Build.pointwise("mul", left, element(y)), (dim,), name="product")
        value = value if columns else Build.squeeze(value, (dim,))
        value = value if rows else Build.squeeze(value, (dim - 1,))
    while len(value.shape) < len(shape):
        value = Build.unsqueeze(value, 0)
    return value if value.shape == shape else Build.expand(value, shape)


def _require_product(x: Value, y: Value, out: torch.dtype) -> None:
    """Raises NotLowered for dtypes that the tensor cores are not given, and for empty matrices."""
    if out not in (torch.float32, torch.float16, torch.bfloat16):
        raise NotLowered(f"matrix products in {out}")
    if ZERO in x.shape or ZERO in y.shape:
        raise NotLowered("a product of empty matrices")


@lowers("aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.dot", about="Matrix product")
def matmul(x: Value, y: Value, *, out: torch.dtype, **_: Any) -> Value:
    """A tiled product; with a vector, or a matrix of one row or column, a reduction, and where nothing is summed over a multiplication.

    Raises:
        NotLowered: for dtypes other than float32, float16 and bfloat16, and for empty matrices.
    """
    _require_product(x, y, out)
    row, col = len(x.shape) == 1, len(y.shape) == 1
    if _of_one_number(x) or _of_one_number(y):
        return _times_a_number(x, y)
    if row and col:
        return Build.squeeze(Build.reduce("sum", Build.pointwise("mul", x, y), (0,), name="product"), (0,))
    if not row and not col and x.shape[-1] == ONE:
        return Build.pointwise("mul", x, y)  # nothing to sum over
    if not col and (row or x.shape[-2] == ONE):
        # A vector-matrix product: likewise, down the columns.
        rank = len(x.shape)
        spread = Build.unsqueeze(x, rank) if row else Build.permute(x, (*range(rank - 2), rank - 1, rank - 2))
        terms = Build.pointwise("mul", spread, y)
        dim = len(terms.shape) - 2
        value = Build.reduce("sum", terms, (dim,), name="product")
        return Build.squeeze(value, (dim,)) if row else value
    if not row and not col and y.shape[-1] == ONE:
        # The same with the vector as a matrix of one column.
        rank = len(y.shape)
        turned = (*range(rank - 2), rank - 1, rank - 2)
        vector = Build.squeeze(y, (1,)) if rank == 2 else Build.permute(y, turned)
        terms = Build.pointwise("mul", x, vector)
        return Build.reduce("sum", terms, (len(terms.shape) - 1,), name="product")
    if col:
        # A matrix-vector product reads the matrix once: a reduction, not a tiled product.
        last = len(x.shape) - 1
        return Build.squeeze(Build.reduce("sum", Build.pointwise("mul", x, y), (last,), name="product"), (last,))
    product = Build.matmul(x, y, out)
    product.meaning = ("matmul", (x, y))
    return product


@lowers("aten.addmm", "aten.baddbmm", about="beta * c + alpha * (x @ y)")
def addmm(c: Value, x: Value, y: Value, *, beta: Any = 1, alpha: Any = 1, out: torch.dtype, **_: Any) -> Value:
    """``matmul`` and what ``c``, broadcast to its shape, adds to it.

    Raises:
        NotLowered: as ``matmul``.
    """
    product = matmul(x, y, out=out)
    if alpha != 1:
        product = Build.pointwise("mul", product, float(alpha), dtype=out)
    if beta != 1:
        c = Build.pointwise("mul", c, float(beta))
    return Build.pointwise("add", product, c, dtype=out)


def batched(x: Value, y: Value, out: torch.dtype) -> Value:
    """The product of two batches of matrices [..., M, K] and [..., K, N], tiled unless one of the three sizes is one.

    Raises:
        NotLowered: as ``matmul``.
    """
    _require_product(x, y, out)
    if ONE in (x.shape[-2], x.shape[-1], y.shape[-1]):
        return matmul(x, y, out=out)
    return Build.matmul(x, y, out)


@lowers("aten.outer", about="The product of each with each")
def outer(x: Value, y: Value, *, out: torch.dtype, **_: Any) -> Value:
    """[N, M] of x [N] and y [M]: elementwise, without a sum."""
    return Build.pointwise("mul", Build.unsqueeze(x, 1), y, dtype=out)


@lowers(
    "aten.linear",
    about="x times a weight's transpose, plus a bias",
    formula="linear(v, weight, bias) = v @ weight.T + bias",
)
def linear(x: Value, weight: Value, bias: Value | None = None, *, out: torch.dtype, **_: Any) -> Value:
    """``matmul`` with ``weight`` [N, K] turned to [K, N], plus ``bias`` [N] in every row.

    Raises:
        NotLowered: as ``matmul``.
    """
    turned = Build.permute(weight, (1, 0))
    product = matmul(x, turned, out=out)
    product.meaning = ("matmul", (x, weight, "T"))
    if bias is None:
        return product
    value = Build.pointwise("add", product, bias, dtype=out)
    value.meaning = ("linear", (x, weight, bias))
    return value
