"""The differences between the conditions of two validations, as data and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: What is compared: the name in a row → what a user calls it.
WORDS = {
    "fingerprint": "class",
    "body": "kernel",
    "device": "device",
    "driver": "driver",
    "torch": "torch",
    "triton": "triton",
    "version": "kernel-lsp",
    "bounds": "bounds",
    "precision": "precision",
}
_HASHES = ("fingerprint", "body")


@dataclass(frozen=True)
class Change:
    """``what`` is a user's word for it. For a class or a kernel ``before`` and ``now`` are hashes."""

    what: str
    before: str
    now: str

    def said(self) -> str:
        """``torch 2.11.0 → 2.13.0``; ``kernel`` for a changed hash of its body, since a hash tells a reader nothing."""
        if self.what in (WORDS[name] for name in _HASHES):
            return self.what
        return f"{self.what} {self.before or 'none'} → {self.now or 'none'}"


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """What differs between two rows that have the names in ``WORDS``."""
    found = [Change(word, before[name], now[name]) for name, word in WORDS.items() if before[name] != now[name]]
    if before["device"] != now["device"]:  # another device has another driver: that is no news
        found = [change for change in found if change.what != WORDS["driver"]]
    return found


def changed_since(before: Mapping[str, Any], now: Mapping[str, Any] | None) -> str:
    """``with torch 2.11.0 before; now 2.13.0``, ``on NVIDIA A100 before; now NVIDIA H100``.

    ``now`` None: device and versions of now are not known, since no worker has named them yet.
    """
    if now is None:
        return f"with torch {before['torch']} on {before['device']} before"
    found = [change for change in changes(before, now) if change.what not in (WORDS[name] for name in _HASHES)]
    if not found:
        return "before"
    first = found[0]
    on = first.what == WORDS["device"]
    then = [f"on {first.before}" if on else f"with {first.what} {first.before or 'not known'}"]
    then += [f"{'with ' if on and i == 0 else ''}{c.what} {c.before or 'not known'}" for i, c in enumerate(found[1:])]
    after = [first.now] + [f"{c.what} {c.now}" for c in found[1:]]
    return f"{', '.join(then)} before; now {', '.join(after)}"


def said(found: Sequence[Change]) -> str:
    """``class, torch 2.11.0 → 2.13.0``."""
    return ", ".join(change.said() for change in found)
