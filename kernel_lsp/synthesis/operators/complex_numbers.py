"""Complex tensors as pairs of real ones: Triton has no complex numbers.

A node with a complex result or argument is computed on real and imaginary parts, by the lowerings of the real operators where
these are linear. Where there is no rule torch computes it, and is given complex tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree

from ..graph.build import Build, NotLowered, broadcast_shapes
from ..graph.value import AS_COMPLEX, AS_REAL, Pointwise, TorchCall, Value
from . import registry
from .elementwise import cast
from .views import expand, matrix_transpose

#: the lowering of the node's operator for tensors that are not complex: (arguments, keywords) → value, or a list of values
Real = Callable[[Any, Any], Any]

registry.DEFINITIONS["real"] = "real(v) = v[..., 0], the real parts of complex numbers as pairs"
registry.DEFINITIONS["imag"] = "imag(v) = v[..., 1], their imaginary parts"


@dataclass(eq=False)
class Complex:
    """A complex tensor by its parts, both of its shape. ``tensor``: the same as torch has it, where torch does."""

    real: Value
    imag: Value
    tensor: Value | None = None


def occur(fake: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operator's result or an argument is complex."""
    given = any(isinstance(leaf, Complex | complex) for leaf in pytree.tree_leaves((args, kwargs)))
    return given or any(_is_complex(leaf) for leaf in pytree.tree_leaves(fake))


def _is_complex(fake: Any) -> bool:
    return isinstance(fake, torch.Tensor) and fake.is_complex()


def real_fake(fake: Any) -> Any:
    """torch's fake tensor of the parts of a complex one; anything else as it is."""
    if not _is_complex(fake):
        return fake
    return fake.new_empty_strided(fake.shape, fake.stride(), dtype=fake.dtype.to_real())


def parts(value: Any) -> Any:
    """``value``, by its parts where it is a complex tensor that torch has; also inside a list of results."""
    if isinstance(value, list):
        return [parts(one) for one in value]
    if not isinstance(value, Value) or not value.dtype.is_complex:
        return value
    shape = (*value.shape, sympy.Integer(2))
    pairs = Value(TorchCall(AS_REAL, (value,), {}), shape, value.dtype.to_real(), f"{value.name or 'complex'}_pairs")
    return Complex(*_of_pairs(pairs), value)


def _of_pairs(pairs: Value) -> tuple[Value, Value]:
    """The real and imaginary parts of [..., 2]."""
    real, imag = (Build.select(pairs, len(pairs.shape) - 1, sympy.Integer(place)) for place in (0, 1))
    real.meaning, imag.meaning = ("real", (pairs,)), ("imag", (pairs,))
    return real, imag


def whole(value: Any) -> Any:
    """``value`` as torch has it: a complex tensor where it is given by its parts."""
    if not isinstance(value, Complex):
        return value
    if value.tensor is None:
        pairs, dtype = _pairs(value), value.real.dtype.to_complex()
        value.tensor = Value(TorchCall(AS_COMPLEX, (pairs,), {}), value.real.shape, dtype, "as_complex")
    return value.tensor


def copied(value: Value) -> Value:
    """A complex tensor that torch has, in memory of its own."""
    z = parts(value)
    assert isinstance(z, Complex)
    real, imag = (Value(Pointwise("identity", (part,)), part.shape, part.dtype) for part in (z.real, z.imag))
    copy = whole(Complex(real, imag))
    assert isinstance(copy, Value)
    return copy


def _pairs(z: Complex) -> Value:
    """[..., 2], the parts of each element side by side."""
    rank = len(z.real.shape)
    both = tuple(Build.unsqueeze(part, rank) for part in (z.real, z.imag))
    pairs = Build.concat(both, rank, (*z.real.shape, sympy.Integer(2)), z.real.dtype)
    pairs.name = "pairs"
    return pairs


def lower(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fake: Any, real: Real) -> Any:
    """The result of an operator, some of whose tensors are complex: a ``Complex``, a list of them, or a ``Value`` where it is real.

    Raises:
        NotLowered: there is no rule for it.
    """
    known = registry.OPERATORS.get(name)
    if name in _LINEAR or (known is not None and known.addressing and name not in _RULES):
        return _linear(args, kwargs, real)
    if name in _PRODUCTS:
        return _product(args, kwargs, real)
    if name not in _RULES:
        raise NotLowered("complex numbers")
    return _RULES[name](args, kwargs, fake, real)


