"""What a class computes, kept with the verdicts that found a kernel of it correct: its graph without any names.

The names stand beside it, so that a kernel can be rewritten for another class with the same graph (``recalled.py``).
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field

from kernel_lsp.class_schema import Specimen, TensorSpec

_COLUMNS = ("graph", "fingerprint", "forward", "inputs", "state", "ops")


@dataclass(frozen=True)
class Graph:
    """A graph with the names that a class gave to what it is made of.

    Attributes:
        graph: its hash, ``Specimen.graph``.
        forward: forward's parameters.
        inputs: the tensors among forward's arguments; a kernel that is ``pinned`` needs exactly these sizes.
        state: parameters, buffers and constants in canonical order.
        ops: ATen operator → how often.
        pinned: the kernel stands for the class at the example's sizes only.
        bounds: the setting that it was validated with.
    """

    graph: str
    forward: list[str] = field(default_factory=list)
    inputs: list[TensorSpec] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    ops: dict[str, int] = field(default_factory=dict)
    pinned: bool = False
    bounds: str = "trust"


def graph_of(specimen: Specimen | None, pinned: bool, bounds: str) -> Graph | None:
    """The graph of what a job looked at; None where torch.export found none."""
    if specimen is None or not specimen.graph or specimen.training:
        return None
    inputs = [TensorSpec(spec.name, spec.shape, spec.dtype) for spec in specimen.inputs]
    return Graph(specimen.graph, specimen.forward, inputs, specimen.state, specimen.ops, pinned, bounds)


def keep(connection: sqlite3.Connection, verdict: str, fingerprint: str, graph: Graph) -> None:
    """Remember which graph a verdict (its id) is about."""
    inputs = [[spec.name, spec.dtype, spec.shape] for spec in graph.inputs]
    texts = (json.dumps(inputs), json.dumps(graph.state), json.dumps(graph.ops, sort_keys=True))
    row = (graph.graph, fingerprint, json.dumps(graph.forward), *texts)
    where = " and ".join(f"{column} = ?" for column in _COLUMNS)
    found = connection.execute(f"select id from graphs where {where}", row).fetchone()
    if found is None:
        query = f"insert into graphs ({', '.join(_COLUMNS)}) values ({', '.join('?' * len(row))})"
        found = (connection.execute(query, row).lastrowid,)
    values = (verdict, found[0], int(graph.pinned), graph.bounds)
    connection.execute("insert or ignore into verdict_graphs values (?, ?, ?, ?)", values)


def read(graph: str, forward: str, inputs: str, state: str, ops: str, pinned: int, bounds: str) -> Graph:
    """From the columns of its row.

    Raises:
        ValueError, TypeError, LookupError: the row is damaged.
    """
    specs = [TensorSpec(name, list(shape), dtype) for name, dtype, shape in json.loads(inputs)]
    return Graph(graph, json.loads(forward), specs, json.loads(state), dict(json.loads(ops)), bool(pinned), bounds)
