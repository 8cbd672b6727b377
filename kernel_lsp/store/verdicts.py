"""The rows of verdicts and of what was measured with them: written by validations and by imports alike."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from kernel_lsp import schema, speedup
from kernel_lsp.store import graphs, sessions, targets
from kernel_lsp.store.graphs import Graph
from kernel_lsp.store.sessions import Session
from kernel_lsp.store.targets import Target


@dataclass
class Row:
    """A verdict with all that is kept of it. ``device`` to ``triton``: what it holds for, as the worker named it."""

    session: Session
    target: Target
    body: str  # its hash
    device: str
    driver: str
    torch: str
    triton: str
    verdict: schema.Verdict
    reached_at: str  # ISO 8601, UTC
    thorough: bool = False
    measurement: schema.Measurement | None = None
    ran_on: schema.Device | None = None
    settings: dict[str, Any] = field(default_factory=dict)  # that decide what is checked and timed
    bounds: str = "trust"  # the setting: whether a kernel had to raise where an index is out of range
    precision: str = "strict"  # the setting: what float32 products may be off by
    graph: Graph | None = None  # kept where the kernel was found correct
    id: str = field(default_factory=lambda: os.urandom(16).hex())


def keep(connection: sqlite3.Connection, row: Row, here: bool) -> bool:
    """Whether it was not there yet. ``here``: it was reached on this machine."""
    verdict = row.verdict
    passed = sum(check.passed for check in verdict.checks)
    target = targets.keep(connection, row.target)
    sessions.keep(connection, row.session)
    values = (
        *(row.id, row.session.id, target, row.body, int(here)),
        *(row.device, row.driver, row.torch, row.triton, row.session.version),
        *(verdict.status, verdict.mode, int(row.thorough)),
        *(passed, len(verdict.checks) - passed, len(verdict.skipped), verdict.error, verdict.eager_error),
        *(row.reached_at, text_of(row.ran_on), text_of(verdict), row.bounds, row.precision),
    )
    query = f"insert or ignore into verdicts values ({', '.join('?' * len(values))})"
    if connection.execute(query, values).rowcount != 1:
        return False
    if row.measurement is not None:
        times = _times(row.measurement)
        values = (row.id, *times, json.dumps(row.settings), text_of(row.measurement))
        connection.execute(f"insert into measurements values ({', '.join('?' * len(values))})", values)
    if row.graph is not None and verdict.status in schema.CORRECT:
        graphs.keep(connection, row.id, row.target.fingerprint, row.graph)
    return True


def text_of(record: Any) -> str:
    """A record as JSON, as the tables hold it."""
    return json.dumps(schema.to_json(record) if record is not None else None)


def _times(measurement: schema.Measurement) -> tuple[Any, ...]:
    """Medians at the example's shapes, the ratios as shown (``figures.speedups``), and the shapes as text."""
    shape = measurement.shapes[0] if measurement.shapes else None
    timings = (shape.eager, shape.compiled, shape.kernel) if shape is not None else (None, None, None)
    medians = [timing.median if timing is not None else None for timing in timings]
    return (*medians, *speedup.speedups(measurement), inputs_text(shape) if shape is not None else "")


def inputs_text(shape: schema.ShapeMeasurement) -> str:
    """``float32[8, 1024]; int64[8]``: what a row of ``measurements`` says of the inputs."""
    return "; ".join(spec.text for spec in shape.inputs)
