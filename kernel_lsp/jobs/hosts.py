"""Model hosts as the jobs see them: started on demand, lent to one request at a time, ended when idle.

The process speaks the worker's protocol (docs/architecture.md), so the worker's client is its client, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from kernel_lsp import errors
from kernel_lsp.jobs.client import Worker

log = logging.getLogger("kernel_lsp.modelhost")

HOST_MAIN = Path(__file__).resolve().parent.parent / "modelhost" / "__main__.py"

OnEvent = Callable[[str, Any], None]


class ModelHost:
    """One model host process with at most one model in it. Implements ``generators.Host``."""

    def __init__(self, command: Sequence[str], cwd: Path | None) -> None:
        self.client = Worker(command, cwd, HOST_MAIN)
        self.lock = asyncio.Lock()
        self.loaded: dict[str, Any] = {}
        self.used = time.monotonic()  # when it was given back
        self._ending: asyncio.TimerHandle | None = None
        self._idle: asyncio.Task[None] | None = None

    async def ask(self, method: str, params: dict[str, Any], on_event: OnEvent, seconds: float) -> Any:
        """The answer to one request.

        Raises:
            UserError: the one it answered with; ModelHostDied, ModelHostTimedOut, InterpreterMissing.
        """
        try:
            return await self.client.request(method, params, seconds=seconds, stage=method, on_event=on_event)
        except errors.WorkerDied as error:
            self.loaded = {}
            raise errors.ModelHostDied(detail=str(error.values.get("detail", "no word of why"))) from error
        except errors.WorkerTimedOut as error:
            raise errors.ModelHostTimedOut(seconds=seconds, stage=method) from error
        except asyncio.CancelledError:
            if self.client.pid is None:  # it did not answer the cancel, and was killed
                self.loaded = {}
            raise

    def rest(self, seconds: float) -> None:
        """End the process, and with it unload the model, unless it is lent again within so many seconds."""
        self.used = time.monotonic()
        self._ending = asyncio.get_running_loop().call_later(seconds, self._end)

    def wake(self) -> None:
        """Keep it from ending for idleness."""
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None

    def _end(self) -> None:
        self._idle = asyncio.get_running_loop().create_task(self.end())

    async def end(self) -> None:
        """End the process unless it is lent."""
        if self.lock.locked():
            return
        async with self.lock:
            log.info("model host %s: ended", self.client.pid)
            self.wake()
            self.loaded = {}
            await self.client.stop()

    async def close(self) -> None:
        """End the process."""
        self.wake()
        await self.client.close()


class ModelHosts:
    """The model hosts of all jobs: one for each command and backend."""

    def __init__(self) -> None:
        self._hosts: dict[tuple[str, ...], ModelHost] = {}

    def pids(self) -> list[int]:
        """The processes that are running."""
        return [host.client.pid for host in self._hosts.values() if host.client.pid is not None]

    @contextlib.asynccontextmanager
    async def lend(
        self,
        commands: Sequence[Sequence[str]],
        load: dict[str, Any],
        idle_seconds: float,
        *,
        cwd: Path | None,
        on_event: OnEvent,
        remaining: Callable[[], float],
    ) -> AsyncIterator[ModelHost]:
        """A host with the model of ``load`` in it, for as long as the context lasts.

        Args:
            commands: to try one after the other, where an interpreter lacks a package.
            remaining: seconds that are left for waiting and loading.

        Raises:
            UserError: of loading; ModelPackageMissing names the first of ``commands``.
        """
        first: errors.UserError | None = None
        for command in commands:
            host = self._host(command, load["backend"], cwd)
            async with _locked(host.lock, remaining, on_event):
                host.wake()
                await self._make_room(host, load["backend"])
                try:
                    host.loaded = await host.ask("load", load, on_event, max(remaining(), 1.0))
                except (errors.ModelPackageMissing, errors.InterpreterMissing) as error:
                    await host.client.stop()  # so that the next job finds what was installed meanwhile
                    first = first or error
                    continue
                except BaseException:
                    host.rest(idle_seconds)
                    raise
                try:
                    yield host
                finally:
                    host.rest(idle_seconds)
                return
        assert first is not None
        raise first

    def _host(self, command: Sequence[str], backend: str, cwd: Path | None) -> ModelHost:
        key = (*command, backend)
        if key not in self._hosts:
            self._hosts[key] = ModelHost(command, cwd)
        return self._hosts[key]

    async def _make_room(self, wanted: ModelHost, backend: str) -> None:
        """End the other hosts that hold a model and are not lent: two rarely fit into one memory."""
        if backend == "openai":
            return
        others = [host for key, host in self._hosts.items() if host is not wanted and key[-1] != "openai"]
        await asyncio.gather(*(host.end() for host in others if host.client.pid is not None))

    async def end_idle(self) -> None:
        """End the hosts that are not lent."""
        await asyncio.gather(*(host.end() for host in self._hosts.values() if host.client.pid is not None))

    async def close(self) -> None:
        """End every host; nothing of them is left afterwards."""
        await asyncio.gather(*(host.close() for host in self._hosts.values()), return_exceptions=True)


@contextlib.asynccontextmanager
async def _locked(lock: asyncio.Lock, remaining: Callable[[], float], on_event: OnEvent) -> AsyncIterator[None]:
    """Hold the lock.

    Raises:
        ModelHostTimedOut: another job holds it until the time is over.
    """
    if lock.locked():
        on_event("progress", {"message": "Waiting for the model, which another job uses"})
    seconds = max(remaining(), 1.0)
    try:
        async with asyncio.timeout(seconds):
            await lock.acquire()
    except TimeoutError:
        raise errors.ModelHostTimedOut(seconds=seconds, stage="another job uses the model") from None
    try:
        yield
    finally:
        lock.release()
