"""What was validated on this machine: the proof for what a kernel file says of itself.

A header is text that anyone can write. A verdict counts as reached here only where this table has it, for exactly this
class, body, device and versions. Each function opens the file, does one short thing and closes it again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_lsp import __version__, schema
from kernel_lsp.devices import pick_device
from kernel_lsp.errors import StoreUnusable
from kernel_lsp.store import database

_TABLES = (
    """
    create table if not exists validations (
        fingerprint text not null, body text not null,
        device text not null, torch text not null, triton text not null, version text not null,
        status text not null, mode text not null, passed integer not null, checks integer not null,
        verdict text not null, measurement text not null, ran_on text not null, validated_at text not null,
        primary key (fingerprint, body, device, torch, triton, version)
    ) without rowid
    """,
    """
    create table if not exists environments (
        command text not null primary key, devices text not null, seen_at text not null
    ) without rowid
    """,
)


@dataclass(frozen=True)
class Key:
    """What a verdict holds for. Nothing of it is taken from a header."""

    fingerprint: str  # of the class as it is
    body: str  # kernel_file.body_hash of the body as it is
    device: str  # its name
    torch: str
    triton: str
    version: str  # of kernel-lsp


@dataclass
class Validation:
    """A verdict that was reached on this machine, and what was measured with it."""

    verdict: schema.Verdict
    measurement: schema.Measurement | None
    device: schema.Device | None
    validated_at: str  # ISO 8601, UTC


def key_for(device: schema.Device | None, fingerprint: str, body: str) -> Key | None:
    """The key of a class and a body (their hashes) on a device; None where any of it is not known."""
    if device is None or not (fingerprint and body and device.name and device.torch and device.triton):
        return None
    return Key(fingerprint, body, device.name, device.torch, device.triton, __version__)


def keep(key: Key, validation: Validation, path: Path | None) -> None:
    """Remember a validation; a later one of the same key takes its place. ``path`` None: keep nothing.

    Raises:
        StoreUnusable: it cannot be written.
    """
    verdict = validation.verdict
    passed = sum(check.passed for check in verdict.checks)
    records = [_text(record) for record in (verdict, validation.measurement, validation.device)]
    row = (
        *dataclasses.astuple(key),
        *(verdict.status, verdict.mode, passed, len(verdict.checks)),
        *records,
        validation.validated_at,
    )
    _write(path, f"insert or replace into validations values ({', '.join('?' * len(row))})", row)


def find(key: Key, path: Path | None) -> Validation | None:
    """The validation of exactly this key; None where there is none, or its row is damaged.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    where = " and ".join(f"{field.name} = ?" for field in dataclasses.fields(Key))
    query = f"select verdict, measurement, ran_on, validated_at from validations where {where}"
    row = _read(path, "validations", query, dataclasses.astuple(key))
    if row is None:
        return None
    try:
        verdict, measurement, device = (
            schema.from_json(kind, json.loads(text))
            for kind, text in zip((schema.Verdict, schema.Measurement, schema.Device), row, strict=False)
        )
        return Validation(verdict, measurement, device, str(row[3])) if verdict is not None else None
    except (ValueError, TypeError, AttributeError):
        return None


def find_here(command: list[str], wanted: str, fingerprint: str, body: str, path: Path | None) -> Validation | None:
    """The validation that counts where no worker runs: for the device and versions that the last one named.

    Args:
        command: of the interpreter whose worker would run.
        wanted: the setting ``device``.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    devices = find_devices(command, path)
    try:
        device = pick_device({"devices": devices}, wanted)
    except (TypeError, AttributeError, ValueError):  # not what a worker says
        return None
    key = key_for(device, fingerprint, body)
    return find(key, path) if key is not None else None


def keep_devices(command: list[str], devices: list[Any], path: Path | None) -> None:
    """Remember the devices, as JSON data, that the worker of an interpreter named; an editor asks before there is one.

    Raises:
        StoreUnusable: it cannot be written.
    """
    row = (json.dumps(command), json.dumps(devices), now())
    _write(path, "insert or replace into environments values (?, ?, ?)", row)


def find_devices(command: list[str], path: Path | None) -> list[Any]:
    """The devices that the worker of an interpreter named last; none where it never ran.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    row = _read(path, "environments", "select devices from environments where command = ?", (json.dumps(command),))
    with contextlib.suppress(ValueError, TypeError):
        devices = json.loads(row[0]) if row is not None else []
        return devices if isinstance(devices, list) else []
    return []


def now() -> str:
    """ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _text(record: Any) -> str:
    return json.dumps(schema.to_json(record) if record is not None else None)


def _write(path: Path | None, statement: str, row: tuple[Any, ...]) -> None:
    if path is None:
        return
    with _said(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(database.connect(path, _TABLES)) as connection, connection:
            connection.execute(statement, row)


def _read(path: Path | None, table: str, query: str, values: tuple[Any, ...]) -> Any:
    """The first row, or None."""
    if path is None:
        return None
    with _said(path, "read"):
        connection = database.connect_to_read(path)
        if connection is None:
            return None
        with contextlib.closing(connection):
            return connection.execute(query, values).fetchone() if database.has_table(connection, table) else None


@contextlib.contextmanager
def _said(path: Path, done: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreUnusable(path=str(path), done=done, detail=error) from error
