"""The schema, as the numbered steps that lead to it. A file is as many steps behind as its ``user_version`` says.

A step that was released is never changed: the next change of the schema is a step of its own at the end of ``STEPS``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable
from typing import Any

_BASELINES = """
create table if not exists baselines (
    device text not null, driver text not null, torch text not null, triton text not null,
    fingerprint text not null, inputs text not null, training integer not null, mode text not null,
    timing text not null, measured_at text not null, mark text not null,
    primary key (device, driver, torch, triton, fingerprint, inputs, training, mode)
) without rowid
"""
_ENVIRONMENTS = """
create table if not exists environments (
    command text not null primary key, devices text not null, seen_at text not null
) without rowid
"""
_VALIDATIONS = """
create table if not exists validations (
    fingerprint text not null, body text not null,
    device text not null, torch text not null, triton text not null, version text not null,
    status text not null, mode text not null, passed integer not null, checks integer not null,
    verdict text not null, measurement text not null, ran_on text not null, validated_at text not null,
    primary key (fingerprint, body, device, torch, triton, version)
) without rowid
"""
_HISTORY = (
    # A process that wrote: which command of which version, on which machine.
    """
    create table sessions (
        id text not null primary key, command text not null, version text not null, machine text not null,
        process integer not null, began_at text not null
    ) without rowid
    """,
    # A class as it was: a changed class has another fingerprint, and so another row. ``root`` is empty for what was
    # imported from another machine, ``file`` for what version 1 kept, which did not know it.
    """
    create table targets (
        id integer primary key, fingerprint text not null, class text not null, file text not null,
        root text not null, project text not null, unique (fingerprint, class, file, root, project)
    )
    """,
    "create index targets_by_file on targets (file, class)",
    # A kernel file without its header, by the hash of that.
    """
    create table kernels (
        body text not null primary key, source text not null, generator text not null, note text not null,
        variant text not null
    )
    """,
    # ``here``: reached on this machine, and not imported. The last two columns are long, and rarely read.
    """
    create table verdicts (
        id text not null primary key, session text not null, target integer not null, body text not null,
        here integer not null, device text not null, driver text not null, torch text not null, triton text not null,
        version text not null, status text not null, mode text not null, thorough integer not null,
        passed integer not null, failed integer not null, skipped integer not null, error real, eager_error real,
        reached_at text not null, ran_on text not null, verdict text not null
    )
    """,
    "create index verdicts_by_target on verdicts (target, reached_at)",
    "create index verdicts_by_body on verdicts (target, body, reached_at)",
    # Medians in microseconds at the example's shapes; the ratios are those of ``figures.speedups``.
    """
    create table measurements (
        verdict text not null primary key, eager real, compiled real, kernel real, over_eager real, over_compiled real,
        inputs text not null, settings text not null, measurement text not null
    )
    """,
)


_GRAPHS = (
    # What a class computes without names, and the names that it has. Lists and tables are JSON.
    """
    create table graphs (
        id integer primary key, graph text not null, fingerprint text not null,
        forward text not null, inputs text not null, state text not null, ops text not null
    )
    """,
    "create index graphs_by_graph on graphs (graph, fingerprint)",
    # Of the verdicts that found a kernel correct. What of a kernel depends on how it was validated stands here.
    """
    create table verdict_graphs (
        verdict text not null primary key, graph integer not null, pinned integer not null, bounds text not null
    ) without rowid
    """,
    "create index verdict_graphs_by_graph on verdict_graphs (graph)",
)


def _version_1(connection: sqlite3.Connection) -> None:
    """Each of its tables was made when it was first needed."""
    for table in (_VALIDATIONS, _ENVIRONMENTS, _BASELINES):
        connection.execute(table)


def _version_2(connection: sqlite3.Connection) -> None:
    """History: a validation is a new row, and no longer takes the place of the one before."""
    _version_1(connection)
    for statement in _HISTORY:
        connection.execute(statement)
    for row in connection.execute("select * from validations").fetchall():
        _take_over(connection, row)
    connection.execute("drop table validations")


def _version_3(connection: sqlite3.Connection) -> None:
    """Graphs: a kernel that was found correct is found again for another class that computes the same."""
    for statement in _GRAPHS:
        connection.execute(statement)


def _version_4(connection: sqlite3.Connection) -> None:
    """The setting ``bounds`` is part of what a verdict holds for. Of those before it is known from what they came with."""
    connection.execute("alter table verdicts add column bounds text not null default 'trust'")
    connection.execute(
        """
        update verdicts set bounds = 'check' where id in (select verdict from verdict_graphs where bounds = 'check')
        or id in (select verdict from measurements where settings like '%"bounds": "check"%')
        """
    )


def _version_5(connection: sqlite3.Connection) -> None:
    """A look-up reads an index alone, however often a kernel was validated before. A row of verdicts is long."""
    connection.execute(
        "create index verdicts_by_key on verdicts "
        "(target, body, here, device, torch, triton, version, driver, bounds, reached_at)"
    )


def _version_6(connection: sqlite3.Connection) -> None:
    """The setting ``precision`` is part of what a verdict holds for; those before were all strict."""
    connection.execute("alter table verdicts add column precision text not null default 'strict'")
    connection.execute("drop index verdicts_by_key")
    connection.execute(
        "create index verdicts_by_key on verdicts "
        "(target, body, here, device, torch, triton, version, driver, bounds, precision, reached_at)"
    )


def _take_over(connection: sqlite3.Connection, row: tuple[Any, ...]) -> None:
    """A validation of version 1. Of its session only the version of kernel-lsp is known, of its target no file."""
    fingerprint, body, device, torch, triton, version, status, mode, passed, checks = row[:10]
    verdict, measurement, ran_on, at = row[10:]
    session = f"version-1-{version}"
    connection.execute("insert or ignore into sessions values (?, '', ?, '', 0, ?)", (session, version, at))
    connection.execute(
        "insert or ignore into targets (fingerprint, class, file, root, project) values (?, '', '', '', '')",
        (fingerprint,),
    )
    where = "fingerprint = ? and class = '' and file = '' and root = '' and project = ''"
    (target,) = connection.execute(f"select id from targets where {where}", (fingerprint,)).fetchone()
    found, device_data = _read(verdict), _read(ran_on)
    driver = device_data.get("driver")
    skipped = found.get("skipped")
    name = hashlib.sha256("\n".join(map(str, (*row[:6], at))).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    kept = (
        *(name, session, target, body, 1, device, driver if isinstance(driver, str) else "", torch, triton, version),
        *(status, mode, 0, passed, checks - passed, len(skipped) if isinstance(skipped, list) else 0),
        *(_number(found.get("error")), _number(found.get("eager_error")), at, ran_on, verdict),
    )
    connection.execute(f"insert or ignore into verdicts values ({', '.join('?' * len(kept))})", kept)
    if measurement != "null":
        times = _read(measurement)
        shapes = times.get("shapes")
        medians = [_median(shapes, way) for way in ("eager", "compiled", "kernel")]
        eager, compiled, kernel = medians
        ratios = [other / kernel if other and kernel else None for other in (eager, compiled)]
        row = (name, *medians, *ratios, "", "{}", measurement)
        connection.execute(f"insert or ignore into measurements values ({', '.join('?' * len(row))})", row)


def _median(shapes: Any, way: str) -> float | None:
    """At the first of the shapes, the example's."""
    with contextlib.suppress(LookupError, TypeError, AttributeError):
        return _number(shapes[0][way]["median"])
    return None


