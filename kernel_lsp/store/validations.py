"""What was validated on this machine: the record that what a kernel file says of itself is held against.

A header is text that anyone can write, and so is a file to import. A verdict counts as reached here only where this
machine reached it, for exactly this class, body, device, versions and settings ``bounds`` and ``precision``; the latest such verdict counts.
A body that a formatter changed counts as the one before: where a text was never validated, that of another one with the same syntax tree is looked for.
Each function opens the file, does one short thing and closes it again.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_lsp import __version__, kernel_file, schema
from kernel_lsp.code_hash import tree_hash
from kernel_lsp.device_choice import pick_device
from kernel_lsp.store import database, kernels, sessions, targets, verdicts
from kernel_lsp.store.changes import changed_since
from kernel_lsp.store.environments import devices_of
from kernel_lsp.store.graphs import Graph
from kernel_lsp.store.kernels import Kernel
from kernel_lsp.store.sessions import now
from kernel_lsp.store.targets import Target
from kernel_lsp.store.verdicts import Row
from kernel_lsp.why_eager import screened

__all__ = ["About", "Key", "Known", "Validation", "find", "keep", "key_for", "known_of", "look_up", "now"]

# by what code could tell texts with one syntax tree apart: docstrings are compared without their layout, lines not at all
_READS_ITS_TEXT = re.compile(r"__doc__|__code__|__file__|lineno|linecache|inspect|traceback|_getframe|getdoc|getattr")

# Left to itself SQLite takes an index that is in the order of time, and reads every verdict of the class.
_NEWEST = """
select rowid, reached_at from verdicts indexed by {index}
where target = ? and body = ? and here = 1 {more} order by reached_at desc, rowid desc limit 1
"""


@dataclass(frozen=True)
class Key:
    """What a verdict holds for. Nothing of it is taken from a header."""

    fingerprint: str  # of the class as it is
    body: str  # kernel_file.body_hash of the body as it is
    device: str  # its name
    torch: str
    triton: str
    version: str  # of kernel-lsp
    driver: str = ""  # empty without a GPU
    bounds: str = "trust"  # the setting: whether it has to raise where an index is out of range
    precision: str = "strict"  # the setting: what float32 products may be off by


@dataclass
class Validation:
    """A verdict that was reached on this machine, and what was measured with it."""

    verdict: schema.Verdict
    measurement: schema.Measurement | None
    device: schema.Device | None
    validated_at: str  # ISO 8601, UTC


@dataclass
class About:
    """What history keeps beside a validation. ``source``: the body of the kernel file."""

    target: Target | None = None
    source: str = ""
    generator: str = ""
    note: str = ""
    variant: str = ""
    thorough: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    graph: Graph | None = None


@dataclass
class Known:
    """What this machine knows of a class and a body.

    Attributes:
        valid: what it found with the device, the versions and the settings ``bounds`` and ``precision`` of now.
        before: where there is none, the latest that it found with others.
        changed: what is another now: "with torch 2.11.0 before; now 2.13.0".
        earlier: where there is none of these, the latest that it found for the body and an earlier text of the class.
    """

    valid: Validation | None = None
    before: Validation | None = None
    changed: str = ""
    earlier: Validation | None = None


def key_for(
    device: schema.Device | None, fingerprint: str, body: str, bounds: str, precision: str = "strict"
) -> Key | None:
    """The key of a class and a body (their hashes) on a device under two settings; None where any of it is not known."""
    if device is None or not (fingerprint and body and device.name and device.torch and device.triton):
        return None
    versions = device.torch, device.triton, __version__, device.driver
    return Key(fingerprint, body, device.name, *versions, bounds, precision)


def keep(key: Key, validation: Validation, path: Path | None, about: About | None = None) -> None:
    """Remember a validation. Those of the same key before it stay as history. ``path`` None: keep nothing.

    Raises:
        StoreUnusable: it cannot be written.
    """
    if path is None:
        return
    about = about or About()
    target = dataclasses.replace(about.target or Target(""), fingerprint=key.fingerprint)
    row = Row(
        dataclasses.replace(sessions.current(), version=key.version),
        target,
        *(key.body, key.device, key.driver, key.torch, key.triton),
        verdict=validation.verdict,
        reached_at=validation.validated_at,
        thorough=about.thorough,
        measurement=validation.measurement,
        ran_on=validation.device,
        settings=about.settings,
        bounds=key.bounds,
        precision=key.precision,
        graph=about.graph,
    )
    with database.writing(path) as connection:
        if about.source and kernel_file.body_hash(about.source) == key.body:
            kernels.keep(connection, Kernel(key.body, about.source, about.generator, about.note, about.variant))
        verdicts.keep(connection, row, here=True)


def find(key: Key, path: Path | None) -> Validation | None:
    """The latest validation of exactly this key; None where there is none, or its row is damaged.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        return _find(connection, key)[0] if connection is not None else None


