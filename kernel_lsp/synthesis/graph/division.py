"""Integer division in index expressions, and what it comes to where the ranges of the symbols are known.

An index expression is a sum of terms: a size times a symbol (a dimension's index or a loop atom), or a size times an
*opaque* part, a ``Quotient``, ``Remainder`` or another function that stays as it is. torch's own functions
(``FloorDiv``, ``PythonMod``) stand for sizes alone, which the host computes.

What is divided is not negative wherever its element is read: Triton rounds towards zero, Python down. So a multiple of
the divisor leaves the division only where what remains is provably not negative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import sympy
from torch.utils._sympy.functions import FloorDiv, PythonMod

from .sizes import ONE, ZERO, exact, quotient, same

#: Each symbol with its size: it is from 0 to size - 1.
Ranges = Mapping[sympy.Symbol, sympy.Expr]
#: Is told that a symbol crosses a multiple of the divisor, and how much of it lies between two multiples.
Straddles = Callable[[sympy.Symbol, sympy.Expr], None]

_SIZE_FUNCTIONS = ("FloorDiv", "CleanDiv", "PythonMod", "Mod")


class Quotient(sympy.Function):
    """x // n for an index x that is not negative."""

    nargs = 2
    is_integer = True

    @classmethod
    def eval(cls, x: sympy.Expr, n: sympy.Expr) -> sympy.Expr | None:
        """sympy's hook: the number or expression that it is at once, else None."""
        if n == ONE or x == ZERO:
            return x
        return x // n if x.is_Integer and n.is_Integer else None


class Remainder(sympy.Function):
    """x % n for an index x that is not negative."""

    nargs = 2
    is_integer = True

    @classmethod
    def eval(cls, x: sympy.Expr, n: sympy.Expr) -> sympy.Expr | None:
        """sympy's hook: the number or expression that it is at once, else None."""
        if n == ONE or x == ZERO:
            return ZERO
        return x % n if x.is_Integer and n.is_Integer else None


@functools.lru_cache(maxsize=1 << 14)
def is_size(expr: sympy.Expr) -> bool:
    """Whether ``expr`` is known on the host: sizes are positive symbols, indices and atoms may be zero."""
    return all(s.is_positive for s in expr.free_symbols)


def terms(expr: sympy.Expr) -> list[tuple[sympy.Expr, sympy.Expr]]:
    """(coefficient, factor) for each different factor of an expanded expression; that of a constant is 1."""
    coefficient: dict[sympy.Expr, sympy.Expr] = {}
    for term in sympy.Add.make_args(expr):
        factors = sympy.Mul.make_args(term)
        of = sympy.Mul(*(f for f in factors if not is_size(f)))
        coefficient[of] = coefficient.get(of, ZERO) + sympy.Mul(*(f for f in factors if is_size(f)))
    return [(c, of) for of, c in coefficient.items()]


@functools.lru_cache(maxsize=4096)
def nonnegative(expr: sympy.Expr) -> bool:
    """Whether an expression over sizes is provably not negative; sizes are at least 1."""
    expr = sympy.expand(expr)
    if expr.is_number:
        return bool(expr >= 0)
    # A division that is taken away is no more than it is without rounding.
    expr = (
        sympy.expand(sum((exact(t) if t.could_extract_minus_sign() else t for t in expr.args), ZERO))
        if expr.is_Add
        else expr
    )
    # With each size written as 1 + what it is beyond that, terms without a minus sign cannot be negative.
    beyond = {s: s + 1 for s in expr.free_symbols}
    for term in sympy.Add.make_args(sympy.expand(expr.xreplace(beyond))):
        number, rest = term.as_coeff_Mul()
        factors = [f.base if f.is_Pow and f.exp.is_positive else f for f in sympy.Mul.make_args(rest)]
        known = all(f == ONE or f.is_positive or f.func.__name__ in _SIZE_FUNCTIONS for f in factors)
        if number < 0 or not known:
            return False
    return True


def bounds(expr: sympy.Expr, ranges: Ranges) -> tuple[sympy.Expr, sympy.Expr] | None:
    """(least, greatest) that an expression can be, over sizes; None where that is not known."""
    low = high = ZERO
    for c, factor in terms(sympy.expand(expr)):
        if factor == ONE:
            low, high = low + c, high + c
            continue
        ends = _ends(factor, ranges)
        if ends is None or not (nonnegative(c) or nonnegative(-c)):
            return None
        least, greatest = ends if nonnegative(c) else ends[::-1]
        low, high = low + c * least, high + c * greatest
    return sympy.expand(low), sympy.expand(high)


def _ends(factor: sympy.Expr, ranges: Ranges) -> tuple[sympy.Expr, sympy.Expr] | None:
    if factor in ranges:
        return ZERO, ranges[factor] - 1
    if isinstance(factor, Remainder):
        return ZERO, factor.args[1] - 1
    if isinstance(factor, Quotient):
        x, n = factor.args
        inner = bounds(x, ranges)
        if inner is None or not nonnegative(inner[0]):
            return None
        whole = quotient(inner[1] + 1, n)
        return ZERO, whole - 1 if whole is not None else inner[1] if not n.is_Integer else _floor(inner[1], n)
    return None


def _floor(x: sympy.Expr, n: sympy.Expr) -> sympy.Expr:
    return x // n if x.is_Integer else x


def within(expr: sympy.Expr, low: sympy.Expr, high: sympy.Expr, ranges: Ranges) -> tuple[bool, bool]:
    """Whether provably low <= expr, and whether provably expr < high."""
    ends = bounds(expr, ranges)
    if ends is None:
        return False, False
    return nonnegative(ends[0] - low), nonnegative(high - 1 - ends[1])


