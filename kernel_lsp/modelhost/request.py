"""One request while it is worked on: its events go out, its cancel comes in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kernel_lsp import errors


@dataclass
class Request:
    """``emit`` sends an event; ``cancelled`` is set by the thread that reads requests."""

    method: str
    params: dict[str, Any]
    emit: Callable[[str, Any], None]
    cancelled: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Called between tokens, between weights, between layers.

        Raises:
            Cancelled: the request was cancelled.
        """
        if self.cancelled.is_set():
            raise errors.Cancelled()

    def progress(self, message: str, fraction: float) -> None:
        """Send how far the request is, from 0 to 1."""
        self.emit("progress", {"message": message, "fraction": round(fraction, 4)})
