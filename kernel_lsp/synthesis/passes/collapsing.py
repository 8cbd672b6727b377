"""Sums and means of what products and convolutions give, taken before these: as many additions, and far fewer products.

A product and a convolution are linear in each operand, so the sum over some of their results is a product of sums. That holds for any
weights and inputs, but for the order in which numbers are added, and for what is not finite: where the module adds two infinities to NaN, a sum
of the inputs may stay infinite. So it is not done where a function that follows would make a number of the infinity. Between them may stand what is added, and what multiplies all that is
summed alike. An average pooling of a convolution is a convolution whose weight is the mean of the window's, or, where the weight has one
element, the convolution of an average.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import sympy
import torch

from ..graph.build import Build, size_operand
from ..graph.lowered import Graph
from ..graph.map import Map, dim, dims
from ..graph.names import variable_name
from ..graph.order import order_of, topological
from ..graph.sizes import ONE, ZERO
from ..graph.value import Average, Contract, Convolution, Pointwise, Reduce, Scalar, Shape, Value, View, operands
from ..operators.convolution import convolution
from ..operators.pooling import average
from ..operators.transposed import transposed

_LINEAR = ("add", "sub", "mul", "div")
#: Functions after which an infinity is still one, and NaN still NaN, and those of which that does not hold though they keep their operand.
_KEEPING = frozenset([*_LINEAR, "neg", "abs", "identity", "sqrt", "log", "log2", "log1p"])
_CUT = frozenset(["relu", "relu6", "elu", "selu", "celu", "threshold", "hardtanh"])
#: What becomes of a value that is linear in an operand of a convolution or product; None where it is not, or nothing is saved.
_Way = Callable[[Value], Value | None]


def collapse(graph: Graph) -> int:
    """Rewrite the sums and means of linear maps for which that saves work. Returns how many there were."""
    uses, users = _uses(graph), order_of(graph.outputs).users
    for value in topological(graph.outputs):
        found = _collapsed(value, uses)
        if found is not None and not _is_bounded(value, users):
            value.op, value.convolved, value.averaged = found.op, found.convolved, None
            graph.collapsed.append((value.meaning or ("sum",))[0])
            uses = _uses(graph)
    return len(graph.collapsed)


def _is_bounded(value: Value, users: dict[Value, list[Value]]) -> bool:
    """Whether a function makes a number of an infinity of ``value``: ``sigmoid(x + 1)`` does, ``x * sigmoid(x)`` does not.

    What is reduced, and the exponentials of a softmax, are not looked at further: they mix it with others, of which one is NaN most often.
    """
    stack, seen = [value], {value}
    while stack:
        x = stack.pop()
        for user in _gates(x, users) or users.get(x, []):
            op = user.op
            if user in seen or not isinstance(op, Pointwise | View):
                continue
            seen.add(user)
            if (user.meaning or ("",))[0] in _CUT:
                return True
            if isinstance(op, View) or _keeps(op, x):
                stack.append(user)
            elif op.function not in ("exp", "exp2") or not _is_shifted(x):
                return True
    return False


def _gates(x: Value, users: dict[Value, list[Value]]) -> list[Value]:
    """The products of ``x``, or of a multiple, with what is computed from it element by element, as in SiLU and GELU.

    Of an infinity they are infinity or NaN, whatever the other factor is.
    """
    kept, derived, stack = {x}, {x}, [x]
    found: list[Value] = []
    while stack:
        v = stack.pop()
        for user in users.get(v, []):
            op = user.op
            if not isinstance(op, Pointwise):
                continue
            factors = [o for o in op.operands if o in derived]
            if op.function == "mul" and len(factors) == 2 and any(o in kept for o in factors):
                found.append(user)
            elif user not in derived:
                stack.append(user)
                kept |= {user} if v in kept and _keeps(op, v) else set()
            derived.add(user)
    return found


def _keeps(op: Pointwise, x: Value) -> bool:
    """Whether what is infinite in ``x`` is so in the result."""
    if op.function == "div":
        return op.operands[0] is x
    return op.function in _KEEPING or op.function.startswith("to_float")


def _is_shifted(x: Value) -> bool:
    """Whether it is what a softmax takes exponentials of: numbers less the greatest of them."""
    return isinstance(x.op, Pointwise) and x.op.function in ("sub", "mul") and _is_of_reduction(x)


def _is_of_reduction(value: Value) -> bool:
    """Whether it is computed from a reduction, element by element."""
    seen: set[Value] = set()
    stack = [value]
    while stack:
        x = stack.pop()
        if isinstance(x.op, Reduce):
            return True
        if x not in seen and isinstance(x.op, Pointwise | View):
            seen.add(x)
            stack += operands(x)
    return False


def _uses(graph: Graph) -> Counter[Value]:
    """How often each value is read, or returned."""
    ends = [*graph.outputs, *graph.updates.values(), *graph.looked_at]
    return Counter([*ends, *(v for value in topological(graph.outputs) for v in operands(value))])


def _collapsed(value: Value, uses: Counter[Value]) -> Value | None:
    if value.dtype != torch.float32:
        return None
    if value.averaged is not None:
        pool = value.averaged
        axes = tuple(range(len(value.shape) - len(pool.sizes), len(value.shape)))
        way = functools.partial(_pooled, pool=pool, shape=value.shape)
        return _along(pool.x, axes, way, lambda other: other if _is_constant(other, axes, value.shape) else None, uses)
    op = value.op
    if isinstance(op, Reduce) and op.kind == "sum" and not op.part:
        summed = functools.partial(_summed, axes=op.dims)
        shape = op.operand.shape
        return _along(op.operand, op.dims, summed, lambda other: _sum_of(other, op.dims, shape), uses)
    return None


def _along(
    value: Value, axes: tuple[int, ...], way: _Way, other: Callable[[Any], Any], uses: Counter[Value]
) -> Value | None:
    """``way`` of the linear map that ``value`` is, or is a sum or a multiple of.

    ``other``: the same of what is added to it; None where that cannot be. What multiplies it has to be constant along ``axes``.
    """
    if uses[value] != 1 or value.dtype != torch.float32:
        return None  # it is computed as a whole anyway
    if (found := way(value)) is not None:
        return found
    op = value.op
    if not isinstance(op, Pointwise) or op.function not in _LINEAR or len(op.operands) != 2:
        return None
    for place, operand in enumerate(op.operands[:1] if op.function == "div" else op.operands):
        beside = op.operands[1 - place]
        if not isinstance(operand, Value) or operand.shape != value.shape:
            continue
        if op.function in ("mul", "div"):
            kept = beside if _is_constant(beside, axes, value.shape) else None
        else:
            kept = other(beside)
        if kept is None or (inner := _along(operand, axes, way, other, uses)) is None:
            continue
        both = (inner, kept) if place == 0 else (kept, inner)
        return Build.pointwise(op.function, *both, dtype=torch.float32, name=value.name)
    return None


def _place(operand: Value, axis: int, shape: Shape) -> int:
    """The dimension of ``operand``, which is broadcast to ``shape``, that lies along ``axis``; negative where it has none."""
    return axis - (len(shape) - len(operand.shape))


def _is_constant(operand: Any, axes: tuple[int, ...], shape: Shape) -> bool:
    """Whether an operand that is broadcast to ``shape`` is the same everywhere along ``axes``."""
    if not isinstance(operand, Value):
        return True
    places = (_place(operand, axis, shape) for axis in axes)
    return all(place < 0 or operand.shape[place] == ONE for place in places)


def _sum_of(operand: Any, axes: tuple[int, ...], shape: Shape) -> Any:
    """The sum over ``axes``, kept with size one, of an operand that is broadcast to ``shape``."""
    if not isinstance(operand, Value):
        operand = Value(
            Pointwise("constant" if not isinstance(operand, Scalar) else "identity", (operand,)), (), torch.float32
        )
    places = {axis: _place(operand, axis, shape) for axis in axes}
    varies = {axis for axis, place in places.items() if place >= 0 and operand.shape[place] != ONE}
    if operand.dtype != torch.float32:
        operand = Build.cast(operand, torch.float32)
    times = sympy.prod([shape[axis] for axis in axes if axis not in varies])
    if varies:
        operand = Build.reduce("sum", operand, tuple(sorted(places[axis] for axis in varies)))
    return operand if times == ONE else Build.pointwise("mul", operand, size_operand(times), dtype=torch.float32)


def _summed(value: Value, axes: tuple[int, ...]) -> Value | None:
    """The sum of a product's or a convolution's results over ``axes``, kept with size one."""
    if value.convolved is not None:
        return _summed_convolution(value.convolved, axes, value.shape)
    return _summed_product(value, axes) if isinstance(value.op, Contract) else None


def _summed_product(value: Value, axes: tuple[int, ...]) -> Value | None:
    op = value.op
    assert isinstance(op, Contract)
    plain = not (op.convolves or op.outer or op.lengths or op.exact) and op.scaled == 1.0
    letters = [op.axes[axis] for axis in axes if value.shape[axis] != ONE]
    sides = [op.varies(letter) for letter in letters]
    if not plain or not letters or any(all(side) for side in sides):
        return None
    if not op.left.dtype == op.right.dtype == torch.float32 or not op.summed:
        return None
    left, right = (
        _sum(v, tuple(of.index(letter) for letter, side in zip(letters, sides, strict=True) if side[k]))
        if any(side[k] for side in sides)
        else v
        for k, (v, of) in enumerate(((op.left, op.left_axes), (op.right, op.right_axes)))
    )
    shape = tuple(ONE if axis in axes else n for axis, n in enumerate(value.shape))
    return _product(left, op.left_axes, right, op.right_axes, op.axes, shape)


def _product(left: Value, left_axes: str, right: Value, right_axes: str, axes: str, shape: Shape) -> Value:
    """The product, as a sum of what is multiplied element by element where one operand is a vector."""
    free = [
        {a for a, n in zip(of, v.shape, strict=True) if n != ONE and a in axes}
        for v, of in ((left, left_axes), (right, right_axes))
    ]
    if all(free):
        return Build.contract(left, right, left_axes, right_axes, axes, torch.float32)
    summed = [letter for letter in left_axes if letter not in axes]
    order = axes + "".join(summed)

    def spread(v: Value, of: str) -> Value:
        v = Build.permute(v, tuple(of.index(letter) for letter in order if letter in of))
        for d, letter in enumerate(order):
            v = v if letter in of else Build.unsqueeze(v, d)
        return v

    last = tuple(range(len(axes), len(order)))
    terms = Build.pointwise("mul", spread(left, left_axes), spread(right, right_axes), dtype=torch.float32)
    return Build.reshape(Build.squeeze(Build.reduce("sum", terms, last, name="product"), last), shape)


def _summed_convolution(known: Convolution, axes: tuple[int, ...], shape: Shape) -> Value | None:
    """The sum over the places of some or all spatial dimensions.

    Along these the input is summed once for each element of the weight, over what that element is multiplied with. Dimensions that are
    left are convolved as before, with those sums as channels.
    """
    x, weight = known.x, known.weight
    if any(axis < 2 for axis in axes) or not all(n.is_Integer for n in weight.shape):
        return None
    alike = tuple(axis for axis in axes if _takes_all(known, axis))
    if alike:  # each element of the weight is multiplied with each of the input
        x, weight = _sum(x, alike), _sum(weight, alike)
    for axis in reversed(axes):
        if axis not in alike:
            x = _sums_along(known, x, axis, shape)
    spatial = range(2, len(shape))
    kept = [axis for axis in spatial if axis not in axes]
    order = (0, 1, *axes, *kept)
    if order != tuple(range(len(order))):
        x, weight = Build.permute(x, order), Build.permute(weight, order)
    inputs = sympy.prod([x.shape[1], *x.shape[2 : 2 + len(axes)]])
    x = Build.reshape(x, (x.shape[0], inputs, *(x.shape[2 + len(axes) :])))
    if known.transposed:  # [C, O, …] as [O, C, …]
        weight = Build.permute(weight, (1, 0, *range(2, len(order))))
    weight = Build.reshape(weight, (weight.shape[0], inputs, *(weight.shape[2 + len(axes) :])))
    if kept:
        result = _convolved(known, x, weight, kept, (*shape[:2], *(shape[axis] for axis in kept)))
    else:
        result = Build.contract(x, weight, "nc", "oc", "no", torch.float32)
    result = Build.reshape(result, tuple(ONE if axis in axes else n for axis, n in enumerate(shape)))
    if known.bias is None:
        return result
    bias = Build.reshape(known.bias, (*known.bias.shape, *[ONE] * len(spatial)))
    times = size_operand(sympy.prod([shape[axis] for axis in axes]))
    return Build.pointwise("add", result, Build.pointwise("mul", bias, times, dtype=torch.float32), dtype=torch.float32)


def _convolved(known: Convolution, x: Value, weight: Value, kept: list[int], shape: Shape) -> Value:
    """What is left of a convolution along the dimensions ``kept``; ``weight`` [O, C, *sizes]."""
    numbers = ([int(of[axis - 2]) for axis in kept] for of in (known.stride, known.padding, known.dilation))
    stride, padding, dilation = numbers
    if not known.transposed:
        return convolution(x, weight, None, stride, padding, dilation, 1, shape=shape, out=torch.float32)
    weight = Build.permute(weight, (1, 0, *range(2, len(weight.shape))))
    return transposed(x, weight, None, stride, padding, 0, 1, dilation, shape=shape, out=torch.float32)


def _sum(value: Value, axes: tuple[int, ...]) -> Value:
    return Build.reduce("sum", value, axes, name=f"{variable_name(value)}_sum")


def _takes_all(known: Convolution, axis: int) -> bool:
    """Whether the results along ``axis`` take all of the input with each element of the weight."""
    stride, padding = known.stride[axis - 2], known.padding[axis - 2]
    return padding == ZERO and (known.transposed or (known.weight.shape[axis] == ONE and stride == ONE))


def _sums_along(known: Convolution, x: Value, axis: int, shape: Shape) -> Value:
    """``x`` with a sum over ``axis`` for each element of the weight: of what it is multiplied with."""
    stride, padding, dilation = (of[axis - 2] for of in (known.stride, known.padding, known.dilation))
    size, rank = known.weight.shape[axis], len(x.shape)
    each = x.shape[axis] if known.transposed else shape[axis]
    index, place = list(dims(rank)), dim(rank) * stride + dim(axis) * dilation - padding
    index[axis] = dim(rank) if known.transposed else place
    guard = (place, ZERO, shape[axis] if known.transposed else x.shape[axis])
    seen = (*x.shape[:axis], size, *x.shape[axis + 1 :], each)
    window = Build.view(x, Map(seen, x.shape, tuple(index), (guard,), 0.0), "window")
    return Build.squeeze(_sum(window, (rank,)), (rank,))


def _pooled(value: Value, pool: Average, shape: Shape) -> Value | None:
    """The average pooling of a convolution's result, of shape ``shape``; None where that would multiply as much."""
    known = value.convolved
    if known is None or len(pool.sizes) != len(known.stride) or not all(n.is_Integer for n in known.weight.shape):
        return None
    if all(n == ONE for n in (*known.weight.shape[2:], *known.stride)) and not any(known.padding):
        means = average(len(pool.sizes))(
            known.x, [*pool.sizes], [*pool.step], shape=(*known.x.shape[:2], *shape[2:]), out=torch.float32
        )
        if known.transposed:
            return transposed(means, known.weight, known.bias, shape=shape, out=torch.float32)
        return convolution(means, known.weight, known.bias, shape=shape, out=torch.float32)
    if any(n != ONE for n in known.dilation):
        return None
    taps = [_taps(known, pool, k) for k in range(len(pool.sizes))]
    if any(one is None for one in taps):
        return None
    found = [one for one in taps if one is not None]
    before = [
        int(k) * int(b) / (int(s) if known.transposed else 1)
        for k, b, s in zip(known.weight.shape[2:], pool.step, known.stride, strict=True)
    ]
    if math.prod(count for count, *_ in found) >= math.prod(before):
        return None
    weight = _averaged_weight(known, pool, [(count, each, first) for count, _, _, each, first in found])
    strides, paddings = [one[1] for one in found], [one[2] for one in found]
    return convolution(known.x, weight, known.bias, strides, paddings, shape=shape, out=torch.float32)


