"""Tensors of one number: zeros, ones, any other; and those that hold nothing yet."""

from __future__ import annotations

from typing import Any

import torch

from ..graph.build import Build, NotLowered, Operand, number_in, opmath
from ..graph.value import Pointwise, Scalar, Shape, Value
from .registry import lowers
from .views import expand


def full(*_: Any, shape: Shape, out: torch.dtype, fill: float, **__: Any) -> Value:
    """A constant tensor: a constant, expanded."""
    constant = Value(Pointwise("constant", (fill,)), (), out)
    return expand(constant, shape=shape) if shape else constant


def _fill(x: Any, args: tuple[Any, ...], name: str) -> Any:
    if "full" in name:
        return args[-1] if args else x
    if name == "aten.scalar_tensor":
        return x
    return 0 if "zeros" in name else 1


def _size(size: Scalar, out: torch.dtype) -> Value:
    """A size as a tensor of shape ().

    Raises:
        NotLowered: as a truth value.
    """
    if out == torch.bool:
        raise NotLowered("whether a size is zero")
    if not out.is_floating_point:
        return Build.pointwise("identity", size, dtype=out)
    return Build.cast(Build.pointwise("add", full(shape=(), out=opmath(out), fill=0.0), size, dtype=opmath(out)), out)


def filled(name: str) -> Any:
    """The lowering of ``name``, which makes a tensor of one number: an argument's, which may be a size, 0 or 1.

    Raises:
        NotLowered, by the lowering: the number is no size, and known only at run time.
    """

    def lower(x: Any, *args: Any, shape: Shape, out: torch.dtype, **_: Any) -> Value:
        fill = _fill(x, args, name)
        if isinstance(fill, Scalar) and not fill.is_float:
            size = _size(fill, out)
            return expand(size, shape=shape) if shape else size
        if not isinstance(fill, int | float | bool):
            raise NotLowered("a fill value known only at run time")
        return full(shape=shape, out=out, fill=number_in(fill, out))

    return lower


for _name in (
    "full",
    "full_like",
    "zeros",
    "ones",
    "zeros_like",
    "ones_like",
    "new_zeros",
    "new_ones",
    "scalar_tensor",
    "new_full",
):
    lowers(f"aten.{_name}", about="One number in every place", addressing=True)(filled(f"aten.{_name}"))


@lowers("aten.fill", about="One number in every place", addressing=True)
def fill(_: Value, number: Operand, *, shape: Shape, out: torch.dtype) -> Value:
    """The tensor gives its shape alone; the number may be a tensor of shape ()."""
    if not isinstance(number, Value):
        return filled("aten.full_like")(number, shape=shape, out=out)
    return Build.cast(expand(number, shape=shape) if shape else number, out)


for _name in ("empty", "empty_like", "new_empty", "empty_permuted"):
    # What is in it may be anything, and is put there before it is read: where all is overwritten the zeros are never written.
    lowers(f"aten.{_name}", about="What is overwritten; zeros until then", addressing=True)(filled("aten.zeros"))
