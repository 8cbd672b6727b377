"""What a kernel is given by its launch: pointers, sizes, scalars and constants."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import sympy

from ..graph.value import Scalar, Value
from .ir import Apply, Expr, Number, Ref, Variable, apply, plus


@dataclass
class Arguments:
    """A kernel's arguments in order of first use. Sizes are expressions over size symbols, which the host evaluates."""

    symbols: dict[sympy.Symbol, str]  # what a size symbol is called
    variables: list[Variable] = field(default_factory=list)
    pointers: dict[Value, Variable] = field(default_factory=dict)
    outputs: dict[Value, Variable] = field(default_factory=dict)
    sizes: dict[sympy.Expr, Variable] = field(default_factory=dict)
    scalars: dict[sympy.Expr, Variable] = field(default_factory=dict)
    static: dict[sympy.Expr, Variable] = field(default_factory=dict)  # static sizes that are constexpr arguments
    divisors: dict[sympy.Expr, Variable] = field(default_factory=dict)  # dynamic ones that are, too
    factors: dict[sympy.Expr, str] = field(
        default_factory=dict
    )  # products of sizes that are one argument, with its name
    multiples: dict[sympy.Expr, list[Expr]] = field(default_factory=dict)  # the factors of multiples of static sizes
    sums: dict[Expr, sympy.Expr] = field(default_factory=dict)  # sizes that are sums, as the kernel computes them
    phases: set[sympy.Expr] = field(default_factory=set)  # sizes of the phases of a transposed convolution
    places: set[sympy.Expr] = field(default_factory=set)  # sizes of the result of a product without phases
    strides: dict[sympy.Symbol, tuple[Value, int]] = field(
        default_factory=dict
    )  # of tensors addressed by their strides
    free: list[Variable] = field(default_factory=list)  # variables that nothing needs any longer, to be taken again

    def variable(self, wanted: str) -> Variable:
        """A variable with the name ``wanted``, one that is free again or another."""
        for known in self.free:
            if known.wanted == wanted:
                self.free.remove(known)
                return known
        self.variables.append(Variable(wanted))
        return self.variables[-1]

    def release(self, mark: int) -> None:
        """Let local variables be taken again by those that want their name: those after the first ``mark`` ones."""
        own = (self.pointers, self.outputs, self.sizes, self.scalars, self.static, self.divisors)
        given = {variable for known in own for variable in known.values()}
        self.free = [variable for variable in self.variables[mark:] if variable not in given]

    def name_size(self, expr: sympy.Expr, name: str, least: int = 16) -> None:
        """Make ``expr`` an argument called ``name``; a static size of ``least`` or more becomes a constexpr."""
        if expr.is_number and expr >= least and expr not in self.static:
            self.static[expr] = self.variable(name)
        elif not expr.is_number and expr not in self.sizes:
            self.sizes[expr] = self.variable(name)

    def name_multiples(self, expr: sympy.Expr, most: int) -> None:
        """Write multiples of the named static size ``expr``, and of its square, up to ``most`` times as such: ``2 * HIDDEN``."""
        one = Ref(self.static[expr])
        for times in range(most, 0, -1):
            number = [Number(times)] if times > 1 else []
            self.multiples[expr * expr * times] = [*number, one, one]
            self.multiples[expr * times] = [*number, one]

    def divide_by(self, expr: sympy.Expr) -> None:
        """Make ``expr`` a constexpr: dividing every element's index by a number known late costs more than its load."""
        expr = sympy.expand(expr)
        if expr.is_number or expr in self.divisors:
            return
        known = self.sizes.pop(expr, None)
        self.divisors[expr] = known or self.variable(self._called(expr, "inner_size"))

    def size(self, expr: sympy.Expr) -> Expr:
        """A size inside the kernel; registers the arguments it needs."""
        expr = sympy.expand(expr)
        for known in (self.static, self.divisors):
            if expr in known:
                return Ref(known[expr])
        if expr in self.multiples:
            return _chain(self.multiples[expr])
        if expr.is_number:
            return Number(int(expr))
        if expr in self.sizes:
            return Ref(self.sizes[expr])
        if expr in self.factors:
            self.sizes[expr] = self.variable(self.factors[expr])
            return Ref(self.sizes[expr])
        if expr.is_Mul:
            for known in self.factors:
                rest = expr / known
                if sympy.fraction(rest)[1] == 1:
                    return _chain([self.size(factor) for factor in (rest, known)])
            if any(f.is_number and f < 0 for f in expr.args):
                return apply("neg", self.size(-expr))
            return _chain([self.size(f) for f in sorted(expr.args, key=lambda f: not f.is_number)])
        if expr.is_Add and (factored := _factored(expr)) is not None:
            return _chain([self.size(f) for f in factored])
        if expr.is_Add:
            added = self._sum(sorted(expr.args, key=lambda p: (p.could_extract_minus_sign(), p.is_number, str(p))))
            self.sums[added] = expr
            return added
        if expr.is_Pow and expr.exp.is_Integer and 0 < expr.exp < 5:
            return _chain([self.size(expr.base)] * int(expr.exp))
        self.sizes[expr] = self.variable(self._called(expr, "extent"))
        return Ref(self.sizes[expr])

    def _called(self, expr: sympy.Expr, otherwise: str) -> str:
        """A name for a size: its symbol's, or ``half_width`` and ``width_by_3`` for a part of a ``width``."""
        if expr in self.symbols:
            return self.symbols[expr]
        if expr.func.__name__ != "FloorDiv" or not expr.args[1].is_Integer:
            return otherwise
        names = [self.symbols[s] for s in self.symbols if s in expr.free_symbols]
        if len(names) != 1 or not sympy.expand(expr.args[0] - next(iter(expr.free_symbols))).is_Integer:
            return otherwise
        return f"half_{names[0]}" if expr.args[1] == 2 else f"{names[0]}_by_{expr.args[1]}"

    def _sum(self, parts: list[sympy.Expr]) -> Expr:
        total: Expr | None = None
        for part in parts:
            negative = part.could_extract_minus_sign()
            term = self.size(-part if negative else part)
            if total is None:
                total = apply("neg", term) if negative else term
            else:
                total = apply("sub", total, term) if negative else plus(total, term)
        assert total is not None
        return total

    def scalar(self, scalar: Scalar) -> Expr:
        """A number of the host's as an argument: a size, or a float."""
        if not scalar.is_float:
            return self.size(scalar.expr)
        if scalar.expr not in self.scalars:
            self.scalars[scalar.expr] = self.variable("scale")
        return Ref(self.scalars[scalar.expr])


@functools.lru_cache(maxsize=1024)
def _factored(expr: sympy.Expr) -> tuple[sympy.Expr, ...] | None:
    """The factors of a sum that is a product of sizes, as ``64 * (height + 2) * (width + 2)`` is; a number first."""
    product = sympy.factor(expr)
    if not product.is_Mul or any(f.is_Pow or (f.is_number and not (f.is_Integer and f > 0)) for f in product.args):
        return None
    if any(part.could_extract_minus_sign() and part.is_number for part in product.args):
        return None
    return tuple(sorted(product.args, key=lambda f: (not f.is_number, f.is_Add, str(f))))


def _chain(factors: list[Expr]) -> Expr:
    result = factors[0]
    for factor in factors[1:]:
        result = Apply("mul", (result, factor))
    return result