#: what treats both parts alike, beside the operators that only address elements
_LINEAR = frozenset(
    f"aten.{name}"
    for name in [
        "neg",
        "sum",
        "mean",
        "cumsum",
        "roll",
        "index_select",
        "index",
        "gather",
        "embedding",
    ]
)
#: what is linear in each of two operands
_PRODUCTS = frozenset(
    f"aten.{name}" for name in ["mul", "multiply", "mm", "bmm", "matmul", "mv", "dot", "outer", "einsum"]
)


def _linear(args: Any, kwargs: Any, real: Real) -> Any:
    def of(part: str) -> Any:
        return real(
            *pytree.tree_map(
                lambda one: getattr(one, part) if isinstance(one, Complex | complex) else one, (args, kwargs)
            )
        )

    if not any(isinstance(leaf, Complex | complex) for leaf in pytree.tree_leaves((args, kwargs))):
        return of("real")
    both = of("real"), of("imag")
    return [Complex(*one) for one in zip(*both, strict=True)] if isinstance(both[0], list) else Complex(*both)


def _product(args: Any, kwargs: Any, real: Real) -> Complex:
    """(a + b i) (c + d i), of elements or of matrices. A real factor has an imaginary part of 0, as for torch: infinity times it is NaN.

    Where it is a tensor that part has its shape: each of the four products then has a shape that broadcasts to the result's.
    """
    listed = isinstance(args[0], str)  # einsum: an equation, and a list of operands
    operands = args[1] if listed else args[:2]
    if len(operands) != 2:
        raise NotLowered("a product of more than two complex tensors")
    (a, b), (c, d) = map(_two, operands)

    def of(left: Any, right: Any) -> Value:
        found = real((args[0], [left, right]) if listed else (left, right, *args[2:]), kwargs)
        assert isinstance(found, Value)
        return found

    b, d = (_zero_like(one) if part is None else part for one, part in ((a, b), (c, d)))
    return Complex(Build.pointwise("sub", of(a, c), of(b, d)), Build.pointwise("add", of(a, d), of(b, c)))


def _with_bias(x: Any, weight: Any, bias: Any, dtype: torch.dtype) -> Complex:
    """``x @ weight + bias``, ``bias`` being None where there is none; ``dtype``: of the parts."""
    # Not imported: the order in which families are imported is that of the definitions in a docstring.
    matmul = registry.OPERATORS["aten.mm"].lower
    z = _product((x, weight), {}, lambda operands, _: matmul(*operands, out=dtype))
    if bias is None:
        return z
    added = _completed(bias, dtype)
    return Complex(*(Build.pointwise("add", getattr(z, part), getattr(added, part)) for part in ("real", "imag")))


def _linear_layer(args: Any, _: Any, fake: Any, __: Real) -> Complex:
    """``linear``: the weight is [N, K]."""
    x, weight, *bias = args
    turned = _linear((weight,), {}, lambda given, _: Build.permute(given[0], (1, 0)))
    return _with_bias(x, turned, bias[0] if bias else None, fake.dtype.to_real())


def _addmm(args: Any, kwargs: Any, fake: Any, _: Real) -> Complex:
    if any(factor != 1 for factor in kwargs.values()):
        raise NotLowered("complex numbers times a factor")
    bias, x, weight = args
    return _with_bias(x, weight, bias, fake.dtype.to_real())


def _adjoint(args: Any, _: Any, __: Any, ___: Real) -> Complex:
    """The conjugate of the matrix with its last two dims exchanged."""
    turned = _linear(args, {}, lambda given, _: matrix_transpose(given[0]))
    assert isinstance(turned, Complex)
    return _conjugate(turned)


def _padded(args: Any, kwargs: Any, _: Any, real: Real) -> Any:
    """With zeros: another number would be put into both parts."""
    if any(isinstance(one, bool | int | float | complex) and one != 0 for one in (*args[2:], *kwargs.values())):
        raise NotLowered("complex numbers around which others are put")
    return _linear(args, kwargs, real)


def _two(operand: Any) -> tuple[Any, Any]:
    """Real and imaginary part of an operand; None for an imaginary part that it lacks."""
    if isinstance(operand, Complex | complex):
        return operand.real, operand.imag
    return operand, None


