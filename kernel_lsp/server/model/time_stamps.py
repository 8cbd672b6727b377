"""Whether a file's time stamp is old enough that the next change gets another one."""

from __future__ import annotations

import time


def settled(mtime_ns: int) -> bool:
    """Whether a change after this moment would show in the time stamp, whose grain is some milliseconds."""
    return time.time_ns() - mtime_ns > 50_000_000
