"""The order of results over windows (pooling, small convolutions): as what the windows read lies in memory.

Lanes next to each other have results next to each other. Where channels are last in memory, as between the linear layers of a network, these are
channels; by the result's dimensions it would be columns, and each lane would read from another line of memory. A result that is stored with
its columns last is written to many lines then, once for each element, where a window is read for each of its places.
"""

from __future__ import annotations

from ..kernel.execution_plan import Hints, Kernel, hint
from .extents import goes_over_windows, main_access

#: results next to each other in memory from which they are the last dimension; elements between the results of the dimension that is last so far
_LEAST_LINE, _LEAST_APART = 16, 8


def go_along_memory(kernel: Kernel, hints: Hints) -> bool:
    """Order the kept dimensions of ``kernel`` by the memory of its main operand, where it goes over windows of lines long enough. Whether it did."""
    domain = kernel.domain
    if len(domain.kept) < 2 or not goes_over_windows(kernel, hints):
        return False
    apart = {atom: abs(hint(c, hints)) for atom, c in main_access(kernel, hints).items()}
    lines = [a for a in domain.kept if apart.get(a) == 1 and hint(domain.size[a], hints) >= _LEAST_LINE]
    if not lines or apart.get(domain.kept[-1], 0) < _LEAST_APART:
        return False
    ordered = iter(sorted((a for a in domain.kept if apart.get(a)), key=lambda atom: apart[atom], reverse=True))
    # What it does not vary along stays in its place.
    domain.kept[:] = [next(ordered) if apart.get(a) else a for a in domain.kept]
    return True
