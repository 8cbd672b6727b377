"""What the store holds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kernel_lsp.store import database

TABLES = ("targets", "kernels", "verdicts", "measurements", "graphs", "sessions", "baselines", "environments")


@dataclass
class Info:
    """``bytes`` counts the write-ahead log, too. A file that is not there yet holds nothing, and has version 0."""

    path: str
    version: int = 0
    bytes: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    imported: int = 0  # of the verdicts
    oldest: str = ""  # verdict; ISO 8601, UTC
    newest: str = ""


def info(path: Path) -> Info:
    """What the file at ``path`` holds.

    Raises:
        StoreUnusable: it cannot be read.
    """
    found = Info(str(path))
    with database.reading(path) as connection:
        if connection is None:
            return found
        found.version = database.VERSION
        for file in (path, path.with_name(f"{path.name}-wal")):
            found.bytes += file.stat().st_size if file.exists() else 0
        for table in TABLES:
            (found.rows[table],) = connection.execute(f"select count(*) from {table}").fetchone()
        query = "select coalesce(sum(not here), 0), coalesce(min(reached_at), ''), coalesce(max(reached_at), '') from verdicts"
        found.imported, found.oldest, found.newest = connection.execute(query).fetchone()
    return found
