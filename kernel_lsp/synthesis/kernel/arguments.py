"""What a kernel is given by its launch: pointers, sizes and scalars, with their names inside and Python outside."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from kernel_lsp.size_text import python

from ..graph.functions import ATOM, PRODUCT, SUM, UNARY, wrap
from ..graph.names import Names
from ..graph.value import Scalar, Value


@dataclass
class Arguments:
    """What a kernel is given, in order of first use: pointers, sizes and scalars, each with its Python on the host."""

    names: Names
    symbols: dict[sympy.Symbol, tuple[str, str]]  # size symbol → (name, Python on the host)
    pointers: dict[Value, str] = field(default_factory=dict)
    outputs: dict[Value, str] = field(default_factory=dict)
    sizes: dict[sympy.Expr, tuple[str, str]] = field(default_factory=dict)
    scalars: dict[sympy.Expr, tuple[str, str]] = field(default_factory=dict)
    static: dict[sympy.Expr, str] = field(default_factory=dict)  # static sizes that are constexpr arguments
    divisors: dict[sympy.Expr, tuple[str, str]] = field(default_factory=dict)  # dynamic ones that are, too

    def host(self, expr: sympy.Expr) -> str:
        """``expr`` as Python on the host."""
        return python(expr, {s: text for s, (_, text) in self.symbols.items()})

    def name_size(self, expr: sympy.Expr, name: str) -> None:
        """Make ``expr`` an argument called ``name``; a static size of some length becomes a constexpr."""
        if expr.is_number and expr >= 16 and expr not in self.static:
            self.static[expr] = self.names.fresh(name)
        elif not expr.is_number and expr not in self.sizes:
            self.sizes[expr] = (self.names.fresh(name), self.host(expr))

    def divide_by(self, expr: sympy.Expr) -> None:
        """Make ``expr`` a constexpr: dividing every element's index by a number known late costs more than its load."""
        expr = sympy.expand(expr)
        if expr.is_number or expr in self.divisors:
            return
        known = self.sizes.pop(expr, None)
        name = self.symbols[expr][0] if expr in self.symbols else "inner_size"
        self.divisors[expr] = known or (self.names.fresh(name), self.host(expr))

    def size(self, expr: sympy.Expr) -> tuple[str, int]:
        """A size inside the kernel, with its precedence; registers the arguments it needs."""
        expr = sympy.expand(expr)
        if expr in self.static:
            return self.static[expr], ATOM
        if expr in self.divisors:
            return self.divisors[expr][0], ATOM
        if expr.is_number:
            return (str(int(expr)), ATOM if expr >= 0 else UNARY)
        if expr in self.sizes:
            return self.sizes[expr][0], ATOM
        if expr.is_Mul:
            factors = [f for f in expr.args]
            if any(f.is_number and f < 0 for f in factors):
                text, precedence = self.size(-expr)
                return "-" + wrap(text, precedence, UNARY), UNARY
            parts = [wrap(*self.size(f), UNARY) for f in sorted(factors, key=lambda f: not f.is_number)]
            return " * ".join(parts), PRODUCT
        if expr.is_Add:
            text = ""
            for i, part in enumerate(sorted(expr.args, key=lambda p: (p.could_extract_minus_sign(), str(p)))):
                negative = part.could_extract_minus_sign()
                piece = wrap(*self.size(-part if negative else part), PRODUCT if negative else SUM)
                text += (" - " if negative else " + " if i else "") + piece if i or not negative else "-" + piece
            return text, SUM
        if expr.is_Pow and expr.exp.is_Integer and 0 < expr.exp < 5:
            return " * ".join([wrap(*self.size(expr.base), UNARY)] * int(expr.exp)), PRODUCT
        if isinstance(expr, sympy.Symbol) and expr in self.symbols:
            name, host = self.symbols[expr]
            self.sizes[expr] = (self.names.fresh(name), host)
        else:
            self.sizes[expr] = (
                self.names.fresh("half" if str(expr).endswith("//2)") or str(expr).endswith("//2))") else "extent"),
                self.host(expr),
            )
        return self.sizes[expr][0], ATOM

    def scalar(self, scalar: Scalar) -> tuple[str, int]:
        if not scalar.is_float:
            return self.size(scalar.expr)
        if scalar.expr not in self.scalars:
            self.scalars[scalar.expr] = (self.names.fresh("scale"), self.host(scalar.expr))
        return self.scalars[scalar.expr][0], ATOM
