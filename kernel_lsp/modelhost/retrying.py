"""When a request is made again, and after how long. Nothing here waits or talks to a server."""

from __future__ import annotations

import email.utils
import random
import time

FIRST = 0.5  # seconds before the first retry; then twice as long each time
LONGEST = 30.0
LONGEST_ASKED = 120.0  # a server that asks for more than this is as good as gone

#: too many requests, and what may pass by itself; 409: a server that is still loading; 408, 5xx: timeouts and crashes
STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


def is_passing(status: int) -> bool:
    """Whether a request that got this HTTP status may succeed when made again."""
    return status in STATUSES or (status >= 500 and status not in (501, 505))


def delay(attempt: int, asked: float | None = None, jitter: float | None = None) -> float:
    """Seconds to wait before retry number ``attempt`` (from 1).

    Exponential with jitter, half to all of the step, so that clients that failed together do not come back together;
    never less than the server asked for.

    Args:
        asked: seconds that the server's Retry-After names.
        jitter: in [0, 1); random unless given.
    """
    jitter = random.random() if jitter is None else jitter
    own = min(LONGEST, FIRST * 2 ** min(attempt - 1, 16)) * (0.5 + jitter / 2)
    return own if asked is None else max(own, min(asked, LONGEST_ASKED))


def retry_after(value: str | None, now: float | None = None) -> float | None:
    """Seconds from a Retry-After header, which holds seconds or an HTTP date (RFC 9110, 10.2.3); None if it holds neither."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        then = email.utils.parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError):
        return None
    return max(0.0, then - (time.time() if now is None else now))
