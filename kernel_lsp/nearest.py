"""Which known word an unknown one may stand for, and how a message says so."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known word that is most like ``word``; "" where none is. ``cutoff``: how alike it has to be, from 0 to 1."""
    near = difflib.get_close_matches(word, [str(one) for one in known], n=1, cutoff=cutoff)
    return near[0] if near else ""


def did_you_mean(near: str) -> str:
    """What a message ends with that names ``near``: ``; did you mean check?``; "" for ""."""
    return f"; did you mean {near}?" if near else ""


def hint(word: str, known: Iterable[str]) -> str:
    """``did_you_mean`` of the nearest known word."""
    return did_you_mean(nearest(word, known))
