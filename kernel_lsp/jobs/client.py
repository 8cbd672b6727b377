"""The worker as the server sees it: a process that is started when needed and takes one request at a time.

JSON lines on its standard input and output (docs/architecture.md). The process may be slow, hang, lie or die: every
request has a deadline, a cancel that is not answered kills, and a dead worker is started again by the next request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_lsp import errors
from kernel_lsp.child_processes import ENDING
from kernel_lsp.jobs.machine_load import busy_words
from kernel_lsp.jobs.process import Process, how_it_ended

log = logging.getLogger("kernel_lsp.worker")

WORKER_MAIN = Path(__file__).resolve().parent.parent / "worker" / "__main__.py"
START_SECONDS = 120.0  # importing torch on a cold disk; a scheduler that must first find a GPU
CANCEL_SECONDS = 0.6  # what a worker gets to answer a cancel, before it is killed (idle must come within 1 s)
SHUTDOWN_SECONDS = 0.7

EventHandler = Callable[[str, Any], None]  # name of the event, its data


@dataclass
class _Pending:
    future: asyncio.Future[Any]
    on_event: EventHandler | None
    limit: asyncio.Timeout


class Worker:
    """One worker process.

    ``command`` is everything up to and with the interpreter; ``cwd`` where it runs; ``main`` the file that it is to run, the
    worker's own where none is given.

    ``lock`` is held by the job that gives it work: one at a time. With ``give_way`` it leaves the processor to others,
    as beside an editor it should.
    """

    def __init__(
        self, command: Sequence[str], cwd: Path | None = None, main: Path | None = None, give_way: bool = False
    ) -> None:
        self.command = [*command, str(main or WORKER_MAIN), *(["--give-way"] if give_way else [])]
        self.cwd = cwd
        self.lock = asyncio.Lock()
        self.hello: dict[str, Any] = {}  # the answer to "hello" of the process that runs now
        self.closing = False
        self._process: Process | None = None
        self._pending: dict[int, _Pending] = {}
        self._stderr: deque[str] = deque(maxlen=40)
        self._next_id = 1
        self._starting: asyncio.Task[dict[str, Any]] | None = None

    @property
    def pid(self) -> int | None:
        """The process's id while it runs."""
        return self._process.pid if self._process and self._process.status is None else None

    async def start(self) -> dict[str, Any]:
        """Start the process if none runs, and return its answer to "hello".

        A start goes on when the task that awaits it is cancelled: the next job needs the worker, too.

        Raises:
            InterpreterMissing: the command cannot be started.
            WorkerDied, WorkerTimedOut: it ended, or said nothing, before it answered.
        """
        if self.pid is not None and self.hello:
            return self.hello
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_seen)
        return await asyncio.shield(self._starting)

    async def ready(self) -> None:
        """Start the process if none runs, and wait until it has imported what its work takes.

        Raises:
            UserError: as ``start``; a package that is broken.
        """
        await self.start()
        await self._ask("warm", {}, None, START_SECONDS, "starting")

    async def _start(self) -> dict[str, Any]:
        await self.stop()
        self._stderr.clear()
        try:
            self._process = await Process.start(self.command, self.cwd, self._receive, self._log, self._ended)
        except (OSError, ValueError) as error:
            detail = f"{self.command[0]}: {getattr(error, 'strerror', None) or error}"
            raise errors.InterpreterMissing(detail=detail) from error
        log.info("worker %d started: %s", self._process.pid, " ".join(self.command))
        try:
            self.hello = await self._ask("hello", {}, None, START_SECONDS, "starting")
        except errors.WorkerDied as error:
            if self._process and self._process.status in (126, 127):  # the shell's codes for "cannot start it"
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
        leave: bool = False,
    ) -> Any:
        """The worker's answer to one request; it is started first if it is not running.

        Args:
            seconds: how long it may take, without what the worker says that it waited for a GPU; after that it is cancelled, and
                killed if it does not answer.
            stage: what is going on, for the message when the time is over.
            on_event: called with each event's name and data.
            leave: whether a cancel is told to the worker and not waited for: it is then never killed for not answering.

        Raises:
            UserError: the one the worker answered with, or WorkerDied, WorkerTimedOut, InterpreterMissing.
        """
        await self.start()
        return await self._ask(method, params, on_event, seconds, stage, leave)

    async def _ask(
        self,
        method: str,
        params: dict[str, Any],
        on_event: EventHandler | None,
        seconds: float,
        stage: str,
        leave: bool = False,
    ) -> Any:
        number, self._next_id = self._next_id, self._next_id + 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        limit = asyncio.timeout(seconds)
        self._pending[number] = _Pending(future, on_event, limit)
        try:
            async with limit:
                if self._process is None or self._process.reported:  # before that, _ended will tell
                    raise errors.WorkerDied(detail=self._last_words() or "it was stopped")
                self._process.write({"id": number, "method": method, "params": params})
                return await future
        except (TimeoutError, asyncio.CancelledError) as error:
            if not leave:
                await self._cancel(number)
            elif self._process is not None and not self.closing:
                self._process.write({"method": "cancel", "params": {"id": number}})
            if isinstance(error, TimeoutError):
                raise errors.WorkerTimedOut(seconds=seconds, stage=stage, busy=busy_words()) from None
            raise
        finally:
            self._pending.pop(number, None)

    async def _cancel(self, number: int) -> None:
        """Cancel a request; on return the worker is idle or dead."""
        pending, process = self._pending.get(number), self._process
        if pending is None or process is None or self.closing:
            return
        # The wait for the answer was cancelled, and the future with it: listen for the answer on a new one.
        pending.future = asyncio.get_running_loop().create_future()
        pending.on_event = None
        process.write({"method": "cancel", "params": {"id": number}})
        # Not asyncio.timeout: before Python 3.11.3 it does not end in TimeoutError in a task that is being cancelled.
        await asyncio.wait({pending.future}, timeout=CANCEL_SECONDS)
        if pending.future.done():
            pending.future.exception()  # Cancelled, as asked; or it died, which is as good
            return
        log.warning("worker %d did not answer a cancel within %.1f s; killed", process.pid, CANCEL_SECONDS)
        await self.stop()

    def _receive(self, line: bytes) -> None:
        """One line of the worker's standard output."""
        try:
            message = json.loads(line)
            number = message["id"]
        except (ValueError, TypeError, KeyError):
            log.warning("not the protocol, from the worker: %s", line[:200].decode("utf-8", "replace"))
            return
        pending = self._pending.get(number)
        if pending is None or pending.future.done():
            return  # the answer to a request that was given up
        if "event" in message:
            if message["event"] == "waiting":
                _extend(pending.limit, message.get("data"))
            if pending.on_event:
                try:
                    pending.on_event(message["event"], message.get("data"))
                except Exception:
                    log.exception("handling the worker's event %s", message["event"])
        elif "error" in message:
            pending.future.set_exception(errors.from_json(message["error"]))
            _seen(pending.future)
        else:
            pending.future.set_result(message.get("result"))

    def _log(self, line: bytes) -> None:
        """One line of the worker's standard error."""
        text = line.decode("utf-8", "replace").rstrip()
        self._stderr.append(text)
        log.info("%s", text)

    def _ended(self, process: Process) -> None:
        """The process is gone, and all it wrote has been read: fail what still waits for an answer."""
        if process is not self._process:
            return
        own = (line.removeprefix(ENDING) for line in self._stderr if line.startswith(ENDING))
        detail = next(own, "") or ", ".join(filter(None, [how_it_ended(process.status), self._last_words()]))
        if not self.closing:
            log.warning("worker %d ended: %s", process.pid, detail)
        self._fail_pending(detail)

    def _fail_pending(self, detail: str) -> None:
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(errors.WorkerDied(detail=detail))
                _seen(pending.future)

    def _last_words(self) -> str:
        """The end of standard error: the last lines that are not empty."""
        return " / ".join([line.strip() for line in self._stderr if line.strip()][-3:])[-600:]

    async def stop(self) -> None:
        """Kill the process with all its children; on return it is gone."""
        process, self._process, self.hello = self._process, None, {}
        if process is not None:
            await process.kill()
            self._fail_pending("it was stopped")

    async def close(self) -> None:
        """End the process, politely at first; on return nothing of it is left. Takes a second at most."""
        self.closing = True
        if self._starting is not None:
            self._starting.cancel()
        if self._process is not None and self._process.status is None:
            self._process.write({"method": "shutdown"})
            self._process.end_of_input()
            await self._process.wait(SHUTDOWN_SECONDS)
        await self.stop()


def _extend(limit: asyncio.Timeout, data: Any) -> None:
    """Move a limit that is not reached by what the worker has waited longer for others to be done with the GPU."""
    until = limit.when()
    with contextlib.suppress(RuntimeError, TypeError, KeyError):  # it is over; or a worker of another version
        if until is not None and not limit.expired():
            limit.reschedule(until + float(data["seconds"]))


def _seen(future: asyncio.Future[Any]) -> None:
    """Mark a failure as seen: where no task awaits it any more, asyncio would log an error."""
    if not future.cancelled() and future.done():
        future.exception()
