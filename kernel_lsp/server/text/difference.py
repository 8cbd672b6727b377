"""What changed between a kernel and the faster one before it, as a unified difference."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_lsp.schema import SpeedComparison


def difference(before: str, now: str, found: SpeedComparison, name: str, words: str) -> str:
    """A unified difference with the finding above it, in the form that editors colour."""
    then = f"{name}\tfaster, of {found.reached_at[:10]}{_time(found.before)}"
    lines = difflib.unified_diff(
        before.splitlines(), now.splitlines(), then, f"{name}\tnow{_time(found.now)}", lineterm="", n=5
    )
    return "\n".join([words, "", *lines, ""])


def _time(timing: object) -> str:
    median = getattr(timing, "median", None)
    return f", {median:.1f} µs" if median is not None else ""
