"""Kernels that were found correct before: those for a graph, and those for graphs like it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_lsp.store import database, graphs
from kernel_lsp.store.graphs import Graph
from kernel_lsp.store.kernels import Kernel

MOST = 3  # kernels for one graph: each costs a validation
_DAMAGED = (ValueError, TypeError, LookupError, AttributeError)
_LOOKED_AT = 500  # of the latest verdicts for one graph

# What the latest verdict on the same class, body and device, under the same setting, found wrong is out.
_VERDICTS = f"""
select g.graph, g.forward, g.inputs, g.state, g.ops, x.pinned, x.bounds,
    v.body, t.class, t.file, v.reached_at, v.here, v.device, m.kernel, m.over_eager, v.version, t.root, m.inputs,
    v.precision
from graphs g join verdict_graphs x on x.graph = g.id join verdicts v on v.id = x.verdict
join targets t on t.id = v.target left join measurements m on m.verdict = v.id
where {{where}} and (
    select status from verdicts w where w.target = v.target and w.body = v.body and w.device = v.device and w.bounds = v.bounds
    and w.precision = v.precision
    order by w.reached_at desc, w.rowid desc limit 1
) in ('ok', 'slower')
order by v.reached_at desc, v.rowid desc limit {_LOOKED_AT}
"""


@dataclass(frozen=True)
class Recalled:
    """A kernel, and what was found out when it was validated last.

    Attributes:
        graph: of the class that it was validated for.
        class_name: of that class; ``file``: where it was then, relative to its project.
        here: it was validated on this machine, and not imported.
        device: of the latest verdict.
        microseconds: its best median on the device that was asked for; None where it was not timed there.
        on_device: it was validated on that device.
        over_eager: times eager, at the latest verdict.
        version: of kernel-lsp, then.
        root: the class's project folder; empty for what was imported.
        inputs: the shapes that were timed.
        precision: the setting that it was validated under.
    """

    kernel: Kernel
    graph: Graph
    class_name: str
    file: str
    reached_at: str  # ISO 8601, UTC
    here: bool
    device: str
    microseconds: float | None
    on_device: bool
    over_eager: float | None
    version: str
    root: str = ""
    inputs: str = ""
    precision: str = "strict"


def anything(path: Path | None) -> bool:
    """Whether there is any kernel to recall.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        return connection is not None and bool(connection.execute("select 1 from verdict_graphs limit 1").fetchone())


def find(graph: str, device: str, path: Path | None) -> list[Recalled]:
    """The kernels that were found correct for a graph: the fastest on a device (its name) first, then the latest.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        if connection is None or not graph:
            return []
        rows = connection.execute(_VERDICTS.format(where="g.graph = ?"), (graph,)).fetchall()
        return _recalled(connection, rows, device)


def nearest(graph: str, ops: dict[str, int], device: str, path: Path | None, most: int = MOST) -> list[Recalled]:
    """The kernels nearest in graph, then in operators, then in device; none that shares no operator.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        if connection is None:
            return []
        near: dict[int, tuple[bool, float]] = {}
        for number, other, text in connection.execute("select id, graph, ops from graphs"):
            with contextlib.suppress(*_DAMAGED):
                near[number] = (other == graph and bool(graph), overlap(ops, json.loads(text)))
        best = sorted((number for number, one in near.items() if any(one)), key=near.__getitem__, reverse=True)
        found: list[Recalled] = []
        for number in best[: 4 * most]:
            rows = connection.execute(_VERDICTS.format(where="g.id = ?"), (number,)).fetchall()
            found += _recalled(connection, rows, device)
    found.sort(key=lambda one: (one.graph.graph != graph, -overlap(ops, one.graph.ops), not one.on_device))
    return list({one.kernel.body: one for one in reversed(found)}.values())[::-1][:most]


def overlap(ops: dict[str, int], others: dict[str, int]) -> float:
    """The share of two multisets of operators that both have."""
    union = (Counter(ops) | Counter(others)).total()
    return (Counter(ops) & Counter(others)).total() / union if union else 0.0


def _recalled(connection: sqlite3.Connection, rows: list[tuple[Any, ...]], device: str) -> list[Recalled]:
    """One for each body and setting: the fastest on the device first, then those validated there, then the latest."""
    bodies: dict[tuple[str, str, str], list[tuple[Any, ...]]] = {}
    for row in rows:
        bodies.setdefault((row[7], row[6], row[18]), []).append(row)
    found = []
    for (body, *_), of_body in bodies.items():
        text = connection.execute("select * from kernels where body = ?", (body,)).fetchone()
        there = [row for row in of_body if row[12] == device]
        latest = there[0] if there else of_body[0]
        times = [row[13] for row in there if row[13]]
        if text is not None:
            with contextlib.suppress(*_DAMAGED):
                graph = graphs.read(*latest[:7])
                class_name, file, reached_at, here, on, _, over_eager, version, root, inputs, precision = latest[8:]
                best = min(times, default=None)
                found.append(
                    Recalled(
                        Kernel(*text),
                        graph,
                        class_name=class_name,
                        file=file,
                        reached_at=reached_at,
                        here=bool(here),
                        device=on,
                        microseconds=best,
                        on_device=bool(there),
                        over_eager=over_eager,
                        version=version,
                        root=root,
                        inputs=inputs or "",
                        precision=precision,
                    )
                )
    found.sort(key=lambda one: one.reached_at, reverse=True)
    found.sort(key=lambda one: (one.microseconds or float("inf"), not one.on_device))
    return found
