"""The note of a candidate that was written by rules: what runs in Triton, what torch runs, what is computed in another order.

``written`` is the only place that writes one. The other functions read it from any candidate's note, also in records and stores
of before; other generators' notes say none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_IN_TRITON = re.compile(r"(\d+) of (\d+) ops in Triton")
_KEPT = "torch runs "
_COLLAPSED = "computed before the linear operation: "


def written(lowered: int, kept: Iterable[str], collapsed: Iterable[str]) -> str:
    """``"5 of 6 ops in Triton; torch runs aten.cat.default; computed before the linear operation: sum"``.

    ``lowered``: how many operators run in Triton; ``kept``: those that torch runs, as often as it does; ``collapsed``: sums and
    means that are taken before a linear operation which the module does first.
    """
    kept, collapsed = list(kept), dict.fromkeys(collapsed)
    parts = [f"{lowered} of {lowered + len(kept)} ops in Triton"]
    parts += [_KEPT + ", ".join(sorted(set(kept)))] if kept else []
    parts += [_COLLAPSED + ", ".join(collapsed)] if collapsed else []
    return "; ".join(parts)


def in_triton(note: str) -> tuple[int, int] | None:
    """How many operators run in Triton, and of how many; None where the note does not say."""
    found = _IN_TRITON.match(note)
    return (int(found[1]), int(found[2])) if found else None


def kept(note: str) -> list[str]:
    """The operators that torch runs, with their overloads: ``["aten.cat.default"]``."""
    return _listed(note, _KEPT)


def collapsed(note: str) -> list[str]:
    """The sums and means that are taken before the linear operation that they follow in the module: ``["sum"]``."""
    return _listed(note, _COLLAPSED)


def _listed(note: str, label: str) -> list[str]:
    """A joined note of several envelopes has several such parts."""
    parts = [part.removeprefix(label) for part in note.split("; ") if part.startswith(label)]
    return list(dict.fromkeys(name for part in parts for name in part.split(", ")))
