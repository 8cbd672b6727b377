"""The one SQLite file of a user, which any number of processes read and write at once: where it is, how it is opened.

Every other file of this room is about one table or one purpose. They open the file with ``reading`` and ``writing``.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from kernel_lsp.errors import StoreUnusable
from kernel_lsp.store import migrations

VARIABLE = "KERNEL_LSP_STORE"  # the file to use; empty: none
VERSION = migrations.VERSION
NONE = "none"  # the setting ``store`` that turns it off
BUSY = 5.0  # seconds to wait for another process; a write takes milliseconds
BUSY_READING = 1.0  # a reader waits for a writer only where there is no write-ahead log


def default_path() -> Path | None:
    """The user's own file, or the one that KERNEL_LSP_STORE names; None where that is empty."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named).expanduser() if named else None
    import platformdirs  # a name given by the environment needs no platform's conventions

    return Path(platformdirs.user_data_dir("kernel-lsp", appauthor=False)) / "store.sqlite"


def path_for(setting: str, root: Path | None) -> Path | None:
    """The file that the setting ``store`` means, unless KERNEL_LSP_STORE names one; None: nothing is kept.

    Args:
        setting: a file, relative to ``root``; "none"; empty: the user's own file.
        root: the folder of pyproject.toml.
    """
    if not setting or VARIABLE in os.environ:
        return default_path()
    return None if setting == NONE else Path(os.path.abspath((root or Path.cwd()) / Path(setting).expanduser()))


def connect(path: Path) -> sqlite3.Connection:
    """An open database with every table.

    Raises:
        sqlite3.Error: it cannot be opened, or a newer kernel-lsp has changed it.
    """
    connection = sqlite3.connect(path, timeout=BUSY, check_same_thread=False)
    try:
        _write_ahead(connection)
        connection.execute("pragma synchronous = normal")  # with WAL a crash may cost the last rows, never the file
        migrations.migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection | None:
    """The database for reading; None where there is none. One of an earlier version is migrated first.

    Raises:
        sqlite3.Error: as ``connect``.
    """
    if not path.is_file():
        return None
    connection = _open_to_read(path)
    try:
        version = migrations.known_version(connection)
    except BaseException:
        connection.close()
        raise
    if version == VERSION:
        return connection
    connection.close()
    if version == 0:  # an empty file: nothing has been written
        return None
    connect(path).close()
    return _open_to_read(path)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection in a transaction, which is committed at the end, or undone where something is raised.

    Raises:
        StoreUnusable: it cannot be written.
    """
    with said(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(connect(path)) as connection, connection:
            connection.execute("begin immediate")
            yield connection


@contextlib.contextmanager
def reading(path: Path | None) -> Iterator[sqlite3.Connection | None]:
    """A connection that cannot write; None where there is no store, or no file yet.

    Raises:
        StoreUnusable: it cannot be read.
    """
    if path is None:
        yield None
        return
    with said(path, "read"):
        connection = connect_to_read(path)
        if connection is None:
            yield None
            return
        with contextlib.closing(connection):
            yield connection


@contextlib.contextmanager
def said(path: Path, done: str) -> Iterator[None]:
    """What SQLite or the system says becomes StoreUnusable. ``done``: what could not be done: "read", "written".

    Raises:
        StoreUnusable: SQLite or the system raised within the context.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreUnusable(path=str(path), done=done, detail=error) from error


def _open_to_read(path: Path) -> sqlite3.Connection:
    # A file with a write-ahead log is read through two more files beside it. In a folder that cannot be written they
    # cannot be made; no other process writes there, so the file may be read as one that does not change.
    frozen = not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
    mode = "mode=ro&immutable=1" if frozen else "mode=ro"
    return sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=BUSY_READING)


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
