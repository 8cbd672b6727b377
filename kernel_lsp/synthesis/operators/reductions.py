"""Reductions over any dims, softmax and its relatives."""

from __future__ import annotations

import math
from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered, dims_of, normalise, size_operand
from ..graph.value import Pointwise, Reduce, Value, numel
from .registry import lowers


def finish(value: Value, dims: tuple[int, ...], keepdim: bool) -> Value:
    """Drop the reduced dims unless they are kept."""
    return value if keepdim else Build.squeeze(value, dims)


def _split(args: tuple[Any, ...]) -> tuple[Any, bool]:
    dims = args[0] if args else None
    return dims, bool(args[1]) if len(args) > 1 else False


@lowers("aten.sum", about="Sum over dims")
def total(x: Value, *args: Any, keepdim: bool = False, out: torch.dtype, **_: Any) -> Value:
    """Summed in the opmath of ``out``: float32 for half precision, int64 for integers. Without dims over all."""
    dims, keep = _split(args)
    axes = dims_of(dims, len(x.shape))
    value = Build.reduce("sum", Build.cast(x, out), axes, name="total")
    value.meaning = ("sum", (x, axes))
    return finish(value, axes, keep or keepdim)


@lowers("aten.mean", about="Mean over dims")
def mean(x: Value, *args: Any, keepdim: bool = False, out: torch.dtype, **_: Any) -> Value:
    """The sum divided by the number of elements, in the opmath of ``out``. Without dims over all."""
    dims, keep = _split(args)
    axes = dims_of(dims, len(x.shape))
    return finish(Build.mean(Build.cast(x, out), axes), axes, keep or keepdim)


#: elements along a dim up to which their product is written out
_MOST_FACTORS = 16


@lowers("aten.prod", about="The product of up to 16 elements along a dim")
def product(x: Value, dim: int, keepdim: bool = False, *, out: torch.dtype, **_: Any) -> Value:
    """Slices along ``dim``, multiplied one after the other.

    Raises:
        NotLowered: for none or more than 16 elements, and where their number varies.
    """
    if not x.shape:
        return Build.pointwise("identity", Build.cast(x, out), dtype=out)
    axis = normalise(dim, len(x.shape))
    count = x.shape[axis]
    if not count.is_Integer or not 0 < count <= _MOST_FACTORS:
        raise NotLowered("a product of many elements")
    factors = [Build.slice(Build.cast(x, out), axis, sympy.Integer(i), sympy.S.One, sympy.S.One) for i in range(count)]
    value = factors[0]
    for factor in factors[1:]:
        value = Build.pointwise("mul", value, factor)
    return finish(value, (axis,), keepdim)


def extreme(kind: str) -> Any:
    """The lowering of ``amax`` or ``amin`` (``kind`` is max or min); of floating point NaN if one is."""

    def lower(x: Value, *args: Any, keepdim: bool = False, **_: Any) -> Value:
        dims, keep = _split(args)
        axes = dims_of(dims, len(x.shape))
        value = Build.reduce(f"a{kind}" if x.dtype.is_floating_point else kind, x, axes, name=f"row_{kind}")
        value.dtype = x.dtype
        value.meaning = (kind, (x, axes))
        return finish(value, axes, keep or keepdim)

    return lower


def extreme_with_index(kind: str) -> Any:
    """max and min: of everything, of two tensors, or over one dim with the index."""

    def lower(x: Value, *args: Any, keepdim: bool = False, out: Any = None, **_: Any) -> Any:
        if args and isinstance(args[0], Value):
            name = f"{kind}imum" + ("" if x.dtype.is_floating_point else "_int")
            return Build.arithmetic(name, x, args[0], result=x.dtype)
        if not args:
            return extreme(kind)(x)
        keep = keepdim or (len(args) > 1 and bool(args[1]))
        return [extreme(kind)(x, args[0], keep), position(f"arg{kind}")(x, args[0], keep)]

    return lower


def position(kind: str) -> Any:
    """The lowering of ``argmax`` or ``argmin``: int64; without ``dim`` the place in the flattened tensor."""

    def lower(x: Value, dim: int | None = None, keepdim: bool = False, **_: Any) -> Value:
        if dim is None:
            x = Build.reshape(x, (numel(x.shape),))
            dim = 0
        axes = (normalise(dim, len(x.shape)),)
        value = Build.reduce(kind, x, axes, name="position")
        value.meaning = (kind, (x, axes))
        return finish(value, axes, keepdim)

    return lower


