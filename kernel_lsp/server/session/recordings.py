"""What ``kernel-lsp record`` saw of a file's classes, for answers that must not wait: read in a thread, and remembered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_lsp.recording.examples import Recorded

FRESH_SECONDS = 1.0  # a program may be recorded meanwhile: an older answer is looked up again when it is asked for
WAIT_SECONDS = 0.5  # that a request of the client waits for the first answer
_MOST = 256

Found = dict[str, "Recorded"]


class Recordings:
    """``of`` answers at once; where something else is found than was known, ``changed`` is called."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._known: dict[Path, tuple[float, Found]] = {}
        self._looking: dict[Path, asyncio.Task[None]] = {}

    def of(self, path: Path, class_name: str) -> Recorded | None:
        """What was recorded of a class, as far as that is known by now."""
        at, found = self._known.get(path, (None, {}))
        if (at is None or time.monotonic() - at > FRESH_SECONDS) and path not in self._looking:
            self._looking[path] = asyncio.get_running_loop().create_task(self._look(path))
        return found.get(class_name)

    def looking(self, path: Path) -> bool:
        """Whether nothing is known of a file yet."""
        return path not in self._known and path in self._looking

    async def settled(self, path: Path) -> None:
        """Wait for the first answer about a file, but not long."""
        if (looking := self._looking.get(path)) is not None:
            await asyncio.wait([looking], timeout=WAIT_SECONDS)

    async def _look(self, path: Path) -> None:
        try:
            found = await asyncio.to_thread(_find, path)
            if len(self._known) > _MOST:
                self._known.clear()
            before = self._known.get(path)
            self._known[path] = (time.monotonic(), found)
        finally:
            self._looking.pop(path, None)
        if (before[1] if before is not None else {}) != found:
            self._changed()


def _find(path: Path) -> Found:
    """In a thread: what it imports takes a while the first time, too."""
    from kernel_lsp.recording import examples, files

    return examples.recorded_of(path, files.find(path, files.default_base()))
