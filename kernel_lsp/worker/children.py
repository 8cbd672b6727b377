"""The manager's side of the zygotes: start a child, follow what it says, kill it, learn how it ended."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from kernel_lsp import child_processes, errors
from kernel_lsp.worker import exit_reasons

#: lines of a child's standard error that are kept to explain its end
KEPT_LINES = 20
#: bytes of a line of a child's standard error, and of all of it, that are passed on
_LINE, _LOG = 4096, 1 << 20


class Child:
    """One forked child: ``answer`` gets its result, ``exited`` its wait status."""

    def __init__(self, on_event: Callable[[str, Any], None]) -> None:
        loop = asyncio.get_running_loop()
        self.on_event = on_event
        self.answer: asyncio.Future[Any] = loop.create_future()
        self.exited: asyncio.Future[int] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self.stderr: collections.deque[bytes] = collections.deque(maxlen=KEPT_LINES)
        self.noted = 0
        self.out_of_memory = exit_reasons.for_want_of_memory()
        self.stage = "starting"
        self.waited = 0.0  # seconds for others to be done with the GPU, which are not on its time

    def hear(self, message: dict[str, Any]) -> None:
        """Take an event or the result out of a message of the child."""
        if "event" in message:
            if message["event"] == "progress":
                self.stage = message["data"].get("message") or message["data"].get("stage", "")
            elif message["event"] == "waiting":
                self.waited += message["data"]["seconds"]
            self.on_event(message["event"], message["data"])
        elif self.answer.done():
            return
        elif "error" in message:
            self.answer.set_exception(errors.from_json(message["error"]))
            self.answer.exception()  # it may never be asked for, after a cancel
        else:
            self.answer.set_result(message["result"])


class Zygote:
    """One warm process. ``on_death`` is called where it ends though it could serve."""

    def __init__(self, role: str, control: socket.socket, on_death: Callable[[], None]) -> None:
        self.role = role
        self.on_death = on_death
        self.control = control
        self.ready = asyncio.get_running_loop().create_future()
        self.children: dict[int, Child] = {}
        self.keys = itertools.count(1)
        control.setblocking(False)
        asyncio.get_running_loop().add_reader(control, self._hear)

    def _hear(self) -> None:
        try:
            data = self.control.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._gone()
            return
        message = json.loads(data)
        if "failed" in message:
            self._fail(errors.from_json(message["failed"]))
        elif "ready" in message and not self.ready.done():
            self.ready.set_result(message["ready"])
        elif "exited" in message:
            child = self.children.pop(message["exited"], None)
            if child and not child.exited.done():
                child.exited.set_result(message["status"])

    def _fail(self, error: errors.UserError) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()

    def _gone(self) -> None:
        """The zygote itself died: nothing can be served any more, which the server must see as a dead worker."""
        asyncio.get_running_loop().remove_reader(self.control)
        self._fail(errors.WorkerDied(detail=f"its {self.role} process ended during start-up"))
        for child in self.children.values():
            if not child.exited.done():
                child.exited.set_result(9)
        self.children.clear()
        if self.ready.exception() is None:
            print(f"{child_processes.ENDING}one of its processes ended", file=sys.stderr, flush=True)
            self.on_death()

    def start(
        self,
        task: str,
        params: dict[str, Any],
        on_event: Callable[[str, Any], None],
        own: Sequence[socket.socket] = (),
    ) -> tuple[int, Child]:
        """Fork a child for ``task``, which gets ``own``."""
        key = next(self.keys)
        child = self.children[key] = Child(on_event)
        parameters = os.memfd_create("parameters")
        data = json.dumps(params).encode()
        while data:
            data = data[os.write(parameters, data) :]
        answers, answers_end = os.pipe()
        stderr, stderr_end = os.pipe()
        read_lines(answers, lambda line: _hear_line(child, line), lambda: child.drained.set_result(None))
        read_lines(stderr, lambda line: _note(child, line), lambda: None, longest=_LINE)
        message = json.dumps({"start": key, "task": task}).encode()
        try:
            socket.send_fds(
                self.control, [message], [parameters, answers_end, stderr_end, *(one.fileno() for one in own)]
            )
        finally:
            for fd in (parameters, answers_end, stderr_end):
                os.close(fd)
        return key, child

    def kill(self, key: int) -> None:
        """Ask the warm process to end the child of that key, with all below it."""
        with contextlib.suppress(OSError):
            self.control.send(json.dumps({"kill": key}).encode())

    async def run(
        self,
        task: str,
        params: dict[str, Any],
        on_event: Callable[[str, Any], None],
        seconds: float | None,
        own: Sequence[socket.socket] = (),
    ) -> Any:
        """The result of ``task`` in a child of its own; the child is gone when this returns, raises or is cancelled.

        ``own``: sockets that the child gets, and that are closed here. ``seconds``: its limit, without what it says that it waited;
        None: as long as this is awaited.

        Raises:
            UserError: the task's own.
            WorkerDied: the child ended; with the signal and the last line of its standard error.
            WorkerTimedOut: it took longer than ``seconds``.
        """
        try:
            await asyncio.shield(self.ready)
            key, child = self.start(task, params, on_event, own)
        finally:
            for one in own:
                one.close()
        try:
            await _ended(child, seconds)
            if not child.answer.done():
                await child.drained
            if child.answer.done():
                return child.answer.result()
            raise errors.WorkerDied(detail=_how(child))
        finally:
            if not child.exited.done():
                self.kill(key)
                await asyncio.shield(asyncio.wait({child.exited}, timeout=5))


async def _ended(child: Child, seconds: float | None) -> None:
    """Wait until the child has answered or ended.

    Raises:
        WorkerTimedOut: it took longer than ``seconds``, without what it waited for the GPU.
    """
    began = time.monotonic()
    while True:
        left = None if seconds is None else began + seconds + child.waited - time.monotonic()
        done, _ = await asyncio.wait({child.answer, child.exited}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if done:
            return
        if seconds is not None and time.monotonic() >= began + seconds + child.waited:
            raise errors.WorkerTimedOut(seconds=seconds, stage=child.stage)


def _how(child: Child) -> str:
    """How a child ended, with the last line it wrote, if any."""
    how = exit_reasons.with_want_of_memory(child_processes.describe(child.exited.result()), child.out_of_memory)
    last = next((_text(line) for line in reversed(child.stderr) if line.strip()), "")
    return f"{how} while {child.stage}" + (f"; its last words: {last.strip()[:300]}" if last else "")


def _hear_line(child: Child, line: bytes) -> None:
    try:
        child.hear(json.loads(line))
    except ValueError:
        _note(child, line)


def _note(child: Child, line: bytes) -> None:
    """Keep a line and pass it on, as long as it is not too much."""
    child.stderr.append(line[:_LINE])
    before, child.noted = child.noted, child.noted + len(line) + 1
    if child.noted <= _LOG:
        print(_text(line), file=sys.stderr, flush=True)
    elif before <= _LOG:
        print("kernel-lsp worker: it says too much; the rest is left out", file=sys.stderr, flush=True)


def _text(line: bytes) -> str:
    """A line for people. A candidate may have written it: what would move a terminal's cursor is taken out."""
    return "".join(c if c.isprintable() or c == "\t" else "�" for c in line[:_LINE].decode("utf-8", "replace"))


def read_lines(
    fd: int, on_line: Callable[[bytes], None], on_end: Callable[[], None], longest: int | None = None
) -> None:
    """Call ``on_line`` for every line that arrives on ``fd``, ``on_end`` at its end; closes ``fd`` then.

    A line that is longer than ``longest`` is cut.
    """
    loop = asyncio.get_running_loop()
    os.set_blocking(fd, False)
    rest = bytearray()
    cut = False  # the beginning of the line that arrives has been handed on

    def ready() -> None:
        nonlocal cut
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *ends, last = data.split(b"\n")
        for end in ends:
            rest.extend(end)
            if rest.strip() and not cut:
                on_line(bytes(rest))
            rest.clear()
            cut = False
        rest.extend(last)
        if longest is not None and len(rest) > longest:
            if not cut:
                on_line(bytes(rest[:longest]))
            rest.clear()
            cut = True
        if not data:
            loop.remove_reader(fd)
            os.close(fd)
            if rest and not cut:
                on_line(bytes(rest))
            on_end()

    loop.add_reader(fd, ready)
