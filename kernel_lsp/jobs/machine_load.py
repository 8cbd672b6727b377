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
    found = _load(load, count)
    return f" This machine is busy: {found[0]:.0f} processes want its {found[1]}." if found is not None else ""


def waiting_words(load: float | None = None, count: int | None = None) -> str:
    """``waits for other programs: 10 processes want 2 processors``; "" where ``busy_words`` has none."""
    found = _load(load, count)
    return f"waits for other programs: {found[0]:.0f} processes want {found[1]}" if found is not None else ""


def _load(load: float | None, count: int | None) -> tuple[float, str] | None:
    """The load of a machine that is busy, and its processors in words; None for any other."""
    if load is None:
        try:
            load = os.getloadavg()[0]
        except (AttributeError, OSError):  # no such figure here
            return None
    count = count or processors()
    if load < _TIMES * count:
        return None
    return load, f"{count} processor{'s' if count > 1 else ''}"