def look_up(
    command: list[str],
    wanted: str,
    fingerprint: str,
    body: str,
    bounds: str,
    path: Path | None,
    precision: str = "strict",
    source: str = "",
) -> Known:
    """What is known where no worker runs: for the device and versions that the last one named, under the settings of now.

    Args:
        command: of the interpreter whose worker would run.
        wanted: the setting ``device``.
        bounds: the setting of this name.
        precision: the setting that the kernel file names.
        source: the text of the body, where one of another layout is to count, too.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        if connection is None:
            return Known()
        try:
            device = pick_device({"devices": devices_of(connection, command)}, wanted)
        except (TypeError, AttributeError, ValueError):  # not what a worker says
            device = None
        ids = targets.of_fingerprint(connection, fingerprint)
        return _known(connection, key_for(device, fingerprint, body, bounds, precision), ids, body, source)


def known_of(key: Key, path: Path | None, source: str, place: tuple[Path, Path | None, str]) -> Known:
    """What is known of a class and a body with this text.

    Args:
        key: of the class and the body as they are.
        path: the file of the store.
        source: the text of the body.
        place: the class's file, its project's folder and its name: for what its earlier texts were validated with.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        if connection is None:
            return Known()
        ids = targets.of_fingerprint(connection, key.fingerprint)
        known = _known(connection, key, ids, key.body, source)
        if known != Known():
            return known
        earlier = [one for one in targets.of_class(connection, *place) if one not in ids]
        return Known(earlier=_known(connection, None, earlier, key.body, source).before)


def _known(connection: sqlite3.Connection, key: Key | None, ids: list[int], body: str, source: str) -> Known:
    """What is known of a body with classes that are rows of ``targets``."""
    bodies = [body]
    found = _find_in(connection, ids, bodies, key)[0] if key is not None else None
    if found is None and source:
        bodies += _same_code(connection, ids, source)
        found = _find_in(connection, ids, bodies, key)[0] if key is not None and len(bodies) > 1 else None
    if found is not None:
        return Known(found)
    before, then = _find_in(connection, ids, bodies, None)
    if before is None or then is None:
        return Known()
    return Known(None, before, changed_since(vars(then), vars(key) if key is not None else None))


def _same_code(connection: sqlite3.Connection, ids: list[int], source: str) -> list[str]:
    """The bodies with the syntax tree of ``source`` that were validated for these classes.

    None where the code may read its own text: docstrings and numbers of lines are not compared.
    """
    wanted = "" if _READS_ITS_TEXT.search(screened(source)) else tree_hash(source)
    if not wanted:
        return []
    query = "select distinct k.body, k.source from verdicts v join kernels k on k.body = v.body where v.target = ? and v.here = 1"
    rows = {row for target in ids for row in connection.execute(query, (target,))}
    return [body for body, text in rows if tree_hash(text) == wanted]


def _find(connection: sqlite3.Connection, key: Key) -> tuple[Validation | None, Key | None]:
    return _find_in(connection, targets.of_fingerprint(connection, key.fingerprint), [key.body], key)


def _find_in(
    connection: sqlite3.Connection, ids: list[int], bodies: list[str], key: Key | None
) -> tuple[Validation | None, Key | None]:
    """The latest validation, and what it held for. ``key`` None: with whatever device, versions and settings."""
    any_device = key is None
    columns = () if any_device else ("device", "torch", "triton", "version", "driver", "bounds", "precision")
    index = "verdicts_by_body" if any_device else "verdicts_by_key"
    query = _NEWEST.format(index=index, more="".join(f" and {name} = ?" for name in columns))
    values = [getattr(key, name) for name in columns]
    newest = []
    for target, body in itertools.product(ids, bodies):
        newest += connection.execute(query, (target, body, *values)).fetchall()
    if not newest:
        return None, None
    rowid, _ = max(newest, key=lambda row: (row[1], row[0]))
    query = """
        select v.verdict, m.measurement, v.ran_on, v.reached_at, fingerprint, body, device, torch, triton, version, driver, bounds, precision
        from verdicts v join targets t on t.id = v.target left join measurements m on m.verdict = v.id where v.rowid = ?
    """
    row = connection.execute(query, (rowid,)).fetchone()
    return _validation(*row[:4]), Key(*row[4:])


def _validation(verdict: str, measurement: str | None, ran_on: str, reached_at: str) -> Validation | None:
    try:
        found = schema.from_json(schema.Verdict, json.loads(verdict))
        times = schema.from_json(schema.Measurement, json.loads(measurement or "null"))
        device = schema.from_json(schema.Device, json.loads(ran_on))
    except (ValueError, TypeError, AttributeError):
        return None
    return Validation(found, times, device, reached_at) if found is not None else None