def finished(result: Any, fake: Any, of_part: Callable[[Value, Any], Value]) -> Any:
    """A result as torch has it, complex or not; ``of_part`` checks a part against torch's fake tensor of it.

    What is computed of parts where torch's result is real was given a complex tensor for its shape or dtype alone, or is its real part.

    Raises:
        NotLowered: there are more results than torch has, or one where torch has several.
    """
    if isinstance(result, list):
        if not isinstance(fake, list | tuple) or len(fake) < len(result):
            raise NotLowered("several results where torch has one")
        return [finished(one, f, of_part) for one, f in zip(result, fake, strict=False)]
    if not isinstance(fake, torch.Tensor):
        raise NotLowered("one result where torch has several")
    if not fake.is_complex():
        return of_part(result.real if isinstance(result, Complex) else result, fake)
    z, of_parts = _completed(result, fake.dtype.to_real()), real_fake(fake)
    return Complex(of_part(z.real, of_parts), of_part(z.imag, of_parts), z.tensor)


def _completed(one: Any, dtype: torch.dtype) -> Any:
    """A tensor with an imaginary part, 0 where it has none; ``dtype``: of the parts."""
    if not isinstance(one, Value):
        return one
    real = cast(one, out=dtype)
    return Complex(real, _zero_like(real))


def _zero_like(real: Any) -> Any:
    """The imaginary part of what has none: a number, or a tensor."""
    if not isinstance(real, Value):
        return 0.0
    zero = Value(Pointwise("constant", (0.0,)), (), real.dtype)
    return expand(zero, shape=real.shape) if real.shape else zero


def _together(args: Any, kwargs: Any, fake: Any, real: Real) -> Any:
    """Tensors one after the other, or one in a part of another."""
    completed = pytree.tree_map(lambda one: _completed(one, fake.dtype.to_real()), args)
    return _linear(completed, kwargs, real)


def _chosen(args: Any, kwargs: Any, fake: Any, real: Real) -> Any:
    """By a condition, which comes first."""
    return _linear((args[0], *(_completed(one, fake.dtype.to_real()) for one in args[1:])), kwargs, real)


def _filled(args: Any, kwargs: Any, fake: Any, real: Real) -> Any:
    """With a number; a tensor gives the shape alone."""
    given = [one.real if isinstance(one, Complex) else one for one in args]
    return _linear(given, kwargs, real)


def _sum(args: Any, kwargs: Any, fake: Any, real: Real) -> Complex:
    """``add`` and ``sub``."""
    if any(isinstance(one, complex) for one in (*args[2:], *kwargs.values())):
        raise NotLowered("a complex factor alpha")
    (a, b), (c, d) = (_two(_completed(one, fake.dtype.to_real())) for one in args[:2])
    return Complex(real((a, c), kwargs), real((0.0 if b is None else b, 0.0 if d is None else d), kwargs))


def _quotient(args: Any, _: Any, fake: Any, __: Real) -> Complex:
    """By a real number part by part, by a complex one scaled by its larger part (R. L. Smith, CACM 5 (1962), algorithm 116)."""
    dtype = fake.dtype.to_real()

    def of(function: str, x: Any, y: Any) -> Value:
        return Build.arithmetic(function, x, y, result=dtype)

    (a, b), (c, d) = _two(_completed(args[0], dtype)), _two(args[1])
    if d is None:  # as with 0 for it, which makes NaN of infinities
        return Complex(of("div", of("add", a, of("mul", b, 0.0)), c), of("div", of("sub", b, of("mul", a, 0.0)), c))
    if not (isinstance(a, Value) and isinstance(c, Value)):
        raise NotLowered("a division of or by a complex constant")
    larger = Build.comparison("ge", Build.pointwise("abs", c), Build.pointwise("abs", d))

    def chosen(x: Value, y: Value) -> Value:
        return Build.pointwise("where", larger, x, y, dtype=dtype)

    first, second = chosen(c, d), chosen(d, c)
    ratio = of("div", second, first)
    scale = of("add", first, of("mul", second, ratio))
    real = of("add", chosen(a, of("mul", a, ratio)), chosen(of("mul", b, ratio), b))
    imag = of("sub", chosen(b, of("mul", b, ratio)), chosen(of("mul", a, ratio), a))
    return Complex(of("div", real, scale), of("div", imag, scale))


