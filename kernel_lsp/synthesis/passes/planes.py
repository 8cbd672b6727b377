"""float32 products by tensor cores: each operand becomes two float16 planes, and three products of those are added up.

x = high + low / 2^11 + rest, where high is x rounded to float16 and low is what that leaves, scaled so that it is no smaller than
high's own numbers, and rounded again; the rest is below 2^-22 of x. x * y is then (low * high + high * low) / 2^11 + high * high, as
exact as float32 to about its last bit, for numbers that are not 10^4 times smaller than the largest of their tensor: below that bits are lost. The method is that of Ootomo and Yokota, "Recovering single precision accuracy from Tensor
Cores while surpassing the FP32 theoretical peak performance" (2022). What float16 does not hold is computed otherwise, see ``Exact``.

Rows of a matrix that are no multiple of 16 bytes would be read number by number. Then planes are written with the summed dimension last and
zeros at its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv

from ..graph.build import Build
from ..graph.division import Quotient, Remainder
from ..graph.lowered import Graph
from ..graph.map import Map, compose, dim, dims
from ..graph.order import topological
from ..graph.sizes import ONE, ZERO
from ..graph.value import Concat, Contract, Exact, Value, View, numel
from .peaks import peak_of

#: Numbers of float16 that are read at once; what sizes that vary are a multiple of, so that Triton sees it.
_READ_AT_ONCE, _MULTIPLE = 8, 16

#: The summed letter that goes through the three products.
LETTER = "P"
_PRODUCTS, _TWO = sympy.Integer(3), sympy.Integer(2)

#: What the low plane is multiplied by: as many bits as the high one holds.
SCALE = 2.0**11

#: Of the planes (low, high) the products take, in this order, 0 1 1 on the left and 1 0 1 on the right: the small ones first.
LEFT, RIGHT = Quotient(dim(0) + 1, _TWO), Remainder(dim(0) + 1, _TWO)

#: The same of planes (low, high times ``SCALE``, high) on the right, of which the last product takes the second.
RAISED_RIGHT = Remainder(dim(0) + 2, sympy.Integer(3))

#: The largest magnitude of a tensor that two planes hold to 22 bits: the largest number of float16; and where what is lost of a
#: small number, 2^-36, is 2^-24 of the largest magnitude.
LEAST_PEAK, MOST_PEAK = 2.0**-12, 65504.0

#: The largest magnitude of a tensor whose high plane is also stored times ``SCALE``.
MOST_RAISED = MOST_PEAK / SCALE

#: Rows, columns or summed elements below which planes are not used where a size varies and the example has more: float32 units round so little there
#: that what tensor cores truncate shows, and the passes over the operands take longer than the product. A thin product (``thin_products.py``) has few rows, and planes.
LEAST_SIDE = 64

#: Summed elements that are one step of a product's kernel, which then takes all three products in it.
SHORT_SUM = 64

#: Elements after which the sum begins again where that is asked for, the fastest first: tensor cores truncate each time that they add to it.
STEPS = (64, 32)

#: A tensor, the order in which its dimensions are written, and how long the one that is longer becomes.
_Layout = tuple[Value, tuple[int, ...], sympy.Expr | None]


def split_into_planes(graph: Graph, worthwhile: Callable[[Contract], bool], *, begins_again: int = 0) -> int:
    """Split the operands of the float32 products that are ``worthwhile``. Returns how many there were.

    ``begins_again``: see ``Contract``; so do those whose sum is one step at the example's sizes.
    """
    planes: dict[_Layout, Value] = {}
    products = [
        value
        for value in topological(graph.outputs)
        if isinstance(value.op, Contract)
        and value.op.left.dtype == value.op.right.dtype == torch.float32
        and not value.op.tf32
        and not any(repeats(operand, graph.hints) for operand in (value.op.left, value.op.right))
        and worthwhile(value.op)
    ]
    for value in products:
        op = value.op
        assert isinstance(op, Contract)
        left, right = _aligned(op, graph.hints, planes) or (
            chosen(op.left, LEFT, planes),
            chosen(op.right, RIGHT, planes),
        )
        peaks = tuple(dict.fromkeys(peak_of(beneath(v)) for v in (left, right)))
        value.op = Contract(
            left,
            right,
            LETTER + op.left_axes,
            LETTER + op.right_axes,
            op.axes,
            outer=LETTER,
            scaled=1 / SCALE,
            exact=Exact(op, peaks, LEAST_PEAK, MOST_PEAK, sides=_may_be_short(op, graph.hints), least_side=LEAST_SIDE),
            begins_again=SHORT_SUM if _is_short(op, graph.hints) else begins_again,
        )
    return len(products)


def _may_be_short(op: Contract, hints: dict[sympy.Symbol, int]) -> tuple[sympy.Expr, ...]:
    """How many rows, columns and summed elements there are, where that varies and is not below ``LEAST_SIDE`` at the example's sizes."""
    sides = [[letter for letter in op.axes if op.varies(letter) == only] for only in ((True, False), (False, True))]
    sizes = [sympy.expand(math.prod(op.size(letter) for letter in side)) for side in [*sides, list(op.summed)]]
    return tuple(n for n in sizes if not n.is_number and n.subs(hints) >= LEAST_SIDE)


def _is_short(op: Contract, hints: dict[sympy.Symbol, int]) -> bool:
    return bool(math.prod(op.size(letter).subs(hints) for letter in op.summed) <= SHORT_SUM)


def repeats(operand: Value, hints: dict[sympy.Symbol, int]) -> bool:
    """Whether it is a view that has elements of a tensor several times, as windows do: its planes would be larger."""
    while isinstance(operand.op, View):
        seen, viewed = (numel(v.shape).subs(hints) for v in (operand, operand.op.operand))
        if operand.op.map.inverse is None and seen > viewed:
            return True
        operand = operand.op.operand
    return False


