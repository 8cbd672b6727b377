"""Whether this machine had more to do than it could, which a deadline that was missed may be due to."""

from __future__ import annotations

import os

from kernel_lsp.child_processes import processors

#: so many times as many processes as processors; a worker's own threads are as many as these
_TIMES = 2


def busy_words(load: float | None = None, count: int | None = None) -> str:
    """A sentence for a machine that is busy, with a space before it; else "".

    ``load``: how many processes ran or waited to run, on average over the last minute; ``count``: of processors. Both are
    asked of the system where they are not given.
    """
    if load is None:
        try:
            load = os.getloadavg()[0]
        except (AttributeError, OSError):  # no such figure here
            return ""
    count = count or processors()
    if load < _TIMES * count:
        return ""
    return f" This machine is busy: {load:.0f} processes want its {count} processor{'s' if count > 1 else ''}."
