"""Every verdict on a class over time, with its figures and what changed from one to the next."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_lsp.store import database, targets
from kernel_lsp.store.changes import Change, changes

_COLUMNS = """
v.id, v.reached_at, t.fingerprint, v.body, coalesce(k.generator, ''), v.device, v.driver, v.torch, v.triton, v.version,
s.command, s.machine, v.here, v.status, v.mode, v.thorough, v.passed, v.failed, v.skipped, v.error, v.eager_error,
m.eager, m.compiled, m.kernel, m.over_eager, m.over_compiled, coalesce(m.inputs, ''),
v.bounds, v.precision, case when v.status = 'ok' then '' else v.verdict end
"""
# The rows are chosen from an index alone, before anything of them is read.
_QUERY = """
select {columns} from verdicts v join targets t on t.id = v.target join sessions s on s.id = v.session
left join kernels k on k.body = v.body left join measurements m on m.verdict = v.id
where v.rowid in (
    select rowid from verdicts where target in ({places}) order by reached_at desc, rowid desc limit ?
) order by v.reached_at, v.rowid
"""


@dataclass
class Entry:
    """One verdict. Times are medians in microseconds at the example's shapes; what was not measured is None.

    Attributes:
        here: reached on this machine; else it was imported.
        changed: what is another than in the entry before; empty in the first.
    """

    id: str
    reached_at: str  # ISO 8601, UTC
    fingerprint: str  # of the class
    body: str  # hash of the kernel
    generator: str
    device: str
    driver: str
    torch: str
    triton: str
    version: str  # of kernel-lsp
    command: str
    machine: str
    here: bool
    status: str
    mode: str
    thorough: bool
    passed: int
    failed: int
    skipped: int
    error: float | None
    eager_error: float | None
    eager: float | None
    compiled: float | None
    kernel: float | None
    over_eager: float | None
    over_compiled: float | None
    inputs: str
    bounds: str  # the setting
    precision: str  # the setting
    reason: str = ""
    changed: list[Change] = field(default_factory=list)


@dataclass
class History:
    """Of one class. ``entries``: the latest, the oldest of them first; ``earlier``: whether there are more."""

    file: str  # absolute
    class_name: str
    entries: list[Entry]
    earlier: bool = False


def of_class(
    path: Path | None, file: Path, root: Path | None, class_name: str, last: int, fingerprint: str = ""
) -> History:
    """The last so many verdicts on a class. ``path``: of the store; ``fingerprint``: of the class as it is now.

    Raises:
        StoreUnusable: the store cannot be read.
    """
    history = History(str(file.absolute()), class_name, [])
    with database.reading(path) as connection:
        if connection is None:
            return history
        found = targets.of_class(connection, file, root, class_name, fingerprint)
        query = _QUERY.format(columns=_COLUMNS, places=", ".join("?" * len(found)))
        rows = connection.execute(query, (*found, last + 1)).fetchall()
    entries = [_entry(row) for row in rows]
    for before, now in itertools.pairwise(entries):
        now.changed = changes(vars(before), vars(now))
    history.entries, history.earlier = entries[-last:], len(entries) > last
    return history


def classes_under(path: Path | None, place: Path, root: Path | None) -> list[tuple[Path, str]]:
    """The file and the name of every class at or under a file or folder that the store knows.

    Raises:
        StoreUnusable: the store cannot be read.
    """
    with database.reading(path) as connection:
        found = targets.classes_under(connection, place, root) if connection is not None else []
    return [(Path(file), class_name) for file, class_name in found]


def to_json(history: History) -> dict[str, Any]:
    """As docs/store.md says."""
    return dataclasses.asdict(history)


def _entry(row: tuple[Any, ...]) -> Entry:
    *values, verdict = row
    entry = Entry(*values)
    entry.here, entry.thorough = bool(entry.here), bool(entry.thorough)
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        entry.reason = str(json.loads(verdict).get("reason", "")) if verdict else ""
    return entry
