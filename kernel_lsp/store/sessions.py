"""Which process wrote: one session a process, named by the command that runs in it."""

from __future__ import annotations

import datetime
import functools
import hashlib
import os
import socket
import sqlite3
from dataclasses import dataclass

from kernel_lsp import __version__

_command = ""


@dataclass(frozen=True)
class Session:
    """``machine`` is a short id that does not tell the machine's name. ``began_at``: ISO 8601, UTC."""

    id: str
    command: str  # "generate", "serve", …; "" where it was not said
    version: str  # of kernel-lsp
    machine: str
    process: int
    began_at: str


def name(command: str) -> None:
    """Say which command runs in this process, before anything is written."""
    global _command
    _command = command


def current() -> Session:
    """The session of this process; a forked child gets one of its own."""
    return _session(os.getpid(), _command)


@functools.cache
def _session(process: int, command: str) -> Session:
    return Session(os.urandom(16).hex(), command, __version__, machine(), process, now())


def machine() -> str:
    """A short id of this machine that does not tell its name."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def now() -> str:
    """ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def keep(connection: sqlite3.Connection, session: Session) -> None:
    """Write a session, unless the store has it; the caller's transaction holds it."""
    row = (session.id, session.command, session.version, session.machine, session.process, session.began_at)
    connection.execute("insert or ignore into sessions values (?, ?, ?, ?, ?, ?)", row)
