"""One step of a walk over what a kernel accesses: a load is noted, and what is computed goes on to its operands."""

from __future__ import annotations

from ..graph.sizes import Index
from ..graph.value import Gather, Value, operands
from ..kernel.access import GATHERED, gather_table, operand_indices, reshaped_leaf
from ..kernel.domain import Unalignable
from ..kernel.execution_plan import Kernel, Materialise


def leaf_accessed(kernel: Kernel, value: Value, index: Index, stored: set[Value]) -> bool:
    """Whether ``value`` is loaded, which is noted then.

    Raises:
        Refined: an atom was split.
    """
    leaf = reshaped_leaf(value, stored)
    if leaf is None:
        return False
    for e in index:
        kernel.domain.terms(e)
    if leaf not in kernel.leaves:
        kernel.leaves.append(leaf)
    kernel.accesses.append((leaf, index, value.shape))
    return True


def accessed(kernel: Kernel, value: Value, index: Index) -> list[tuple[Value, Index]]:
    """(operand, its index) pairs of a value that is computed in the kernel, the table of a Gather among them.

    Raises:
        Refined: an atom was split.
        Materialise: an access is not linear; with the first such operand.
    """
    try:
        pairs = operand_indices(value, index, kernel.domain)
        if isinstance(value.op, Gather):
            pairs.append((value.op.table, gather_table(value, index, GATHERED)))
        for _, i in pairs:
            for e in i:
                kernel.domain.terms(e)
    except Unalignable:
        raise Materialise(operands(value)[0]) from None
    return pairs
