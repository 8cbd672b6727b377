"""Size expressions as Python text."""

from __future__ import annotations

import sympy
from sympy.printing.str import StrPrinter


class _Python(StrPrinter):
    def __init__(self, symbols: dict[sympy.Symbol, str]) -> None:
        super().__init__()
        self._symbols = symbols

    def _print_Mul(self, expr: sympy.Expr) -> str:
        coefficient, factors = expr.as_coeff_mul()
        if coefficient.is_Integer and coefficient > 0:
            parts = sorted(self.parenthesize(f, 60) for f in factors)
            return " * ".join(([str(coefficient)] if coefficient != 1 else []) + parts)
        return super()._print_Mul(expr)

    def _print_Symbol(self, expr: sympy.Symbol) -> str:
        return self._symbols.get(expr, expr.name)

    def _print_FloorDiv(self, expr: sympy.Expr) -> str:
        return f"({self._print(expr.args[0])} // {self.parenthesize(expr.args[1], 1000)})"

    def _print_CleanDiv(self, expr: sympy.Expr) -> str:
        return self._print_FloorDiv(expr)

    def _print_PythonMod(self, expr: sympy.Expr) -> str:
        return f"({self._print(expr.args[0])} % {self.parenthesize(expr.args[1], 1000)})"

    _print_Mod = _print_PythonMod

    def _print_ToFloat(self, expr: sympy.Expr) -> str:
        return f"float({self._print(expr.args[0])})"

    def _print_FloatPow(self, expr: sympy.Expr) -> str:
        base = (
            self._print(expr.args[0]).removeprefix("float(").removesuffix(")")
            if expr.args[0].func.__name__ == "ToFloat"
            else self._print(expr.args[0])
        )
        return (
            f"{base}**{self._print(expr.args[1])}"
            if base.isidentifier() or base.endswith("]")
            else f"({base})**{self._print(expr.args[1])}"
        )

    def _print_FloatTrueDiv(self, expr: sympy.Expr) -> str:
        return f"({self._print(expr.args[0])}) / ({self._print(expr.args[1])})"

    _print_IntTrueDiv = _print_FloatTrueDiv

    def _print_OpaqueUnaryFn_sqrt(self, expr: sympy.Expr) -> str:
        return f"({self._print(expr.args[0])}) ** 0.5"

    def _print_Max(self, expr: sympy.Expr) -> str:
        return f"max({', '.join(self._print(a) for a in expr.args)})"

    def _print_Float(self, expr: sympy.Float) -> str:
        return repr(float(expr))


def python(expr: sympy.Expr, symbols: dict[sympy.Symbol, str]) -> str:
    """``expr`` as a Python expression; ``symbols`` gives the text for each size symbol."""
    return _Python(symbols).doprint(expr)