def planes_of(x: Value, *, raised: bool = False) -> Value:
    """``x`` as [2, *x.shape] in float16: what rounding it leaves, times 2^11, and ``x`` rounded.

    ``raised``: [3, *x.shape], with ``x`` rounded times 2^11 between these.
    """
    whole = Build.unsqueeze(x, 0)
    high = Build.pointwise("to_float16", whole, dtype=torch.float16, name="high")
    rest = Build.pointwise("sub", whole, Build.pointwise("to_float32", high, dtype=torch.float32))
    low = Build.pointwise("to_float16", Build.pointwise("mul", rest, SCALE), dtype=torch.float16, name="low")
    name = f"{x.name}_planes" if x.name else ""
    planes = [low, high]
    if raised:
        times = Build.pointwise("mul", Build.pointwise("to_float32", high, dtype=torch.float32), SCALE)
        planes.insert(1, Build.pointwise("to_float16", times, dtype=torch.float16, name="raised"))
    every = Value(Concat(tuple(planes), 0), (sympy.Integer(len(planes)), *x.shape), torch.float16, name, node=x.node)
    every.meaning = ("float16_planes", (x,))
    return every


def beneath(view: Value) -> Value:
    """What a view views."""
    assert isinstance(view.op, View)
    return view.op.operand


def chosen(operand: Value, place: sympy.Expr, planes: dict[_Layout, Value]) -> Value:
    """[3, *operand.shape]: for each of the three products the plane at ``place``.

    Of an operand that is a view, what it views is split, in the order in which it lies in memory.
    """
    base, view = rearranged(operand)
    layout = base, tuple(range(len(base.shape))), None
    if layout not in planes:
        planes[layout] = planes_of(base)
    return of_each_product(planes[layout], view, place)


def rearranged(operand: Value) -> tuple[Value, Map]:
    """The tensor in memory of which ``operand`` is a view that has each element once, and that view."""
    base, view = operand, Map(operand.shape, operand.shape, dims(len(operand.shape)), inverse=dims(len(operand.shape)))
    while isinstance(base.op, View) and base.op.map.inverse is not None:
        both = compose(view, base.op.map)
        assert both is not None, "maps without guards compose"
        base, view = base.op.operand, both
    return base, view


def in_pieces(operands: Iterable[Value], count: int, hints: dict[sympy.Symbol, int]) -> bool:
    """Whether their rows, as they lie in memory, begin where ``count`` elements are read at once."""
    lengths = [rearranged(operand)[0].shape[-1] for operand in operands if operand.shape]
    return all(length == ONE or length.subs(hints) % count == 0 for length in lengths)


def _aligned(op: Contract, hints: dict[sympy.Symbol, int], planes: dict[_Layout, Value]) -> tuple[Value, Value] | None:
    """The operands as ``chosen`` has them, of planes whose rows begin at addresses from which 16 bytes are read at once.

    None where they do so as they lie in memory, or where an operand is no matrix with its dimensions in some order.
    """
    letter = op.summed
    sides = [(*rearranged(v), axes) for v, axes in ((op.left, op.left_axes), (op.right, op.right_axes))]
    if len(letter) != 1 or op.varies(letter) != (True, True) or any(view.permutation is None for _, view, _ in sides):
        return None

    def rough(size: sympy.Expr) -> bool:
        return bool(size.subs(hints) % _READ_AT_ONCE)

    if not any(rough(base.shape[-1]) and base.shape[-1] != ONE for base, _, _ in sides):
        return None
    length, wide = op.size(letter), None
    if rough(length):
        wide = _MULTIPLE * FloorDiv(sympy.expand(length + _MULTIPLE - 1), _MULTIPLE)
    found: list[Value] = []
    for (base, view, axes), place in zip(sides, (LEFT, RIGHT), strict=True):
        order = list(range(len(base.shape)))
        summed = view.index.index(dim(axes.index(letter)))
        if summed != order[-1] and rough(base.shape[-1]):
            order = [*(d for d in order if d != summed), summed]
        layout = base, tuple(order), wide
        if layout not in planes:
            planes[layout] = planes_of(_written(base, order, summed, wide))
        sizes = tuple(wide if wide is not None and x == letter else n for x, n in zip(axes, view.shape, strict=True))
        found.append(
            of_each_product(
                planes[layout], Map(sizes, planes[layout].shape[1:], tuple(view.index[d] for d in order)), place
            )
        )
    return found[0], found[1]


def _written(base: Value, order: list[int], longer: int, wide: sympy.Expr | None) -> Value:
    """``base`` with its dimensions in ``order``, and zeros at the end of one that becomes ``wide``."""
    shape = tuple(wide if wide is not None and d == longer else base.shape[d] for d in order)
    guard = ((dim(order.index(longer)), ZERO, base.shape[longer]),) if wide is not None else ()
    index = tuple(dim(order.index(d)) for d in range(len(order)))
    if not guard and order == sorted(order):
        return base
    value = Build.view(base, Map(shape, base.shape, index, guard, 0.0 if guard else None), "aligned")
    value.name = base.name
    return value


def of_each_product(planes: Value, map: Map, place: sympy.Expr) -> Value:
    """[3, *map.shape]: what ``map`` sees of the plane at ``place``, for each of the three products."""
    later = {dim(i): dim(i + 1) for i in range(len(map.shape))}
    index = (place, *(e.xreplace(later) for e in map.index))
    guard = tuple((e.xreplace(later), low, high) for e, low, high in map.guard)
    return Build.view(planes, Map((_PRODUCTS, *map.shape), planes.shape, index, guard, map.pad), "plane")
