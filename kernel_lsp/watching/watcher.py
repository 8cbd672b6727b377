"""Rounds: a burst of changes is waited for to end, and told of once."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Protocol

from kernel_lsp.errors import TooManyFolders, UserError, WatchesExhausted

from .tree import Tree, look

log = logging.getLogger("kernel_lsp.watching")

QUIET_SECONDS = 0.2  # without a change, after which a burst is over
MOST_SECONDS = 10.0  # that a burst is waited for
POLL_SECONDS = 1.0  # between two looks where there are no notifications; more where a look takes long
_POLL_SHARE = 0.003  # of a core, that looking may take
_POLL_WAIT = 0.1  # of the time, that looking may take where the disk is slow
_TURNS = 5  # looks at folders that appear while they are looked at

Changed = Callable[[Tree, set[Path]], Awaitable[None]]


class Notifier(Protocol):
    """What tells of changes: see inotify.py and recursive.py."""

    def follow(self, tree: Tree) -> bool:
        """Watch the folders of a tree; whether any is new."""

    def close(self) -> None:
        """End all watches."""


class Watcher:
    """Watches the folders under some paths from ``start`` to ``close``, on the event loop on which it is started.

    Args:
        roots: folders or files, absolute; they need not exist.
        changed: awaited with the tree as it is and the files that changed, once a burst; changes meanwhile are another one.
        say: told, once each, what limits the watching.
        poll: compare files from time to time, as is done where the system has no watches left.
    """

    def __init__(
        self, roots: Iterable[Path], changed: Changed, say: Callable[[UserError], None], *, poll: bool = False
    ) -> None:
        self._roots = list(roots)
        self._further: frozenset[Path] = frozenset()
        self._changed = changed
        self._say = say
        self._poll = poll
        self._said: set[type[UserError]] = set()
        self._notifier: Notifier | None = None
        self._woken = asyncio.Event()
        self._last = 0.0  # when something happened
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._pause = POLL_SECONDS  # while comparing
        self.tree = Tree()

    @property
    def polls(self) -> bool:
        """Whether files are compared from time to time, for want of notifications."""
        return self._notifier is None

    async def start(self) -> Tree:
        """Begin, and return the tree as it is."""
        if not self._poll:
            try:
                self._notifier = await asyncio.to_thread(_notifier, self._wake)
            except OSError as error:
                self._exhausted(error)
        self.tree = await self._settle()
        self._task = self._loop.create_task(self._run())
        return self.tree

    def watch_also(self, files: Iterable[Path]) -> None:
        """The further files, there or not, whose changes count, instead of those named before."""
        now = frozenset(files)
        if now != self._further:
            self._further = now
            self._wake()

    def watch_only(self, roots: Iterable[Path]) -> None:
        """Other roots from now on."""
        self._roots = list(roots)
        self._wake()

    async def close(self) -> None:
        """End the watching, a burst under way included."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._stop_notifier()

    def _wake(self) -> None:
        """Something happened. Called in any thread."""
        self._last = time.monotonic()
        if not self._woken.is_set():
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._woken.set)

    async def _run(self) -> None:
        while True:
            await self._wait()
            try:
                tree = await self._settle()
                if self.polls:
                    tree = await self._settle_by_looking(tree)
                files = tree.changed_since(self.tree)
                self.tree = tree
                if files:
                    await self._changed(tree, files)
            except Exception:
                log.exception("after a change of files")

    async def _wait(self) -> None:
        """Until something happened and the burst is over, or until the next look is due."""
        if self.polls:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), self._pause)
            self._woken.clear()
            return
        await self._woken.wait()
        began = time.monotonic()
        while (rest := self._last + QUIET_SECONDS - time.monotonic()) > 0 and time.monotonic() - began < MOST_SECONDS:
            await asyncio.sleep(rest)
        self._woken.clear()

    async def _settle(self) -> Tree:
        """Look, and watch what is there. Folders that came before they were watched are looked at again."""
        for _ in range(_TURNS):
            tree, processor, seconds = await asyncio.to_thread(_timed_look, self._roots, self._further)
            self._pause = max(POLL_SECONDS, processor / _POLL_SHARE, seconds / _POLL_WAIT)
            if tree.left_out is not None:
                self._say_once(TooManyFolders(most=len(tree.folders), path=str(tree.left_out)))
            if self._notifier is None:
                return tree
            try:
                if not await asyncio.to_thread(self._notifier.follow, tree):
                    return tree
            except OSError as error:
                self._stop_notifier()
                self._exhausted(error)
        return tree

    async def _settle_by_looking(self, tree: Tree) -> Tree:
        """Without notifications: look until nothing changes any more."""
        before, until = self.tree, time.monotonic() + MOST_SECONDS
        while tree.changed_since(before) and time.monotonic() < until:
            await asyncio.sleep(QUIET_SECONDS)
            before, tree = tree, await self._settle()
        return tree

    def _exhausted(self, error: OSError) -> None:
        detail = {
            errno.ENOSPC: "the limit fs.inotify.max_user_watches is reached",
            errno.EMFILE: "the limit fs.inotify.max_user_instances, or that of open files, is reached",
        }.get(error.errno or 0, str(error))
        self._say_once(WatchesExhausted(detail=detail))

    def _say_once(self, error: UserError) -> None:
        if type(error) not in self._said:
            self._said.add(type(error))
            self._say(error)

    def _stop_notifier(self) -> None:
        notifier, self._notifier = self._notifier, None
        if notifier is not None:
            notifier.close()


def _timed_look(roots: Iterable[Path], further: Iterable[Path]) -> tuple[Tree, float, float]:
    """A look with the seconds that it took, of the processor and in all."""
    processor, began = time.thread_time(), time.monotonic()
    return look(roots, further), time.thread_time() - processor, time.monotonic() - began


def _notifier(woken: Callable[[], None]) -> Notifier:
    """In a thread: what it imports takes a moment."""
    if sys.platform == "linux":
        from .inotify import Inotify

        return Inotify(woken)
    from .recursive import Recursive

    return Recursive(woken)
