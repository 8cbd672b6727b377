"""Turns on a GPU for the jobs of one process: several validate at once, or one model generates there alone."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

#: seconds between two times that somebody is told how much longer it has waited
_TELL_SECONDS = 1.0

Told = Callable[[float], None]  # called with the seconds that one has waited longer


class GpuTurns:
    """Turns in the order in which they were asked for. ``most``: how many may have one at once that need not be alone."""

    def __init__(self, most: int = 1) -> None:
        self.most = most
        self._free = most
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    def allow(self, most: int) -> None:
        """Allow another number at once."""
        self._free += most - self.most
        self.most = most
        self._serve()

    @contextlib.asynccontextmanager
    async def one(self, told: Told = lambda seconds: None) -> AsyncIterator[None]:
        """A turn beside up to ``most - 1`` others."""
        async with self._turn(1, told):
            yield

    @contextlib.asynccontextmanager
    async def alone(self, told: Told = lambda seconds: None) -> AsyncIterator[None]:
        """A turn without others beside it. A task that has a turn must not ask for it."""
        async with self._turn(self.most, told):
            yield

    @contextlib.asynccontextmanager
    async def _turn(self, count: int, told: Told) -> AsyncIterator[None]:
        await self._take(count, told)
        try:
            yield
        finally:
            self._give(count)

    async def _take(self, count: int, told: Told) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, count))
        self._serve()
        since = time.monotonic()
        try:
            while not turn.done():
                await asyncio.wait({turn}, timeout=_TELL_SECONDS)
                now = time.monotonic()
                told(now - since)
                since = now
        except BaseException:
            if turn.done():
                self._give(count)
            else:
                turn.cancel()
                self._serve()  # those behind it in the queue need not wait for this one
            raise

    def _give(self, count: int) -> None:
        self._free += count
        self._serve()

    def _serve(self) -> None:
        while self._waiting and (self._waiting[0][0].done() or self._waiting[0][1] <= self._free):
            turn, count = self._waiting.popleft()
            if not turn.done():  # else it was cancelled
                self._free -= count
                turn.set_result(None)