def _read(text: Any) -> dict[str, Any]:
    """A row may be damaged: then nothing of it is known, and it is taken over as it is."""
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    *(_version_1, _version_2, _version_3),
    *(_version_4, _version_5, _version_6),
)
VERSION = len(STEPS)  # PRAGMA user_version


def migrate(connection: sqlite3.Connection) -> None:
    """Take the steps that a file lacks, all or none.

    Raises:
        sqlite3.Error: it cannot be written, or is another program's database.
    """
    if known_version(connection) == VERSION:
        return
    with connection:
        connection.execute("begin immediate")  # two processes that migrate wait for one another
        version = known_version(connection)
        for step in STEPS[version:]:
            step(connection)
        connection.execute(f"pragma user_version = {VERSION}")


def known_version(connection: sqlite3.Connection) -> int:
    """The version of a file that can be used; 0 for an empty one.

    Raises:
        sqlite3.DatabaseError: it is any other file.
    """
    version = int(connection.execute("pragma user_version").fetchone()[0])
    if version > VERSION:
        raise sqlite3.DatabaseError(f"it is of version {version}, this kernel-lsp knows {VERSION}")
    if version <= 0 and connection.execute("select 1 from sqlite_master").fetchone():
        raise sqlite3.DatabaseError("it is the database of another program")
    return version
