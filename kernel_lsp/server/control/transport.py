"""Reading, writing and ending: standard input and output, or TCP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import BinaryIO

from .language_server import Server

log = logging.getLogger("kernel_lsp.server")

INTERRUPTED = 130  # exit status
PARENT_SECONDS = 1.0  # between two looks at whether the client still lives


def serve_stdio() -> int:
    """Serve the client on standard input and output until it says exit, goes away or dies; the exit status.

    Both are moved aside first: a stray print would otherwise end up between two messages.
    """
    if os.isatty(0):
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # nothing has begun that would have to be ended
        print(
            "kernel-lsp serve waits for an editor's messages on standard input (language server protocol). Editors start it "
            "themselves: docs/editors.md. Ctrl-C ends it; `kernel-lsp --help` lists the commands for a terminal.",
            file=sys.stderr,
            flush=True,
        )
    stdin = os.fdopen(os.dup(0), "rb")
    stdout = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    status = asyncio.run(_serve_pipe(stdin, stdout))
    sys.stderr.flush()
    os._exit(status)  # the reading thread may wait for input that never comes


async def _serve_pipe(stdin: BinaryIO, stdout: BinaryIO) -> int:
    server = Server()
    server.protocol.set_writer(_PipeWriter(stdout, server))
    loop = asyncio.get_running_loop()
    # A thread of our own: pygls' pool is shared with handlers, and its exit waits for the reader.
    threading.Thread(target=_read, args=(stdin, server, loop), name="reader", daemon=True).start()
    watch = loop.create_task(watch_parent(server))
    await server.stopped.wait()
    watch.cancel()
    await server.closed()
    return server.status


class _PipeWriter:
    """Writes whole messages; a client that is gone ends the server instead of raising in every handler."""

    def __init__(self, stdout: BinaryIO, server: Server) -> None:
        self._stdout = stdout
        self._server = server

    def write(self, data: bytes) -> None:
        try:
            self._stdout.write(data)
            self._stdout.flush()
        except (BrokenPipeError, ConnectionError, ValueError):
            self._server.stopped.set()

    def close(self) -> None:
        self._stdout.close()


def _read(stdin: BinaryIO, server: Server, loop: asyncio.AbstractEventLoop) -> None:
    """The reading thread: one hop to the event loop a message."""
    try:
        while True:
            body = _read_message(stdin)
            if body is None:
                break
            loop.call_soon_threadsafe(_handle, server, body)
        loop.call_soon_threadsafe(server.stopped.set)  # end of input: the client is gone
    except (OSError, ValueError, RuntimeError):
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(server.stopped.set)


def _read_message(stdin: BinaryIO) -> bytes | None:
    length = 0
    while True:
        line = stdin.readline()
        if not line:
            return None
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":", 1)[1])
        elif not line.strip() and length:
            body = stdin.read(length)
            return body if len(body) == length else None


def _handle(server: Server, body: bytes) -> None:
    protocol = server.protocol
    try:
        message = json.loads(body, object_hook=protocol.structure_message)
    except Exception:
        log.exception("a message that cannot be read")
        _answer_unreadable(server, body)
        return
    try:
        protocol.handle_message(message)
    except Exception:
        log.exception("handling a message")


def _answer_unreadable(server: Server, body: bytes) -> None:
    """A request always gets an answer, even one that makes no sense."""
    try:
        message = json.loads(body)
        number = message.get("id")
        if number is not None and "method" in message:
            error = {"code": -32602, "message": "The parameters are not what the protocol says."}
            server.protocol._send_data({"jsonrpc": "2.0", "id": number, "error": error})
    except ValueError:
        error = {"code": -32700, "message": "Not JSON."}
        server.protocol._send_data({"jsonrpc": "2.0", "id": None, "error": error})


async def watch_parent(server: Server) -> None:
    """End when the client's process does, even if it left our input open.

    Only a process that is our ancestor is watched: the number that a client in a container or on another machine
    sends means some other process here. On Windows the end of the input has to do (``os.kill`` would kill).
    """
    if os.name != "posix":
        return
    watched: int | None = None
    while not server.stopped.is_set():
        await asyncio.sleep(PARENT_SECONDS)
        client = server.client.process_id
        if watched is None and client is not None and client in ancestors():
            watched = client
        if watched is not None and not _alive(watched):
            log.warning("the client (process %d) is gone", watched)
            server.stopped.set()


def ancestors() -> set[int]:
    """The processes above this one, as far as /proc tells; else the parent alone."""
    found: set[int] = set()
    pid = os.getppid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            break
        pid = int(stat.rpartition(")")[2].split()[1])
    return found


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:  # a zombie is dead, its parent has only not noticed
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def serve_tcp(host: str, port: int) -> int:
    """Serve clients on a port, each with a server of its own, until one says exit and no other is left."""
    return asyncio.run(_serve_tcp(host, port))


async def _serve_tcp(host: str, port: int) -> int:
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    active: set[Server] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = Server()
        active.add(server)
        server.protocol.set_writer(writer)  # type: ignore[arg-type]
        reading = asyncio.create_task(_read_stream(reader, server))
        exited = await _until_stopped(server)
        reading.cancel()
        await server.closed()
        active.discard(server)
        writer.close()
        if exited and not active and not done.done():
            done.set_result(server.status)

    listener = await asyncio.start_server(connected, host, port)
    for socket in listener.sockets:
        print("Listening on {}:{}".format(*socket.getsockname()[:2]), file=sys.stderr, flush=True)
    async with listener:
        return await done


async def _until_stopped(server: Server) -> bool:
    """Whether it was an exit notification (and not a lost connection) that ended the service."""
    await server.stopped.wait()
    return server.exited


async def _read_stream(reader: asyncio.StreamReader, server: Server) -> None:
    try:
        while True:
            length = 0
            while (line := await reader.readline()).strip() or not length:
                if not line:
                    return
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":", 1)[1])
            _handle(server, await reader.readexactly(length))
    except (OSError, ValueError, asyncio.IncompleteReadError):
        pass
    finally:
        server.stopped.set()


def set_up_logging(level: int) -> None:
    """To standard error. pygls logs every message body at INFO, so its loggers stay at WARNING whatever is asked."""
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.WARNING)
    logging.getLogger("kernel_lsp").setLevel(level)


def parse_address(text: str) -> tuple[str, int]:
    """``HOST:PORT``, ``:PORT`` or ``PORT``; without a host 127.0.0.1.

    Raises:
        ValueError: the port is no number.
    """
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)
