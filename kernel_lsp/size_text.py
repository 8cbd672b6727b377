"""Size expressions as Python text."""

from __future__ import annotations

import functools

import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

#: Functions that are written as an operator, in parentheses wherever they stand: callers multiply what they get.
_OPERATORS = frozenset(
    [
        "FloorDiv",
        "CleanDiv",
        "Quotient",
        "PythonMod",
        "Mod",
        "Remainder",
        "FloatTrueDiv",
        "IntTrueDiv",
        "FloatPow",
        "OpaqueUnaryFn_sqrt",
    ]
)


class _Python(StrPrinter):
    printmethod = "_no_printing_of_its_own"  # torch's size functions print themselves with other parentheses

    def __init__(self, symbols: dict[sympy.Symbol, str]) -> None:
        super().__init__()
        self._symbols = symbols

    def parenthesize(self, item: sympy.Expr, level: int, strict: bool = False) -> str:
        if item.func.__name__ in _OPERATORS:
            return self._print(item)
        return super().parenthesize(item, level, strict=strict)

    def _binary(self, operator: str, expr: sympy.Expr) -> str:
        left, right = expr.args
        divided = self.parenthesize(left, PRECEDENCE["Mul"], strict=True)
        return f"({divided} {operator} {self.parenthesize(right, PRECEDENCE['Func'], strict=True)})"

    def _print_Mul(self, expr: sympy.Expr) -> str:
        coefficient, factors = expr.as_coeff_mul()
        if coefficient.is_Integer and coefficient > 0:
            texts = [self.parenthesize(f, PRECEDENCE["Pow"], strict=True) for f in factors]
            parts = sorted(texts, key=lambda text: (text.startswith("("), text))
            return " * ".join(([str(coefficient)] if coefficient != 1 else []) + parts)
        if coefficient.is_Rational and coefficient > 0:
            return f"{self._print(coefficient.p * sympy.Mul(*factors))} / {coefficient.q}"
        return super()._print_Mul(expr)

    def _print_Add(self, expr: sympy.Add, order: str | None = None) -> str:
        text = ""
        for term in self._as_ordered_terms(expr, order=order):
            negative = term.could_extract_minus_sign()
            part = self._print(-term if negative else term)
            text += (" - " if negative else " + ") + part if text else ("-" if negative else "") + part
        return text

    def _print_Symbol(self, expr: sympy.Symbol) -> str:
        return self._symbols.get(expr, expr.name)

    def _print_FloorDiv(self, expr: sympy.Expr) -> str:
        return self._binary("//", expr)

    _print_CleanDiv = _print_FloorDiv
    _print_Quotient = _print_FloorDiv  # of the synthesizer's indices

    def _print_PythonMod(self, expr: sympy.Expr) -> str:
        return self._binary("%", expr)

    _print_Mod = _print_PythonMod
    _print_Remainder = _print_PythonMod

    def _print_FloatTrueDiv(self, expr: sympy.Expr) -> str:
        return self._binary("/", expr)

    _print_IntTrueDiv = _print_FloatTrueDiv

    def _print_ToFloat(self, expr: sympy.Expr) -> str:
        return f"float({self._print(expr.args[0])})"

    def _print_FloatPow(self, expr: sympy.Expr) -> str:
        base, exponent = expr.args
        if base.func.__name__ == "ToFloat":
            base = base.args[0]  # an integer to a float power is a float
        return f"({self._power_base(base)} ** {self.parenthesize(exponent, PRECEDENCE['Func'], strict=True)})"

    def _print_OpaqueUnaryFn_sqrt(self, expr: sympy.Expr) -> str:
        return f"({self._power_base(expr.args[0])} ** 0.5)"

    def _power_base(self, base: sympy.Expr) -> str:
        text = self._print(base)
        return text if text.isidentifier() or (text.endswith("]") and " " not in text) else f"({text})"

    def _print_Max(self, expr: sympy.Expr) -> str:
        return f"max({', '.join(self._print(a) for a in expr.args)})"

    def _print_Min(self, expr: sympy.Expr) -> str:
        return f"min({', '.join(self._print(a) for a in expr.args)})"

    def _print_Abs(self, expr: sympy.Expr) -> str:
        return f"abs({self._print(expr.args[0])})"

    def _print_TruncToInt(self, expr: sympy.Expr) -> str:
        return f"int({self._print(expr.args[0])})"

    def _print_FloorToInt(self, expr: sympy.Expr) -> str:
        return f"int({self._print(expr.args[0])} // 1)"

    def _print_CeilToInt(self, expr: sympy.Expr) -> str:
        return f"-int(-({self._print(expr.args[0])}) // 1)"

    def _print_Float(self, expr: sympy.Float) -> str:
        return repr(float(expr))


def unwrapped(expr: sympy.Expr, symbols: dict[sympy.Symbol, str]) -> str:
    """``python`` without parentheses around the whole, for a place where no operator stands beside it."""
    text = python(expr, symbols)
    return text[1:-1] if expr.func.__name__ in _OPERATORS and text.startswith("(") else text


def python(expr: sympy.Expr, symbols: dict[sympy.Symbol, str]) -> str:
    """``expr`` as a Python expression; ``symbols`` gives the text for each size symbol.

    A sum that is a product of sizes, ``batch * (height + 1) * (width + 1)``, is written as one.
    """
    return _Python(symbols).doprint(_factored(expr) if expr.is_Add else expr)


@functools.lru_cache(maxsize=4096)
def _factored(expr: sympy.Expr) -> sympy.Expr:
    product = sympy.factor(expr)
    sizes = [factor for factor in product.args if not factor.is_number]
    whole = all(number.is_Integer for number in product.atoms(sympy.Number))
    positive = not any(factor.is_number and factor < 0 for factor in product.args)
    return product if product.is_Mul and len(sizes) > 1 and whole and positive else expr
