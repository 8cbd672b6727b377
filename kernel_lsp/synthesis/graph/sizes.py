"""Sizes and indices: sympy expressions over the size symbols of the export."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import sympy

from .value import Shape

Index = tuple[sympy.Expr, ...]
ZERO = sympy.Integer(0)
ONE = sympy.Integer(1)


def same(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    return a == b or sympy.expand(a - b) == 0


def same_shape(a: Sequence[sympy.Expr], b: Sequence[sympy.Expr]) -> bool:
    """Whether two shapes have equal sizes, see ``same``, and as many of them."""
    return len(a) == len(b) and all(same(n, m) for n, m in zip(a, b, strict=True))


@functools.lru_cache(maxsize=4096)
def quotient(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
    """a / b where that is an integer for all values of the symbols, else None."""
    if a.is_Integer and b.is_Integer:
        return a // b if b != ZERO and a % b == ZERO else None
    if same(a, b):
        return ONE
    if b == ONE:
        return a
    q = sympy.cancel(a / b)
    num, den = q.as_numer_denom()
    return num if den == ONE else None


def exact(size: sympy.Expr) -> sympy.Expr:
    """What ``size`` is where every division in it leaves no remainder; never less than ``size`` for a product."""
    floors = [part for part in sympy.preorder_traversal(size) if part.func.__name__ in ("FloorDiv", "CleanDiv")]
    return sympy.expand(size.xreplace({part: part.args[0] / part.args[1] for part in floors}))


def power_of_two_within(n: int) -> int:
    """The greatest power of two that is at most n, and 1 below that."""
    return 1 << (max(n, 1).bit_length() - 1)


def strides(shape: Shape) -> list[sympy.Expr]:
    """Row-major strides in elements."""
    result: list[sympy.Expr] = []
    running: sympy.Expr = ONE
    for size in reversed(shape):
        result.append(running)
        running = sympy.expand(running * size)
    return result[::-1]


def offset(index: Index, shape: Shape) -> sympy.Expr:
    """Row-major offset of ``index`` in elements."""
    return sympy.expand(sum((i * s for i, s, n in zip(index, strides(shape), shape, strict=True) if n != ONE), ZERO))


def broadcast(index: Index, result: Shape, operand: Shape) -> Index:
    """The operand's index where an elementwise operation addresses its result by ``index``."""
    tail = index[len(index) - len(operand) :] if operand else ()
    sizes = result[len(result) - len(operand) :] if operand else ()
    return tuple(
        ZERO if n == ONE and m != ONE else (ZERO if n == ONE else i)
        for i, m, n in zip(tail, sizes, operand, strict=True)
    )
