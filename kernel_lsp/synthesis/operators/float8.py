"""float8: which operators take it, and the product of two of its matrices with their scales."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph.build import FLOAT8, Build, NotLowered
from ..graph.lowered import Float8
from ..graph.map import Map, dims
from ..graph.sizes import ONE, ZERO
from ..graph.value import Contract, Shape, Value, View
from .registry import Operator, lowers

#: Operators that hand elements on as they are, or convert them. torch has hardly any other for float8.
_MOVE = frozenset(
    f"aten.{name}"
    for name in ("to", "_to_copy", "type_as", "float", "embedding", "index_select", "gather", "index", "_scaled_mm")
) | {"prims.convert_element_type"}

#: Those of ``addressing`` that bring in a number of their own.
_FILL = frozenset({"aten.pad", "aten.constant_pad_nd"})


def check(operator: Operator, arguments: list[Any], result: Any, runs: Float8) -> None:
    """Check that an operator is lowered for float8 as it is used.

    ``arguments``: torch's fake ones, ``result``: its fake result; ``runs``: what the GPU's kernels do with float8.

    Raises:
        NotLowered: it is not for the dtypes of ``arguments`` and ``result``.
    """
    given, made = _float8s(arguments), _float8s(result)
    if not given and not made:
        return
    if other := next((dtype for dtype in given + made if dtype not in FLOAT8), None):
        raise NotLowered(f"{other}, for which Triton has no equal")
    if operator.name not in _MOVE and (not operator.addressing or operator.name in _FILL):
        raise NotLowered("computing in float8")
    if not runs:
        raise NotLowered("float8 on a GPU for which Triton has none")
    if made and not given and runs != "rounded":
        raise NotLowered("rounding to float8 on a GPU for which Triton rounds twice")


def _float8s(fakes: Any) -> list[torch.dtype]:
    """The dtypes of eight bits, and fewer, among those of the tensors."""
    if isinstance(fakes, list | tuple):
        return [dtype for fake in fakes for dtype in _float8s(fake)]
    eighth = isinstance(fakes, torch.Tensor) and fakes.dtype.is_floating_point and fakes.dtype.itemsize == 1
    return [fakes.dtype] if eighth else []


def _summed(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    x, y = given["x"], given["y"]
    pairs = [(x.shape[1], y.shape[0])]
    for scale, of_each in ((given["scale_x"], (x.shape[0], ONE)), (given["scale_y"], (ONE, y.shape[1]))):
        if not _of_all(scale):
            pairs += zip(scale.shape, of_each, strict=True)
    return tuple(pairs)


@lowers(
    "aten._scaled_mm",
    about="float8 matrices times their scales, one for a tensor or one for each row and column",
    equal=_summed,
)
def scaled_mm(
    x: Value,
    y: Value,
    scale_x: Value,
    scale_y: Value,
    bias: Value | None = None,
    scale_result: Value | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
    *,
    out: torch.dtype,
    shape: Shape,
) -> Value:
    """(x @ y) * scale_x * scale_y + bias.

    x: [M, K], y: [K, N], of float8_e4m3fn or float8_e5m2 each; scales in float32: one number, or [M, 1] and [1, N]. The sum is
    float32. A result in float8 stays with torch: devices differ in what ``scale_result`` does and in what is out of range.

    Raises:
        NotLowered: for operands that are not float8, a result that is, and empty matrices.
    """
    if x.dtype not in FLOAT8 or y.dtype not in FLOAT8:
        raise NotLowered(f"products of {x.dtype} and {y.dtype} with scales")
    if out not in (torch.float32, torch.float16, torch.bfloat16) or scale_result is not None:
        raise NotLowered("a product with a result in float8")
    if ZERO in x.shape or ZERO in y.shape:
        raise NotLowered("a product of empty matrices")
    depth = x.shape[1] if x.shape[1].is_number else y.shape[0]
    x, y = _sized(x, (x.shape[0], depth)), _sized(y, (depth, y.shape[1]))
    factors = [_factor(scale_x, (shape[0], ONE)), _factor(scale_y, (ONE, shape[1]))]
    product = Build.matmul(x, y, torch.float32)
    assert isinstance(product.op, Contract)
    product.op.short_sums = use_fast_accum
    product.meaning = ("matmul", (x, y))
    if isinstance(y.op, View) and y.op.map.permutation == (1, 0):
        product.meaning = ("matmul", (x, y.op.operand, "T"))
    scaled = Build.pointwise("mul", product, factors[0], dtype=torch.float32)
    if bias is None:
        return Build.pointwise("mul", scaled, factors[1], dtype=out)
    scaled = Build.pointwise("mul", scaled, factors[1], dtype=torch.float32)
    return Build.pointwise("add", scaled, bias, dtype=out)


def _sized(x: Value, shape: Shape) -> Value:
    """``x`` with sizes that equal its own by other names."""
    if x.shape == shape:
        return x
    index = dims(len(shape))
    return Build.view(x, Map(shape, x.shape, index, inverse=index), "reshape", same_meaning=True)


def _factor(scale: Value, of_each: Shape) -> Value:
    """A scale as it is multiplied by: a tensor of shape (), or one number for each row or column.

    Raises:
        NotLowered: it is not float32, or has a scale for each block.
    """
    if scale.dtype != torch.float32:
        raise NotLowered(f"scales in {scale.dtype}")
    if _of_all(scale):
        return Build.reshape(scale, ())
    if [n == ONE for n in scale.shape] != [n == ONE for n in of_each]:
        raise NotLowered("scales of blocks")
    return _sized(scale, of_each)


def _of_all(scale: Value) -> bool:
    return all(n == ONE for n in scale.shape)
