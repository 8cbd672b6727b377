"""Kept baselines: times of eager and of torch.compile that need not be taken again on the same device and versions.

One SQLite file a user, which any number of processes use at once. It is a convenience: a database that is locked,
read-only, full or damaged is said once in the log, and the work goes on without it. A damaged file is left as it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import logging
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp import class_schema, schema
from kernel_lsp.store import database

_KEY = ("device", "driver", "torch", "triton", "fingerprint", "inputs", "training")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Key:
    """What a time depends on, but for the mode: "eager", "default", "reduce-overhead", "max-autotune"."""

    device: str  # its name
    driver: str
    torch: str
    triton: str
    fingerprint: str  # of the module
    inputs: str  # see ``inputs_with_strides``
    training: bool = False


@dataclass
class Kept:
    """One kept time."""

    timing: schema.Timing
    measured_at: str  # ISO 8601, UTC
    mark: str = ""  # "" for a time taken on this very device; else what it stands in for

    def said(self) -> str:
        """What ``ShapeMeasurement.kept`` says of it."""
        return self.mark or f"kept: measured {self.measured_at}"


class Store:
    """The kept baselines in one file, or nothing at all where ``path`` is None or the file cannot be used."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._writable = True
        self._lock = threading.Lock()  # jobs run in threads
        if path is not None:
            with self._unless_broken("opened"):
                path.parent.mkdir(parents=True, exist_ok=True)
                self._connection = database.connect(path)

    @property
    def usable(self) -> bool:
        """Whether there is an open file."""
        return self._connection is not None

    def keep(self, key: Key, mode: str, timing: schema.Timing, measured_at: str = "", mark: str = "") -> None:
        """Remember a time; a later one of the same key and mode takes its place. ``measured_at``: now, if not given."""
        if self._connection is None or not self._writable:
            return
        at = measured_at or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        row = (*_columns(key), mode, json.dumps(schema.to_json(timing)), at, mark)
        places = ", ".join("?" * len(row))
        with self._lock, self._unless_broken("written"), self._connection as transaction:
            transaction.execute(f"insert or replace into baselines values ({places})", row)

    def find(self, key: Key) -> dict[str, Kept]:
        """Mode → kept time; nothing where nothing is known or the file cannot be read."""
        if self._connection is None:
            return {}
        where = " and ".join(f"{name} = ?" for name in _KEY)
        found: dict[str, Kept] = {}
        with self._lock, self._unless_broken("read"):
            query = f"select mode, timing, measured_at, mark from baselines where {where}"
            for mode, timing, at, mark in self._connection.execute(query, _columns(key)):
                with contextlib.suppress(ValueError, TypeError):  # not a timing of ours: as if it were not there
                    found[mode] = Kept(schema.from_json(schema.Timing, json.loads(timing)), at, mark)
        return found

    def close(self) -> None:
        """Close the file; it is not usable afterwards."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def _unless_broken(self, done: str) -> Iterator[None]:
        """Say the first fault and go on without: a file that cannot be written can often be read still."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            _log.warning("The kept baselines in %s could not be %s (%s); going on without.", self.path, done, error)
            if done == "written":
                self._writable = False
            elif self._connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.close()
                self._connection = None


def inputs_with_strides(inputs: Sequence[class_schema.TensorSpec]) -> str:
    """Shapes, dtypes and strides as text: ``float32[8, 1024]; float16[4, 4] stride [1, 4]``. Names do not matter."""
    parts = []
    for spec in inputs:
        strided = spec.stride and spec.stride != _contiguous(spec.shape)
        parts.append(f"{spec.text} stride {spec.stride}" if strided else spec.text)
    return "; ".join(parts)


def key_of(report: schema.Report, inputs: Sequence[class_schema.TensorSpec] | None = None) -> Key | None:
    """The key of a report's times, at ``inputs`` or at the example's; None where anything of it is not known."""
    device, specimen, fingerprint = report.device, report.specimen, report.target.fingerprint
    if device is None or device.kind != "cuda" or specimen is None or not fingerprint:
        return None
    text = inputs_with_strides(specimen.inputs if inputs is None else inputs)
    versions = (device.driver, device.torch, device.triton)
    return Key(device.name, *versions, fingerprint, text, specimen.training) if all(versions) else None


def _columns(key: Key) -> tuple[str | int, ...]:
    return tuple(int(value) if isinstance(value, bool) else value for value in dataclasses.astuple(key))


def _contiguous(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]