def _complex(args: Any, _: Any, fake: Any, __: Real) -> Complex:
    """Of real and imaginary parts."""
    real, imag = (cast(part, out=fake.dtype.to_real()) for part in args)
    both = broadcast_shapes(real.shape, imag.shape)
    return Complex(*(part if part.shape == both else expand(part, shape=both) for part in (real, imag)))


def _turned(size: Value, angle: Value) -> Complex:
    """Of sizes and angles in radians."""
    cos, sin = (Build.pointwise(function, angle) for function in ("cos", "sin"))
    return Complex(Build.pointwise("mul", size, cos), Build.pointwise("mul", size, sin))


def _exponential(z: Complex) -> Complex:
    """With infinities as C's ``cexp`` has them (C99, annex G.6.3.1): a real number's stays real, and 0 and infinity have no angle."""
    dtype = z.real.dtype
    turned = _turned(Build.pointwise("exp", z.real), z.imag)

    def chosen(condition: Value, value: Any, otherwise: Value) -> Value:
        return Build.pointwise("where", condition, value, otherwise, dtype=dtype)

    no_angle = Build.comparison("ne", Build.pointwise("sub", z.imag, z.imag), 0.0)
    zero = Build.pointwise("and", no_angle, Build.comparison("eq", z.real, -math.inf), dtype=torch.bool)
    infinite = Build.pointwise("and", no_angle, Build.comparison("eq", z.real, math.inf), dtype=torch.bool)
    real = chosen(zero, 0.0, chosen(infinite, math.inf, turned.real))
    return Complex(real, chosen(zero, 0.0, chosen(Build.comparison("eq", z.imag, 0.0), z.imag, turned.imag)))


def _converted(args: Any, _: Any, fake: Any, __: Real) -> Complex | Value:
    """To or from complex numbers, or of another precision; what becomes real loses its imaginary part."""
    if not fake.is_complex():
        return cast(args[0].real, out=fake.dtype)
    dtype = fake.dtype.to_real()
    z = _completed(args[0], dtype)
    return Complex(cast(z.real, out=dtype), cast(z.imag, out=dtype))


def _conjugate(z: Complex) -> Complex:
    return Complex(z.real, Build.pointwise("neg", z.imag))


_RULES: dict[str, Callable[[Any, Any, Any, Real], Any]] = {
    **dict.fromkeys(["aten.add", "aten.sub", "aten.subtract", "aten.rsub"], _sum),
    **dict.fromkeys(
        [f"aten.{name}" for name in ("cat", "stack", "copy", "slice_scatter", "select_scatter")], _together
    ),
    **dict.fromkeys([f"aten.{name}" for name in ("zeros", "ones", "full")], _filled),
    **dict.fromkeys([f"aten.{name}_like" for name in ("zeros", "ones", "full")], _filled),
    **dict.fromkeys([f"aten.new_{name}" for name in ("zeros", "ones", "full")], _filled),
    **dict.fromkeys(["aten.constant_pad_nd", "aten.pad"], _padded),
    "aten.where": _chosen,
    **dict.fromkeys(["aten.to", "aten._to_copy"], _converted),
    **dict.fromkeys(
        ["aten._conj", "aten.conj", "aten.conj_physical", "aten._conj_physical"],
        lambda args, *_: _conjugate(args[0]),
    ),
    **dict.fromkeys(["aten.resolve_conj", "aten.resolve_neg"], lambda args, *_: args[0]),
    **dict.fromkeys(["aten.div", "aten.divide", "aten.true_divide"], _quotient),
    "aten.linear": _linear_layer,
    "aten.addmm": _addmm,
    **dict.fromkeys(["aten.mH", "aten.adjoint", "aten.matrix_H"], _adjoint),
    "aten.complex": _complex,
    "aten.polar": lambda args, *_: _turned(*args),
    "aten.exp": lambda args, *_: _exponential(args[0]),
    "aten.view_as_complex": lambda args, *_: Complex(*_of_pairs(args[0])),
    "aten.view_as_real": lambda args, *_: _pairs(args[0]),
    "aten.real": lambda args, *_: args[0].real,
    "aten.imag": lambda args, *_: args[0].imag,
    "aten.abs": lambda args, *_: Build.pointwise("hypot", args[0].real, args[0].imag, name="magnitude"),
    "aten.angle": lambda args, *_: Build.pointwise("atan2", args[0].imag, args[0].real, name="angle"),
}
