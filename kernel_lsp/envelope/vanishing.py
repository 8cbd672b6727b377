"""Sizes that may be zero where every size of a tensor is at least one: what a dimension less one is, and what divides."""

from __future__ import annotations

import sympy

from kernel_lsp.size_text import python

_DIVISIONS = frozenset(
    ["FloorDiv", "CleanDiv", "Quotient", "PythonMod", "Mod", "Remainder", "FloatTrueDiv", "IntTrueDiv"]
)


def may_vanish(size: sympy.Expr) -> bool:
    """Whether ``size`` may be less than one. Symbols stand for sizes of at least one; what is no polynomial may be anything."""
    if not size.free_symbols:
        return not bool(size >= 1)
    if not size.is_polynomial(*size.free_symbols):
        return True
    above = sympy.Poly(size.subs({s: s + 1 for s in size.free_symbols}, simultaneous=True), *size.free_symbols)
    return any(c < 0 for c in above.coeffs()) or above.coeff_monomial(1) < 1


def divisors(size: sympy.Basic) -> list[sympy.Expr]:
    """What ``size`` divides by and may be zero, the innermost first."""
    found = [part.args[1] for part in sympy.postorder_traversal(size) if part.func.__name__ in _DIVISIONS]
    return [divisor for divisor in dict.fromkeys(found) if may_vanish(divisor)]


def divisor_conditions(size: sympy.Basic, symbols: dict[sympy.Symbol, str]) -> list[str]:
    """Conditions without which ``size`` cannot be computed; to stand before it."""
    return [f"{python(divisor, symbols)} > 0" for divisor in divisors(size)]
