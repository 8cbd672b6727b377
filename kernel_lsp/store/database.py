"""The one SQLite file of a user, which any number of processes read and write at once."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

VARIABLE = "KERNEL_LSP_STORE"  # the file to use; empty: none
VERSION = 1  # PRAGMA user_version; a table that older versions do not know needs no new one
BUSY = 5.0  # seconds to wait for another process; a write takes milliseconds
BUSY_READING = 1.0  # a reader waits for a writer only where there is no write-ahead log


def default_path() -> Path | None:
    """The user's own file, or the one that KERNEL_LSP_STORE names; None where that is empty."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named).expanduser() if named else None
    import platformdirs  # a name given by the environment needs no platform's conventions

    return Path(platformdirs.user_data_dir("kernel-lsp", appauthor=False)) / "store.sqlite"


def connect(path: Path, tables: Sequence[str]) -> sqlite3.Connection:
    """An open database with these tables. Raises sqlite3.Error, also where a newer kernel-lsp has changed it."""
    connection = sqlite3.connect(path, timeout=BUSY, check_same_thread=False)
    try:
        _write_ahead(connection)
        connection.execute("pragma synchronous = normal")  # with WAL a crash may cost the last rows, never the file
        with connection:
            connection.execute("begin immediate")  # two processes that make the tables wait for one another
            version = _known_version(connection)
            for table in tables:
                connection.execute(table)
            if version < VERSION:
                connection.execute(f"pragma user_version = {VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection | None:
    """The database as it is, for reading; None where there is none. Raises sqlite3.Error as ``connect`` does."""
    if not path.is_file():
        return None
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=BUSY_READING)
    try:
        _known_version(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether anybody has made this table yet."""
    return bool(connection.execute("select 1 from sqlite_master where type = 'table' and name = ?", [name]).fetchone())


def _known_version(connection: sqlite3.Connection) -> int:
    version = int(connection.execute("pragma user_version").fetchone()[0])
    if version > VERSION:
        raise sqlite3.DatabaseError(f"it is of version {version}, this kernel-lsp knows {VERSION}")
    return version


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Readers and one writer at once. Changing to it does not wait for others by itself, so that is tried again."""
    until = time.monotonic() + BUSY
    while connection.execute("pragma journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
        else:
            return  # some file systems have no WAL: then the old journal it is
        time.sleep(0.02)