def variance(x: Value, axes: tuple[int, ...], correction: float) -> tuple[Value, Value]:
    """(variance, mean) with dims kept; two passes, as sum((x - mean)^2) / (n - correction).

    Raises:
        NotLowered: for a correction that is not an integer.
    """
    average = Build.mean(x, axes)
    centered = Build.pointwise("sub", x, average, name="centered")
    squares = Build.reduce("sum", Build.pointwise("mul", centered, centered), axes)
    count = numel(tuple(x.shape[d] for d in axes))
    if not float(correction).is_integer():
        raise NotLowered("a fractional correction")
    divisor = count - int(correction)
    if correction > 1:  # of no more elements than that the variance is 0 / 0
        divisor = sympy.Max(divisor, 0)
    value = Build.pointwise("div", squares, size_operand(divisor), name="variance", meaning=("var", (x, axes)))
    return value, average


def _correction(args: tuple[Any, ...], correction: Any, unbiased: Any) -> tuple[Any, float, bool]:
    """(dims, correction, keepdim) of the many overloads of var and std."""
    dims, keep = None, False
    rest = list(args)
    if rest and (rest[0] is None or isinstance(rest[0], list | tuple | int)) and not isinstance(rest[0], bool):
        dims = rest.pop(0)
    if rest and isinstance(rest[0], bool):
        unbiased = rest.pop(0)
    if rest and isinstance(rest[0], bool):
        keep = rest.pop(0)
    if correction is None:
        correction = 1.0 if unbiased in (None, True) else 0.0
    return dims, float(correction), keep


@lowers("aten.var", about="Variance over dims")
def var(
    x: Value, *args: Any, correction: Any = None, unbiased: Any = None, keepdim: bool = False, dim: Any = None, **_: Any
) -> Value:
    """``correction`` is taken from the number of elements, 1 by default."""
    dims, amount, keep = _correction(args, correction, unbiased)
    axes = dims_of(dims if dims is not None else dim, len(x.shape))
    return finish(variance(x, axes, amount)[0], axes, keep or keepdim)


@lowers("aten.std", about="Standard deviation over dims")
def std(
    x: Value, *args: Any, correction: Any = None, unbiased: Any = None, keepdim: bool = False, dim: Any = None, **_: Any
) -> Value:
    """The root of ``var``."""
    dims, amount, keep = _correction(args, correction, unbiased)
    axes = dims_of(dims if dims is not None else dim, len(x.shape))
    root = Build.pointwise("sqrt", variance(x, axes, amount)[0], name="std", meaning=("std", (x, axes)))
    return finish(root, axes, keep or keepdim)


@lowers("aten.var_mean", about="Variance and mean over dims")
def var_mean(
    x: Value, *args: Any, correction: Any = None, unbiased: Any = None, keepdim: bool = False, **_: Any
) -> list[Value]:
    """[variance, mean], from the same pass; ``correction`` as in ``var``."""
    dims, amount, keep = _correction(args, correction, unbiased)
    axes = dims_of(dims, len(x.shape))
    spread, average = variance(x, axes, amount)
    return [finish(v, axes, keep or keepdim) for v in (spread, told(average, spread))]


def told(average: Value, spread: Value) -> Value:
    """The mean as torch gives it beside a variance: NaN where an infinity is among the elements."""
    squares = spread.op.operands[0] if isinstance(spread.op, Pointwise) else spread  # not yet divided by their number
    unknown = Build.comparison("ne", squares, squares)
    return Build.pointwise("where", unknown, spread, average, dtype=average.dtype)


@lowers("aten.norm")
def norm(x: Value, p: Any = 2, dims: Any = None, keepdim: bool = False, *, out: torch.dtype, **_: Any) -> Value:
    """The vector p-norm: (sum |x|^p)^(1/p), max |x| for infinity.

    Raises:
        NotLowered: for the order 0, and negative ones but minus infinity.
    """
    axes = dims_of(dims, len(x.shape))
    p = 2.0 if p is None else float(p)
    x = Build.cast(x, out)
    magnitude = Build.pointwise("abs", x)
    if p == 2:
        result = Build.pointwise("sqrt", Build.reduce("sum", Build.pointwise("mul", x, x), axes), name="norm")
    elif p == 1:
        result = Build.reduce("sum", magnitude, axes, name="norm")
    elif p == math.inf:
        result = Build.reduce("amax", magnitude, axes, name="norm")
    elif p == -math.inf:
        result = Build.reduce("amin", magnitude, axes, name="norm")
    elif p > 0:
        powers = Build.reduce("sum", Build.pointwise("pow", magnitude, p), axes)
        result = Build.pointwise("pow", powers, 1.0 / p, name="norm")
    else:
        raise NotLowered(f"norm of order {p}")
    result.meaning = ("norm", (x, axes))
    return finish(result, axes, keepdim)


