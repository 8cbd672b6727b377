"""What was validated on this machine, for answers that must not wait: looked up in a thread, and remembered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_lsp.errors import UserError
    from kernel_lsp.settings import Settings
    from kernel_lsp.store.validations import Known

FRESH_SECONDS = 2.0  # another program may validate meanwhile: an older answer is looked up again when it is asked for
WAIT_SECONDS = 0.5  # that a request of the client waits for the first answer
_MOST = 4096

# What the settings say of the worker, the store and ``bounds``, then the fingerprint of the class, the hash of the body and the
# precision of the kernel file.
_Key = tuple[str, tuple[str, ...], Path | None, str, str, str, str, str, str]


class Validations:
    """``find`` answers at once; where something else is found than was known, ``changed`` is called.

    ``report``: is told why the store cannot be read.
    """

    def __init__(
        self, settings_for: Callable[[Path], Settings], changed: Callable[[], None], report: Callable[[UserError], None]
    ) -> None:
        self._settings_for = settings_for
        self._changed = changed
        self._report = report
        self._known: dict[_Key, tuple[float, Known | None]] = {}
        self._looking: dict[_Key, asyncio.Task[None]] = {}
        self._turn = 0  # counts what makes an answer that is under way an old one

    def find(
        self, path: Path, fingerprint: str | None, body: str, precision: str, source: str = ""
    ) -> tuple[Known | None, bool]:
        """What this machine found for a class and a body (their hashes), and whether that is known by now.

        ``precision``: the kernel file's; ``source``: the body's text, where one of another layout is to count, too.
        """
        if not fingerprint or not body:
            return None, True
        settings = self._settings_for(path)
        worker = (settings.interpreter, tuple(settings.worker_prefix), settings.root, settings.device, settings.store)
        key = (*worker, settings.bounds, fingerprint, body, precision)
        at, found = self._known.get(key, (None, None))
        if (at is None or time.monotonic() - at > FRESH_SECONDS) and key not in self._looking:
            self._looking[key] = asyncio.get_running_loop().create_task(self._look(key, settings, source))
        return found, at is not None

    def job_over(self) -> None:
        """A job keeps what it found out: what was not validated before may be now."""
        self._turn += 1
        self._known = {key: known for key, known in self._known.items() if known[1] is not None and known[1].valid}

    async def settled(self) -> None:
        """Wait for the answers that were asked for, but not long."""
        if self._looking:
            await asyncio.wait(list(self._looking.values()), timeout=WAIT_SECONDS)

    def ask_again(self) -> None:
        """What is known may not hold any more: look everything up once more, and answer with it until then."""
        self._turn += 1
        self._known = {key: (float("-inf"), found) for key, (_, found) in self._known.items()}

    async def _look(self, key: _Key, settings: Settings, source: str) -> None:
        turn = self._turn
        try:
            found, problem = await asyncio.to_thread(_find, settings, source, *key[-3:])
            if problem is not None:
                self._report(problem)
            if len(self._known) > _MOST:
                self._known.clear()
            before = self._known.get(key)
            if turn == self._turn:
                self._known[key] = (time.monotonic(), found)
            elif found is not None:  # from before something happened: shown until it is looked up again
                self._known[key] = (float("-inf"), found)
        finally:
            self._looking.pop(key, None)
        if before is None or before[1] != found or turn != self._turn:
            self._changed()


def _find(
    settings: Settings, source: str, fingerprint: str, body: str, precision: str
) -> tuple[Known | None, UserError | None]:
    """In a thread: what it imports takes a while the first time, too."""
    from kernel_lsp.errors import StoreUnusable
    from kernel_lsp.store import database, validations

    command, path = settings.interpreter_command(), database.path_for(settings.store, settings.root)
    try:
        about = fingerprint, body, settings.bounds
        known = validations.look_up(command, settings.device, *about, path, precision, source)
        return (known if known.valid or known.before else None), None
    except StoreUnusable as error:
        return None, error
