"""A child process that speaks lines: started, written to, read from and ended, with nothing of it left behind.

asyncio's own ``StreamReader.readline`` fails beyond 64 KiB, and ``Process.wait`` waits for every grandchild that holds
a pipe; hence this class on the transport underneath.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

_LAST_WORDS_SECONDS = 0.3  # after the end, for output that is still in the pipes
_KILL_SECONDS = 1.0


class Process(asyncio.SubprocessProtocol):
    """Use ``Process.start``. ``status`` is None while it runs, then the exit status (negative: the signal)."""

    def __init__(
        self,
        on_output: Callable[[bytes], None],
        on_error_output: Callable[[bytes], None],
        on_end: Callable[[Process], None],
    ) -> None:
        self.pid = 0
        self.status: int | None = None
        self.reported = False  # whether on_end was called
        self._on_line = {1: on_output, 2: on_error_output}
        self._on_end = on_end
        self._parts: dict[int, list[bytes]] = {1: [], 2: []}  # of the line that has begun
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = asyncio.Event()
        self._closed = {1: asyncio.Event(), 2: asyncio.Event()}
        self._watcher: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        cwd: Path | None,
        on_output: Callable[[bytes], None],
        on_error_output: Callable[[bytes], None],
        on_end: Callable[[Process], None],
    ) -> Process:
        """Start ``command``; the callbacks get each line, and the process when it has ended and all was read.

        Raises:
            OSError: it cannot be started.
        """
        _, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(on_output, on_error_output, on_end),
            *command,
            cwd=cwd,
            # A group of its own: Ctrl-C at the terminal is ours to handle, and a kill reaches every child.
            start_new_session=True,
        )
        process._watcher = asyncio.create_task(process._watch())
        return process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's callback: the process is running."""
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self._transport.get_pid() or 0

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """asyncio's callback: hand on each line that is whole, without its end; the rest waits."""
        *ends, rest = cast(bytes, data).split(b"\n")
        for end in ends:
            line = b"".join([*self._parts[fd], end])
            self._parts[fd] = []
            self._on_line[fd](line)
        if rest:
            self._parts[fd].append(rest)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """asyncio's callback: the process has closed a pipe."""
        if fd in self._closed:
            self._closed[fd].set()

    def process_exited(self) -> None:
        """asyncio's callback: the exit status is known."""
        assert self._transport is not None
        self.status = self._transport.get_returncode()
        self._exited.set()

    async def _watch(self) -> None:
        """Wait for the end and report it. A process that closes its output can be of no more use: it is killed."""
        gone = [asyncio.create_task(event.wait()) for event in (self._exited, self._closed[1])]
        try:
            await asyncio.wait(gone, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in gone:
                task.cancel()
        if not await self.wait(_LAST_WORDS_SECONDS):
            self._kill_group()
            await self.wait(_KILL_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._closed[1].wait()
                await self._closed[2].wait()
        if self._parts[2]:
            self._on_line[2](b"".join(self._parts[2]))
        self._kill_group()  # children that outlived it
        assert self._transport is not None
        self._transport.close()
        self.reported = True
        self._on_end(self)

    def write(self, message: dict[str, Any]) -> None:
        """Put one JSON line on its standard input; what cannot be delivered is dropped, since its end is reported."""
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            pipe.write(json.dumps(message).encode() + b"\n")

    def end_of_input(self) -> None:
        """Close its standard input."""
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        if pipe is not None:
            pipe.close()

    async def wait(self, seconds: float) -> bool:
        """Wait for its end for so long; whether it came."""
        # Not asyncio.timeout: before Python 3.11.3 it does not end in TimeoutError in a task that is being cancelled.
        waiting = asyncio.ensure_future(self._exited.wait())
        try:
            await asyncio.wait({waiting}, timeout=seconds)
        finally:
            waiting.cancel()
        return self._exited.is_set()

    async def kill(self) -> None:
        """Kill it and its group, wait for its end and close the pipes. Its end is not reported."""
        if self._watcher is not None:
            self._watcher.cancel()
        self._kill_group()
        await self.wait(_KILL_SECONDS)
        if self._transport is not None:
            self._transport.close()

    def _kill_group(self) -> None:
        """SIGKILL the process group it leads: itself, a wrapper in front of it, and the children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.pid, signal.SIGKILL)
            elif self.status is None:
                os.kill(self.pid, signal.SIGTERM)  # TerminateProcess on Windows


def how_it_ended(status: int | None) -> str:
    """``exit status 3`` or ``killed by SIGKILL``."""
    if status is None:
        return "no exit status"
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