@lowers("aten.linalg_vector_norm", about="The vector p-norm")
def linalg_vector_norm(
    x: Value, p: Any = 2, dims: Any = None, keepdim: bool = False, *, out: torch.dtype, **_: Any
) -> Value:
    """``norm`` with ``p`` 2 by default; without dims over all."""
    return norm(x, p, dims, keepdim, out=out)


def softmax_parts(x: Value, dim: int) -> tuple[Value, Value, Value]:
    """(shifted, exps, denominator) of a numerically stable softmax."""
    highest = Build.reduce("max", x, (dim,), name="row_max")
    shifted = Build.pointwise("sub", x, highest, name="shifted")
    exps = Build.pointwise("exp", shifted, name="numerator")
    return shifted, exps, Build.reduce("sum", exps, (dim,), name="denominator")


@lowers(
    "aten.softmax",
    "aten._softmax",
    about="Softmax along a dim",
    formula="softmax(v) = exp(v - max(v)) / sum(exp(v - max(v)))",
)
def softmax(x: Value, dim: int, *_: Any, out: torch.dtype, **__: Any) -> Value:
    """In float32 for half precision, with the row's maximum subtracted first."""
    exps, denominator = softmax_parts(Build.cast(x, out), normalise(dim, len(x.shape)))[1:]
    return Build.pointwise(
        "div", exps, denominator, dtype=out, meaning=("softmax", (x, (normalise(dim, len(x.shape)),)))
    )


@lowers(
    "aten.log_softmax",
    "aten._log_softmax",
    about="Logarithm of the softmax",
    formula="log_softmax(v) = v - max(v) - log(sum(exp(v - max(v))))",
)
def log_softmax(x: Value, dim: int, *_: Any, out: torch.dtype, **__: Any) -> Value:
    """In float32 for half precision, with the row's maximum subtracted first."""
    shifted, _exps, denominator = softmax_parts(Build.cast(x, out), normalise(dim, len(x.shape)))
    result = Build.pointwise("sub", shifted, Build.pointwise("log", denominator, name="log_denominator"), dtype=out)
    result.meaning = ("log_softmax", (x, (normalise(dim, len(x.shape)),)))
    return result


@lowers(
    "aten.logsumexp", about="log(sum(exp(x))) over dims", formula="logsumexp(v) = max(v) + log(sum(exp(v - max(v))))"
)
def logsumexp(x: Value, dims: Any, keepdim: bool = False, *, out: torch.dtype, **_: Any) -> Value:
    """With the maximum subtracted first; where that is infinite, it is the result."""
    axes = dims_of(dims, len(x.shape))
    x = Build.cast(x, out)
    highest = Build.reduce("max", x, axes, name="row_max")
    # inf - inf is NaN, where the result is the infinity itself.
    infinite = Build.comparison("eq", Build.pointwise("abs", highest), math.inf)
    highest = Build.pointwise("where", infinite, 0.0, highest, dtype=highest.dtype, name="shift")
    total_exp = Build.reduce(
        "sum", Build.pointwise("exp", Build.pointwise("sub", x, highest)), axes, name="denominator"
    )
    result = Build.pointwise(
        "add", highest, Build.pointwise("log", total_exp), dtype=out, meaning=("logsumexp", (x, axes))
    )
    return finish(result, axes, keepdim)


def any_all(kind: str) -> Any:
    """The lowering of ``any`` or ``all``: the maximum or minimum of flags in int32, then bool."""

    def lower(x: Value, *args: Any, keepdim: bool = False, **_: Any) -> Value:
        dims, keep = _split(args)
        axes = dims_of(dims, len(x.shape))
        flags = Build.pointwise("to_int32", Build.cast(x, torch.bool), dtype=torch.int32)
        folded = Value(
            Reduce("max" if kind == "any" else "min", flags, axes), Build.reduce("sum", flags, axes).shape, torch.int32
        )
        return finish(Build.pointwise("to_bool", folded, dtype=torch.bool), axes, keep or keepdim)

    return lower


for _kind in ("max", "min"):
    lowers(f"aten.a{_kind}", about=f"The {_kind}imum over dims")(extreme(_kind))
    lowers(f"aten.{_kind}", about=f"The {_kind}imum of all, of two tensors, or over a dim with its place")(
        extreme_with_index(_kind)
    )
    lowers(f"aten.arg{_kind}", about=f"The place of the {_kind}imum")(position(f"arg{_kind}"))
lowers("aten.any", about="Whether one of the elements is not zero")(any_all("any"))
lowers("aten.all", about="Whether no element is zero")(any_all("all"))
