"""Removing old verdicts, and what belongs to them alone. The latest of each class stays, on each device and under each setting ``bounds`` and ``precision``."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.store import database

# Numbered from the latest on, by class (whatever it was like), device, machine and setting ``bounds`` and ``precision``.
_REMOVED = """
delete from verdicts where id in (
    select id from (
        select v.id, v.reached_at, row_number() over (
            partition by t.root, t.project, t.file, t.class, iif(t.file = '', t.fingerprint, ''), v.device, v.here, v.bounds, v.precision
            order by v.reached_at desc, v.rowid desc
        ) as number
        from verdicts v join targets t on t.id = v.target
    ) where number > ? and reached_at < ?
)
"""
_ORPHAN_KERNELS = "delete from kernels where body not in (select body from verdicts)"
_ORPHANS = (
    "delete from measurements where verdict not in (select id from verdicts)",
    "delete from verdict_graphs where verdict not in (select id from verdicts)",
    "delete from graphs where id not in (select graph from verdict_graphs)",
    "delete from targets where id not in (select target from verdicts)",
    "delete from sessions where id not in (select session from verdicts)",
)


@dataclass
class Pruned:
    """How many rows were removed."""

    verdicts: int = 0
    kernels: int = 0
    baselines: int = 0


def prune(path: Path, days: float | None, keep: int | None) -> Pruned:
    """Remove every verdict older than ``days`` that is none of the latest ``keep`` of its class, device and setting ``bounds`` and ``precision``.

    Args:
        days: None: of any age.
        keep: None: the latest one.

    Raises:
        StoreUnusable: it cannot be written.
    """
    before = "9999"
    if days is not None:
        now = datetime.datetime.now(datetime.UTC)
        # The calendar begins in the year 1: no verdict is older.
        days = min(days, (now - datetime.datetime(1, 1, 2, tzinfo=datetime.UTC)).days)
        before = (now - datetime.timedelta(days=days)).isoformat(timespec="seconds")
    pruned = Pruned()
    if not path.is_file():
        return pruned
    with database.writing(path) as connection:
        pruned.verdicts = connection.execute(_REMOVED, (max(keep or 1, 1), before)).rowcount
        pruned.kernels = connection.execute(_ORPHAN_KERNELS).rowcount
        for statement in _ORPHANS:
            connection.execute(statement)
        if days is not None:
            query = "delete from baselines where measured_at < ?"
            pruned.baselines = connection.execute(query, (before,)).rowcount
    _give_back(path)
    return pruned


def _give_back(path: Path) -> None:
    """Let the file shrink. Where another process holds it, it shrinks another time."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(database.connect(path)) as connection:
        connection.execute("vacuum")
        connection.execute("pragma wal_checkpoint(truncate)")
