"""The devices that the worker of an interpreter named last: an editor asks for verdicts before there is a worker."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from kernel_lsp.store import database
from kernel_lsp.store.sessions import now


def keep_devices(command: list[str], devices: list[Any], path: Path | None) -> None:
    """Remember the devices, as JSON data, that the worker of an interpreter named.

    Raises:
        StoreUnusable: it cannot be written.
    """
    if path is None:
        return
    row = (json.dumps(command), json.dumps(devices), now())
    with database.writing(path) as connection:
        connection.execute("insert or replace into environments values (?, ?, ?)", row)


def find_devices(command: list[str], path: Path | None) -> list[Any]:
    """The devices that the worker of an interpreter named last; none where it never ran.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        return devices_of(connection, command) if connection is not None else []


def devices_of(connection: sqlite3.Connection, command: list[str]) -> list[Any]:
    """What ``find_devices`` finds."""
    query = "select devices from environments where command = ?"
    row = connection.execute(query, (json.dumps(command),)).fetchone()
    with contextlib.suppress(ValueError, TypeError):
        devices = json.loads(row[0]) if row is not None else []
        return devices if isinstance(devices, list) else []
    return []