def _taps(known: Convolution, pool: Average, k: int) -> tuple[int, int, int, int, int] | None:
    """(elements, stride, padding, sign times step, first) of the convolution along dimension ``k`` that gives the averages.

    Element t of its weight is the sum over the places j of a window of the weight's element ``first`` + j * s - t * u, where (s, u) is
    (-stride, -1) for a convolution and (1, stride) for a transposed one; the fourth number is the stride.
    """
    size, stride, padding = (int(of[k]) for of in (known.weight.shape[2:], known.stride, known.padding))
    window, step = int(pool.sizes[k]), int(pool.step[k])
    if not known.transposed:
        return window * stride - stride + size, stride * step, padding, stride, 0
    if step % stride:
        return None
    # y[i * stride - padding + k] takes x[i]: of the window that begins at q * step, place j takes x[q * step / stride + e]
    # by the element k = j + padding - e * stride.
    first, last = -((size - 1 - padding) // stride), (window - 1 + padding) // stride
    if first > 0:
        return None
    return last - first + 1, step // stride, -first, stride, padding - first * stride


def _averaged_weight(known: Convolution, pool: Average, taps: list[tuple[int, int, int]]) -> Value:
    """[O, C, *elements]: for each element the mean of those of the weight that the places of a window take."""
    weight = known.weight
    if known.transposed:
        weight = Build.permute(weight, (1, 0, *range(2, len(weight.shape))))
    rank = len(taps)
    index: list[sympy.Expr] = [dim(0), dim(1)]
    guards = []
    for k, (_, stride, first) in enumerate(taps):
        tap, place = dim(2 + k), dim(2 + rank + k)
        at = first + place - tap * stride if known.transposed else tap - place * stride
        index.append(at)
        guards.append((at, ZERO, weight.shape[2 + k]))
    shape = (*weight.shape[:2], *(sympy.Integer(count) for count, *_ in taps), *pool.sizes)
    seen = Build.view(weight, Map(shape, weight.shape, tuple(index), tuple(guards), 0.0), "window")
    last = tuple(range(2 + rank, 2 + 2 * rank))
    total = Build.squeeze(Build.reduce("sum", seen, last, name="total"), last)
    name = f"{variable_name(known.weight)}_mean"
    return Build.pointwise("mul", total, 1.0 / float(sympy.prod(pool.sizes)), dtype=torch.float32, name=name)
