"""The worker as the server sees it: a process that is started when needed and takes one request at a time.

JSON lines on its standard input and output (docs/architecture.md). The process may be slow, hang, lie or die: every
request has a deadline, a cancel that is not answered kills, and a dead worker is started again by the next request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_lsp import errors

log = logging.getLogger("kernel_lsp.worker")

WORKER_MAIN = Path(__file__).resolve().parent.parent / "worker" / "__main__.py"
START_SECONDS = 120.0  # importing torch on a cold disk; a scheduler that must first find a GPU
CANCEL_SECONDS = 0.6  # what a worker gets to answer a cancel, before it is killed (idle must come within 1 s)
SHUTDOWN_SECONDS = 0.7
_CHUNK = 1 << 16

EventHandler = Callable[[str, Any], None]  # name of the event, its data


@dataclass
class _Pending:
    future: asyncio.Future[Any]
    on_event: EventHandler | None


class Worker:
    """One worker process. ``command`` is everything up to and with the interpreter; ``cwd`` where it runs.

    ``lock`` is held by whoever gives it work: one job at a time.
    """

    def __init__(self, command: Sequence[str], cwd: Path | None = None, main: Path = WORKER_MAIN) -> None:
        self.command = [*command, str(main)]
        self.cwd = cwd
        self.lock = asyncio.Lock()
        self.process: asyncio.subprocess.Process | None = None
        self.hello: dict[str, Any] = {}  # the answer to "hello" of the process that runs now
        self._pending: dict[int, _Pending] = {}
        self._stderr: deque[str] = deque(maxlen=40)
        self._next_id = 1
        self._tasks: list[asyncio.Task[None]] = []
        self._starting: asyncio.Task[dict[str, Any]] | None = None
        self.closing = False

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process and self.process.returncode is None else None

    async def start(self) -> dict[str, Any]:
        """Start the process if none runs, and return its answer to "hello".

        A start goes on when the one who waits for it is cancelled: the next one will want the worker, too.

        Raises:
            InterpreterMissing: the command cannot be started.
            WorkerDied, WorkerTimedOut: it ended, or said nothing, before it answered.
        """
        if self.pid is not None and self.hello:
            return self.hello
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> dict[str, Any]:
        await self.stop()
        self._stderr.clear()
        try:
            self.process = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.cwd,
                # A group of its own: Ctrl-C at the terminal is ours to handle, and a kill reaches every child.
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            detail = f"{self.command[0]}: {getattr(error, 'strerror', None) or error}"
            raise errors.InterpreterMissing(detail=detail) from error
        log.info("worker %d started: %s", self.process.pid, " ".join(self.command))
        stderr = asyncio.create_task(self._read_stderr(self.process))
        self._tasks = [stderr, asyncio.create_task(self._read_stdout(self.process, stderr))]
        try:
            self.hello = await self._ask("hello", {}, None, START_SECONDS, "starting")
        except errors.WorkerDied as error:
            if self.process and self.process.returncode in (126, 127):  # the shell's codes for "cannot start it"
                raise errors.InterpreterMissing(detail=self._last_words()) from error
            raise
        return self.hello

    async def request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        seconds: float,
        stage: str,
        on_event: EventHandler | None = None,
    ) -> Any:
        """The worker's answer to one request; it is started first if it is not running.

        Args:
            seconds: how long it may take; after that it is cancelled, and killed if it does not answer.
            stage: what is going on, for the message when the time is over.
            on_event: called with each event's name and data.

        Raises:
            UserError: the one the worker answered with, or WorkerDied, WorkerTimedOut, InterpreterMissing.
        """
        await self.start()
        return await self._ask(method, params, on_event, seconds, stage)

    async def _ask(
        self, method: str, params: dict[str, Any], on_event: EventHandler | None, seconds: float, stage: str
    ) -> Any:
        process = self.process
        assert process is not None and process.stdin is not None
        number, self._next_id = self._next_id, self._next_id + 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = _Pending(future, on_event)
        line = json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n"
        try:
            async with asyncio.timeout(seconds):
                with contextlib.suppress(ConnectionError):  # the reader tells why it ended
                    process.stdin.write(line)
                    await process.stdin.drain()
                return await future
        except TimeoutError:
            await self._cancel(number)
            raise errors.WorkerTimedOut(seconds=seconds, stage=stage) from None
        except asyncio.CancelledError:
            await self._cancel(number)
            raise
        finally:
            self._pending.pop(number, None)

    async def _cancel(self, number: int) -> None:
        """Cancel a request; on return the worker is idle or dead."""
        pending = self._pending.get(number)
        process = self.process
        if pending is None or process is None or process.stdin is None or self.closing:
            return
        if pending.future.done():
            # The wait for the answer was cancelled, and the future with it: listen for the answer on a new one.
            pending.future = asyncio.get_running_loop().create_future()
        pending.on_event = None
        message = json.dumps({"method": "cancel", "params": {"id": number}}).encode() + b"\n"
        try:
            process.stdin.write(message)
            await asyncio.wait_for(asyncio.shield(pending.future), CANCEL_SECONDS)
        except TimeoutError:
            log.warning("worker %d did not answer a cancel within %.1f s; killed", process.pid, CANCEL_SECONDS)
            await self.stop()
        except (errors.UserError, ConnectionError):
            pass  # Cancelled, as asked; or it died, which is as good
        finally:
            pending.future.cancel()

    async def _read_stdout(self, process: asyncio.subprocess.Process, stderr: asyncio.Task[None]) -> None:
        """Hand out answers and events until the output ends; then fail what still waits."""
        assert process.stdout is not None
        parts: list[bytes] = []  # readline() has a limit of 64 KiB, and a module's source may be longer
        while chunk := await process.stdout.read(_CHUNK):
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                self._receive(b"".join([*parts, end]))
                parts = []
            if rest:
                parts.append(rest)
        code = await _ended(process)
        if process.returncode is None:  # it closed its output and lives on
            kill_group(process.pid)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(stderr), 0.3)  # its last words, unless a child holds the pipe open
        if process is not self.process:
            return
        detail = ", ".join(filter(None, [_how_it_ended(code), self._last_words()]))
        if not self.closing:
            log.warning("worker %d ended: %s", process.pid, detail)
        for pending in list(self._pending.values()):
            if not pending.future.done():
                pending.future.set_exception(errors.WorkerDied(detail=detail))
                pending.future.exception()  # marked as seen: a cancelled request no longer asks

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            number = message["id"]
        except (ValueError, TypeError, KeyError):
            log.warning("not the protocol, from the worker: %s", line[:200].decode("utf-8", "replace"))
            return
        pending = self._pending.get(number)
        if pending is None:
            return  # an answer that nobody waits for any more
        if "event" in message:
            if pending.on_event:
                try:
                    pending.on_event(message["event"], message.get("data"))
                except Exception:
                    log.exception("handling the worker's event %s", message["event"])
        elif not pending.future.done():
            if "error" in message:
                pending.future.set_exception(errors.from_json(message["error"]))
                pending.future.exception()
            else:
                pending.future.set_result(message.get("result"))

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        rest = ""
        while chunk := await process.stderr.read(_CHUNK):
            *lines, rest = (rest + chunk.decode("utf-8", "replace")).split("\n")
            for line in lines:
                self._stderr.append(line.rstrip())
                log.info("%d: %s", process.pid, line.rstrip())
            if len(rest) > _CHUNK:
                rest = rest[-_CHUNK:]
        if rest:
            self._stderr.append(rest)

    def _last_words(self) -> str:
        """The end of standard error: the last lines that are not empty."""
        return " / ".join([line.strip() for line in self._stderr if line.strip()][-3:])[-600:]

    async def stop(self) -> None:
        """Kill the process with all its children and wait for its end."""
        process, self.process, self.hello = self.process, None, {}
        if process is None:
            return
        kill_group(process.pid)
        await _ended(process)
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(errors.WorkerDied(detail="it was stopped"))
                pending.future.exception()

    async def close(self) -> None:
        """End the process, politely at first; on return nothing of it is left. Takes less than a second or so."""
        self.closing = True
        if self._starting is not None:
            self._starting.cancel()
        process = self.process
        if process is not None and process.returncode is None and process.stdin is not None:
            with contextlib.suppress(ConnectionError, TimeoutError, OSError):
                process.stdin.write(b'{"method": "shutdown"}\n')
                process.stdin.close()
                await asyncio.wait_for(_ended(process), SHUTDOWN_SECONDS)
        await self.stop()


def kill_group(pid: int) -> None:
    """SIGKILL the process group that ``pid`` leads: the worker, its wrapper and its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGTERM)  # TerminateProcess on Windows


async def _ended(process: asyncio.subprocess.Process) -> int:
    """The exit status. Not ``process.wait()``, which also waits until every child has closed the pipes."""
    deadline = time.monotonic() + 1
    while process.returncode is None and time.monotonic() < deadline:
        await asyncio.sleep(0.005)
    return -signal.SIGKILL if process.returncode is None else process.returncode


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
