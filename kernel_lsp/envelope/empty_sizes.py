"""Sizes that may be zero, or less, where every size of a tensor is at least one: a dimension less one, and what divides."""

from __future__ import annotations

import functools

import sympy

from kernel_lsp.size_text import python

_DIVISIONS = frozenset(
    ["FloorDiv", "CleanDiv", "Quotient", "PythonMod", "Mod", "Remainder", "FloatTrueDiv", "IntTrueDiv"]
)


@functools.lru_cache(maxsize=4096)  # each schedule of a module asks for the same sizes
def may_fall_below(size: sympy.Expr, least: int) -> bool:
    """Whether ``size`` may be less than ``least``.

    Symbols stand for sizes of at least one, what is no polynomial for at least 0, or 1 where what is divided is no less than a number.
    """
    if size.is_number:
        return bool(size < least)
    terms = {part: sympy.Dummy() for part in _irreducible(size)}
    free = sorted(size.free_symbols, key=str)
    counted = {part: dummy + int(_is_not_zero(part)) for part, dummy in terms.items()}
    above = size.xreplace(counted).subs({s: s + 1 for s in free}, simultaneous=True)
    shifted = sympy.Poly(above, *free, *terms.values())
    return shifted.coeff_monomial(1) < least or any(c < 0 for powers, c in shifted.terms() if any(powers))


def may_vanish(size: sympy.Expr) -> bool:
    """Whether ``size`` may be zero or less; symbols stand for sizes of at least one."""
    return may_fall_below(size, 1)


def _is_not_zero(part: sympy.Expr) -> bool:
    if part.func.__name__ not in ("FloorDiv", "CleanDiv"):
        return False
    divided, divisor = part.args
    return bool(divisor.is_number) and bool(divisor > 0) and not may_fall_below(divided, int(divisor))


def _irreducible(size: sympy.Expr) -> list[sympy.Expr]:
    """The largest parts that are no sum, product, power, number or symbol: divisions, roundings."""
    if size.is_Symbol or size.is_number:
        return []
    if isinstance(size, sympy.Add | sympy.Mul) or (size.is_Pow and size.exp.is_Integer and size.exp > 0):
        return [part for argument in size.args for part in _irreducible(argument)]
    return [size]


def divisors(size: sympy.Basic) -> list[sympy.Expr]:
    """What ``size`` divides by and may be zero, the innermost first."""
    found = [part.args[1] for part in sympy.postorder_traversal(size) if part.func.__name__ in _DIVISIONS]
    return [divisor for divisor in dict.fromkeys(found) if may_vanish(divisor)]


def divisor_conditions(size: sympy.Basic, symbols: dict[sympy.Symbol, str]) -> list[str]:
    """Conditions without which ``size`` cannot be computed; to stand before it."""
    return [f"{python(divisor, symbols)} > 0" for divisor in divisors(size)]
