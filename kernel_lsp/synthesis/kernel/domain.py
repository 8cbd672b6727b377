"""Index arithmetic of a kernel: loop atoms, and how an element's index moves through reshapes.

A kernel iterates over *atoms*, integer symbols with a size each. Every tensor element it touches is addressed by
index expressions that are linear in the atoms wherever they can be. A reshape that cuts through an atom splits it in
two (``i = outer * inner_size + inner``), so that no division is needed inside. A division that no split removes stays
in the expression as an opaque part.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from ..graph.division import simplify, terms
from ..graph.map import Map, at
from ..graph.sizes import ONE, ZERO, Index, quotient


class Unalignable(Exception):
    """An access is not linear in the kernel's atoms; the operand must be materialised first."""


class Refined(Exception):
    """An atom was split; whatever was derived from the domain must be derived again."""


@dataclass
class Domain:
    """The iteration space of a kernel: ``kept`` atoms index results, ``reduced`` atoms are summed over."""

    kept: list[sympy.Symbol] = field(default_factory=list)
    reduced: list[sympy.Symbol] = field(default_factory=list)
    size: dict[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    parts: dict[sympy.Symbol, sympy.Expr] = field(default_factory=dict)  # a split atom in terms of its halves
    origin: Index = ()  # the index that the first atoms were made for
    #: what ``simplify`` made of an expression: each schedule of a kernel asks for the same
    known: dict[sympy.Expr, sympy.Expr] = field(default_factory=dict, repr=False, compare=False)
    settled: bool = False  # no atom is split any more: what a division leaves stays opaque

    def copy(self) -> Domain:
        """The same atoms; what is added to one is not in the other."""
        return Domain(list(self.kept), list(self.reduced), dict(self.size), dict(self.parts), self.origin)

    def atom(self, prefix: str, size: sympy.Expr, *, reduced: bool) -> sympy.Expr:
        """A new atom; a dimension of size one needs none and has index 0."""
        if size == ONE:
            return ZERO
        symbol = sympy.Symbol(f"{prefix}{len(self.size)}", integer=True, nonnegative=True)
        self.size[symbol] = size
        (self.reduced if reduced else self.kept).append(symbol)
        return symbol

    def split(self, atom: sympy.Symbol, inner_size: sympy.Expr) -> None:
        """Replace ``atom`` by outer * inner_size + inner.

        Raises:
            Refined: it is done, so that what was derived from the domain has to be derived again.
            Unalignable: the atom's size is not known to be divisible.
        """
        outer_size = quotient(self.size[atom], inner_size)
        if outer_size is None:
            raise Unalignable(f"{self.size[atom]} is not divisible by {inner_size}")
        group = self.reduced if atom in self.reduced else self.kept
        place = group.index(atom)
        outer = sympy.Symbol(f"{atom.name}o", integer=True, nonnegative=True)
        inner = sympy.Symbol(f"{atom.name}i", integer=True, nonnegative=True)
        group[place : place + 1] = [outer, inner]
        self.size[outer], self.size[inner] = outer_size, inner_size
        self.parts[atom] = outer * inner_size + inner
        self.known.clear()
        raise Refined

    def resolve(self, expr: sympy.Expr) -> sympy.Expr:
        """``expr`` in terms of the present atoms."""
        while True:
            split = [s for s in expr.free_symbols if s in self.parts]
            if not split:
                return sympy.expand(expr)
            expr = expr.xreplace({s: self.parts[s] for s in split})

    def simplify(self, expr: sympy.Expr) -> sympy.Expr:
        """``expr`` in terms of the present atoms, with the divisions carried out that can be.

        Raises:
            Refined: an atom was split so that a division goes; what stays of one is opaque.
        """
        found = self.known.get(expr)
        if found is None:
            split = None if self.settled else self.split
            found = self.known[expr] = simplify(self.resolve(expr), self.size, split)
        return found

    def at(self, map: Map, index: Index) -> Index:
        """The index into a view's operand of the element that ``index`` addresses in the view.

        Raises:
            Refined: an atom was split.
        """
        return tuple(self.simplify(e) for e in at(map, index))

    def terms(self, expr: sympy.Expr) -> tuple[dict[sympy.Symbol, sympy.Expr], sympy.Expr]:
        """The coefficient of each atom, and the rest: a number known at launch, and opaque parts times theirs.

        Raises:
            Unalignable: the expression is not linear in the atoms.
        """
        coefficients: dict[sympy.Symbol, sympy.Expr] = {}
        rest = ZERO
        for c, factor in terms(self.simplify(expr)):
            if factor in self.size:
                coefficients[factor] = c
            elif factor.is_Mul or factor.is_Pow:
                raise Unalignable(f"{expr} is not linear")
            else:
                rest += c * factor
        return coefficients, rest

    def linear(self, expr: sympy.Expr) -> tuple[dict[sympy.Symbol, sympy.Expr], sympy.Expr]:
        """As ``terms``, of what has no opaque part.

        Raises:
            Unalignable: it has one, or is not linear in the atoms.
        """
        coefficients, rest = self.terms(expr)
        if rest.free_symbols & self.size.keys():
            raise Unalignable(f"{expr} is not linear")
        return coefficients, rest
