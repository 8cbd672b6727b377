"""What rows that programs share move, and how much of it L2 still holds when the next row needs it."""

from __future__ import annotations

from ..graph.sizes import Index
from ..kernel.execution_plan import Hints, Kernel, hint
from .extents import bytes_of, total
from .target import Target

#: Part of L2 in which what was read stays until it is read again while other things are streamed through (docs/performance.md).
_STAYS = 0.5


def varies_by_row(kernel: Kernel, index: Index) -> bool:
    """Whether rows have elements of their own there."""
    domain = kernel.domain
    return not set(domain.kept).isdisjoint(s for e in index for s in domain.resolve(e).free_symbols)


def of_rows(kernel: Kernel, hints: Hints) -> tuple[int, int, int]:
    """Bytes that all rows share, and that the rows have of their own: read, and written."""
    own = {v for v, index, _ in kernel.accesses if varies_by_row(kernel, index)}
    every = {v for v, _, _ in kernel.accesses} - own
    written = sum(bytes_of(v, hints) for v in dict.fromkeys(kernel.outputs))
    return sum(bytes_of(v, hints) for v in every), sum(bytes_of(v, hints) for v in own), written


def streams(kernel: Kernel, target: Target, hints: Hints) -> bool:
    """Whether what rows share would leave L2 before the next row, unless what a row has of its own leaves first."""
    every, read, written = of_rows(kernel, hints)
    rows = hint(total(kernel.domain, kernel.domain.kept), hints)
    return rows > 1 and every > 0 and every + (read + written) // rows > _STAYS * target.l2


def read_again(kernel: Kernel, target: Target, hints: Hints) -> int:
    """Bytes of what rows share that are read from memory again, all rows together. Beyond what stays in L2 it is less and less, an estimate."""
    if not streams(kernel, target, hints):
        return 0
    every, _, _ = of_rows(kernel, hints)
    rows = hint(total(kernel.domain, kernel.domain.kept), hints)
    stays = _STAYS * target.l2
    return int(every * (rows - 1) * min(1.0, max(0.0, every - stays) / (target.l2 - stays)))
