"""A lowered module: its values with its arguments, what it returns and assigns, its sizes, and what stays with torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import sympy

from .value import Value


@dataclass(frozen=True)
class Fault:
    """A lowering that raised what is not ``NotLowered``: torch runs the operator instead."""

    operator: str
    file: str  # of the lowering, below kernel_lsp/synthesis
    line: int
    message: str


#: What a GPU's kernels do with float8: nothing, read it and multiply it, or round to it as well.
Float8 = Literal["", "read", "rounded"]


@dataclass
class Assigned:
    """A plain attribute that forward assigns; ``source``: Python for it inside ``forward``.

    ``leaf``: the place in ``Graph.output_leaves`` of what it becomes; where that is None, it becomes the tensor ``same``, which forward
    is given or the module holds, or None. ``returned``: it is the same tensor as something that forward returns; else it has
    memory of its own.
    """

    source: str
    leaf: int | None = None
    same: Value | None = None
    returned: bool = False


@dataclass
class Graph:
    """A lowered module: its tensor arguments, what it returns, and which ATen operators could not be lowered."""

    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    output_spec: Any = None  # pytree spec of what forward returns
    #: a Value, a constant or None for each leaf of what forward returns, then a Value for each attribute that it assigns
    output_leaves: list[Any] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)  # attributes that forward assigns
    looked_at: list[Value] = field(
        default_factory=list
    )  # attributes that forward assigns and reads, if only their sizes
    carried: set[str] = field(default_factory=set)  # Python of attributes that may hold anything, but for ``looked_at``
    updates: dict[Value, Value] = field(default_factory=dict)  # buffers that forward changes → what they become
    #: Python of those whose change autograd is not told of: torch's batch norm alone changes them
    uncounted: set[str] = field(default_factory=set)
    lowered: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # operators that stay torch calls
    faults: list[Fault] = field(default_factory=list)  # of lowerings; each operator is among ``kept``
    hints: dict[sympy.Symbol, int] = field(default_factory=dict)  # the size symbols' values for the example inputs
    ranges: dict[sympy.Symbol, tuple[int, int | None]] = field(default_factory=dict)  # the sizes it was exported for
    equal: list[tuple[sympy.Expr, sympy.Expr]] = field(default_factory=list)  # sizes that must be equal at run time
    assumed: list[sympy.Basic] = field(default_factory=list)  # relations of sizes that must hold at run time
    ways: list[str] = field(default_factory=list)  # what passes did to it that another candidate does without
    collapsed: list[str] = field(
        default_factory=list
    )  # means and sums that are taken before a linear map, as formulas have them
    ones: frozenset[sympy.Expr] = frozenset()  # sizes that torch.export took to be one
    not_one: list[sympy.Expr] = field(default_factory=list)  # sizes that squeeze left, and would not if they were one
    float8: Float8 = "rounded"
    precision: str = "strict"  # the setting that products were rounded for
    keeps_packed_weights: bool = False  # what depends on parameters and buffers alone is kept from call to call
