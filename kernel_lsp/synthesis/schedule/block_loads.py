"""What a program that shares a row loads of a block: each element once, and once a block what all of its elements share."""

from __future__ import annotations

import sympy

from ..graph.sizes import Index, offset
from ..graph.value import Shape, Value
from ..kernel.build import Builder
from ..kernel.execution_plan import Kernel
from ..kernel.ir import Axis, Expr, Ref

#: Where an element is: the tensor, and its offset there.
Place = tuple[Value, sympy.Expr]


def alike_along(kernel: Kernel) -> list[sympy.Symbol]:
    """The trailing reduced atoms along which an operand is the same that varies along the ones before; the most of them, none where there is no such operand."""
    domain, longest = kernel.domain, 0
    for _, index, _ in kernel.accesses:
        varies = set().union(*(domain.resolve(e).free_symbols for e in index)) & set(domain.reduced)
        if varies:
            last = max(domain.reduced.index(atom) for atom in varies)
            longest = max(longest, len(domain.reduced) - 1 - last)
    return domain.reduced[len(domain.reduced) - longest :]


class BlockLoads(Builder):
    """Notes what it loads in ``record``; what is in ``held`` it has already, in registers.

    What does not vary along the atoms ``alike`` is loaded at the places of ``distinct``.
    """

    record: dict[Place, Ref] | None = None
    held: dict[Place, Ref] | None = None
    distinct: Axis | None = None
    alike: frozenset[sympy.Symbol] = frozenset()

    def load(
        self, value: Value, index: Index, name: str = "", shape: Shape | None = None, other: float | None = None
    ) -> Expr:
        """As Builder.load."""
        if other is not None or len(self.conditions) > 1:
            return super().load(value, index, name, shape, other)
        key = value, self.domain.simplify(offset(index, value.shape if shape is None else shape))
        if self.held is not None and key in self.held and not self.conditions:
            return self.held[key]
        result = super().load(value, index, name, shape, other)
        if self.record is not None and isinstance(result, Ref):
            self.record[key] = result
        return result

    def address(self, value: Value, index: Index, shape: Shape) -> Expr:
        """As Builder.address."""
        if self.distinct is None or self.conditions or value in self.arguments.outputs:
            return super().address(value, index, shape)
        symbols = self.domain.simplify(offset(index, shape)).free_symbols
        if symbols & self.alike or not symbols & set(self.distinct.atoms):
            return super().address(value, index, shape)
        axes, reduced = self.axes, self.reduced_axis
        self.axes = [self.distinct if axis is reduced else axis for axis in axes]
        self.reduced_axis = self.distinct  # it is divided as the elements' index is
        try:
            return super().address(value, index, shape)
        finally:
            self.axes, self.reduced_axis = axes, reduced
