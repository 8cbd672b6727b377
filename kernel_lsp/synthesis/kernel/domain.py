"""Index arithmetic of a kernel: loop atoms, and how an element's index moves through reshapes.

A kernel iterates over *atoms*, integer symbols with a size each. Every tensor element it touches is addressed by
index expressions that are linear in the atoms. A reshape that cuts through an atom splits it in two
(``i = outer * inner_size + inner``), so index expressions stay linear and no division is needed inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from ..graph.sizes import ONE, ZERO, Index, quotient, same, strides
from ..graph.value import Shape


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
        """Replace ``atom`` by outer * inner_size + inner."""
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
        raise Refined

    def resolve(self, expr: sympy.Expr) -> sympy.Expr:
        """``expr`` in terms of the present atoms."""
        while True:
            split = [s for s in expr.free_symbols if s in self.parts]
            if not split:
                return sympy.expand(expr)
            expr = expr.subs({s: self.parts[s] for s in split})

    def terms(self, expr: sympy.Expr) -> tuple[dict[sympy.Symbol, sympy.Expr], sympy.Expr]:
        """The coefficient of each atom, and the rest, of a linear expression."""
        expr = self.resolve(expr)
        coefficients: dict[sympy.Symbol, sympy.Expr] = {}
        rest = expr
        for atom in [s for s in expr.free_symbols if s in self.size]:
            c = expr.coeff(atom, 1)
            if c.free_symbols & self.size.keys():
                raise Unalignable(f"{expr} is not linear")
            coefficients[atom] = c
            rest = rest - c * atom
        rest = sympy.expand(rest)
        if rest.free_symbols & self.size.keys():
            raise Unalignable(f"{expr} is not linear")
        return coefficients, rest


def _groups(a: Shape, b: Shape) -> list[tuple[list[int], list[int]]]:
    """Pairs of runs of dimensions of a and b with equal products; size-one dimensions belong to no run."""
    left = [i for i, n in enumerate(a) if n != ONE]
    right = [j for j, n in enumerate(b) if n != ONE]
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        run_a, run_b = [left[i]], [right[j]]
        size_a, size_b = a[left[i]], b[right[j]]
        i, j = i + 1, j + 1
        while not same(size_a, size_b):
            grow_a = i < len(left) and (quotient(size_b, size_a) is not None or j >= len(right))
            if grow_a:
                size_a = sympy.expand(size_a * a[left[i]])
                run_a.append(left[i])
                i += 1
            elif j < len(right):
                size_b = sympy.expand(size_b * b[right[j]])
                run_b.append(right[j])
                j += 1
            else:
                raise Unalignable(f"cannot match {a} with {b}")
        groups.append((run_a, run_b))
    if i < len(left) or j < len(right):
        raise Unalignable(f"cannot match {a} with {b}")
    return groups


def reshape(index: Index, a: Shape, b: Shape, domain: Domain) -> Index:
    """The index into shape ``b`` of the element that ``index`` addresses in shape ``a`` (equal row-major order).

    Raises ``Refined`` after it has split an atom, ``Unalignable`` where no split makes the index linear.
    """
    result: list[sympy.Expr] = [ZERO] * len(b)
    for run_a, run_b in _groups(a, b):
        if len(run_a) == len(run_b) == 1:
            result[run_b[0]] = index[run_a[0]]
            continue
        inner_a = strides(tuple(a[i] for i in run_a))
        linear = sum((index[i] * s for i, s in zip(run_a, inner_a, strict=True)), ZERO)
        coefficients, rest = domain.terms(linear)
        if rest != ZERO:
            raise Unalignable("a sliced dimension is reshaped")
        inner_b = strides(tuple(b[j] for j in run_b))
        for atom, c in coefficients.items():
            for place, stride in enumerate(inner_b):
                q = quotient(c, stride)
                if q is None:
                    continue
                dim = b[run_b[place]]
                reach = sympy.expand(q * domain.size[atom])  # how far the atom moves along this dimension
                if quotient(dim, reach) is None:
                    inner = quotient(dim, q)
                    if inner is None:
                        raise Unalignable(f"{atom} crosses a dimension of size {dim}")
                    domain.split(atom, inner)
                result[run_b[place]] += q * atom
                break
            else:
                raise Unalignable(f"{c} is a multiple of no stride")
    return tuple(result)