def simplify(expr: sympy.Expr, ranges: Ranges, straddles: Straddles | None = None) -> sympy.Expr:
    """``expr`` expanded, with divisions carried out where the ranges allow it.

    ``straddles`` is called for a symbol that could be cut in two so that a division goes; it may raise.
    """
    if not expr.has(Quotient, Remainder):
        return sympy.expand(expr)
    return _combined(sympy.expand(_rebuilt(expr, ranges, straddles)))


def _rebuilt(expr: sympy.Expr, ranges: Ranges, straddles: Straddles | None) -> sympy.Expr:
    if not expr.args or not expr.has(Quotient, Remainder):
        return expr
    args = [_rebuilt(a, ranges, straddles) for a in expr.args]
    if isinstance(expr, Quotient | Remainder):
        divide = _quotient if isinstance(expr, Quotient) else _remainder
        return divide(_combined(sympy.expand(args[0])), sympy.expand(args[1]), ranges, straddles)
    return expr.func(*args)


def _quotient(x: sympy.Expr, n: sympy.Expr, ranges: Ranges, straddles: Straddles | None) -> sympy.Expr:
    if is_size(x):
        return FloorDiv(x, n)
    if isinstance(x, Quotient):
        return _quotient(x.args[0], sympy.expand(x.args[1] * n), ranges, straddles)
    if isinstance(x, Remainder) and (rest := quotient(x.args[1], n)) is not None:
        return _remainder(_quotient(x.args[0], n, ranges, straddles), rest, ranges, straddles)
    whole, inside = _divided(x, n, ranges)
    if _fits(inside, n, ranges):
        return whole
    _straddling(inside, n, ranges, straddles)
    scaled, divisor, _, _ = _scaled(inside, n, ranges)
    return whole + Quotient(scaled, divisor)


def _remainder(x: sympy.Expr, n: sympy.Expr, ranges: Ranges, straddles: Straddles | None) -> sympy.Expr:
    if is_size(x):
        return PythonMod(x, n)
    unwrapped = ZERO
    for c, factor in terms(x):
        again = isinstance(factor, Remainder) and nonnegative(c) and quotient(c * factor.args[1], n) is not None
        unwrapped += c * (factor.args[0] if again else factor)
    if sympy.expand(unwrapped - x) != ZERO:
        return _remainder(sympy.expand(unwrapped), n, ranges, straddles)
    _, inside = _divided(x, n, ranges)
    if _fits(inside, n, ranges):
        return inside
    _straddling(inside, n, ranges, straddles)
    scaled, divisor, scale, small = _scaled(inside, n, ranges)
    return scale * Remainder(scaled, divisor) + small


def _divided(x: sympy.Expr, n: sympy.Expr, ranges: Ranges) -> tuple[sympy.Expr, sympy.Expr]:
    """(q, rest) with x = q * n + rest, where the rest is provably not negative or q is 0."""
    whole = inside = ZERO
    for c, factor in terms(x):
        q = quotient(c, n)
        if q is None and factor == ONE and c.is_Integer and n.is_Integer:
            q = c // n
            inside += c % n
        elif q is None:
            inside += c * factor
            continue
        whole += q * factor
    ends = bounds(inside, ranges)
    if whole != ZERO and (ends is None or not nonnegative(ends[0])):
        return ZERO, x
    return sympy.expand(whole), sympy.expand(inside)


def _fits(inside: sympy.Expr, n: sympy.Expr, ranges: Ranges) -> bool:
    return inside == ZERO or all(within(inside, ZERO, n, ranges))


def _straddling(inside: sympy.Expr, n: sympy.Expr, ranges: Ranges, straddles: Straddles | None) -> None:
    """Report a symbol that crosses a multiple of ``n`` and can be cut there. A shifted index cannot."""
    if straddles is None or any(factor == ONE for _, factor in terms(inside)):
        return
    for c, factor in terms(inside):
        # A symbol that goes down is not cut: its two parts would have negative sizes.
        inner = quotient(n, c) if factor in ranges and nonnegative(c) else None
        if inner is None or inner == ONE or same(inner, ranges[factor]):
            continue
        if quotient(ranges[factor], inner) is not None:
            straddles(factor, inner)


def _scaled(inside: sympy.Expr, n: sympy.Expr, ranges: Ranges) -> tuple[sympy.Expr, sympy.Expr, sympy.Expr, sympy.Expr]:
    """(x, m, g, small): inside = g * x + small, n = g * m, and 0 <= small < g, which a division does not see."""
    parts = terms(inside)
    for g in dict.fromkeys(c for c, factor in parts if factor != ONE and c != ONE):
        m = quotient(n, g) if nonnegative(g) else None
        if m is None:
            continue
        large = [(q, factor) for c, factor in parts if (q := quotient(c, g)) is not None]
        x = sympy.expand(sum((q * factor for q, factor in large), ZERO))
        small = sympy.expand(inside - g * x)
        if _fits(small, g, ranges):
            return x, m, g, small
    return inside, n, ONE, ZERO


def _combined(expr: sympy.Expr) -> sympy.Expr:
    """``expr`` with c * n * (x // n) + c * (x % n) written as c * x."""
    changed = True
    while changed:
        changed = False
        coefficient = {factor: c for c, factor in terms(expr)}
        for part, c in coefficient.items():
            if not isinstance(part, Remainder):
                continue
            x, n = part.args
            partner = Quotient(x.args[0], sympy.expand(x.args[1] * n)) if isinstance(x, Quotient) else Quotient(x, n)
            if partner in coefficient and same(coefficient[partner], c * n):
                expr = sympy.expand(expr - c * part - c * n * partner + c * x)
                changed = True
                break
    return expr
