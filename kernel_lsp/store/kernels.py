"""The bodies of kernel files, by their hash: what was validated can be read again, and put back."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.store import database


@dataclass(frozen=True)
class Kernel:
    """A kernel file without its header. ``body`` is the hash of ``source``."""

    body: str
    source: str
    generator: str = ""
    note: str = ""
    variant: str = ""


def keep(connection: sqlite3.Connection, kernel: Kernel) -> bool:
    """Whether it was not there yet."""
    row = (kernel.body, kernel.source, kernel.generator, kernel.note, kernel.variant)
    return connection.execute("insert or ignore into kernels values (?, ?, ?, ?, ?)", row).rowcount == 1


def find(body: str, path: Path | None) -> Kernel | None:
    """The kernel with this hash; None where it is not kept.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        if connection is None:
            return None
        row = connection.execute("select * from kernels where body = ?", (body,)).fetchone()
        return Kernel(*row) if row is not None else None
