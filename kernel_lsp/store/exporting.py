"""``kernel-lsp store export``: the kernels, then the verdicts, as JSON lines. docs/store.md has the format.

The same content gives the same lines, wherever it lies: verdicts are in the order of their time and their id. The
project's folder goes by its name alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kernel_lsp import schema
from kernel_lsp.errors import ExportNotWritten
from kernel_lsp.store import database, graphs

FORMAT = 1
VERDICT = (
    *("id", "reached_at", "project", "file", "class", "fingerprint", "body"),
    *(
        "device",
        "driver",
        "torch",
        "triton",
        "thorough",
        "session",
        "settings",
        "ran_on",
        "verdict",
        "measurement",
        "graph",
        "bounds",
        "precision",
    ),
)
KERNEL = ("body", "source", "generator", "note", "variant")
SESSION = ("id", "command", "version", "machine", "process", "began_at")
_VERDICTS = """
select v.id, v.reached_at, t.project, t.file, t.class, t.fingerprint, v.body, v.device, v.driver, v.torch, v.triton,
v.thorough, m.settings, v.ran_on, v.verdict, m.measurement, s.id, s.command, v.version, s.machine, s.process, s.began_at,
g.graph, g.forward, g.inputs, g.state, g.ops, x.pinned, x.bounds, v.bounds, v.precision
from verdicts v join targets t on t.id = v.target join sessions s on s.id = v.session
left join measurements m on m.verdict = v.id left join verdict_graphs x on x.verdict = v.id
left join graphs g on g.id = x.graph order by v.reached_at, v.id
"""


def export(path: Path, file: Path) -> tuple[int, int]:
    """Write the file, whole or not at all; how many verdicts and kernels it has. ``path``: of the store.

    Raises:
        StoreUnusable: the store cannot be read.
        ExportNotWritten: the file cannot be written.
    """
    counts = {"verdict": 0, "kernel": 0}

    def counted() -> Iterator[dict[str, Any]]:
        for line in lines(path):
            counts[line["kind"]] = counts.get(line["kind"], 0) + 1
            yield line

    write(file, counted())
    return counts["verdict"], counts["kernel"]


def write(file: Path, records: Iterable[dict[str, Any]]) -> int:
    """Write JSON lines, all or none; how many.

    Raises:
        ExportNotWritten: the file cannot be written.
    """
    count = 0
    temporary = ""
    try:
        folder = file.absolute().parent
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".jsonl", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            for line in records:
                out.write(json.dumps(schema.finite(line), allow_nan=False) + "\n")
                count += 1
        os.replace(temporary, file)
    except OSError as error:
        raise ExportNotWritten(path=str(file), detail=error.strerror or error) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    return count


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every line as JSON data, of one moment whatever others write meanwhile.

    Raises:
        StoreUnusable: the store cannot be read.
    """
    yield {"kind": "kernel-lsp store", "format": FORMAT}
    with database.reading(path) as connection:
        if connection is None:
            return
        connection.execute("begin")
        for row in connection.execute("select body, source, generator, note, variant from kernels order by body"):
            yield {"kind": "kernel"} | dict(zip(KERNEL, row, strict=True))
        for row in connection.execute(_VERDICTS):
            line = _verdict(row)
            if line is not None:
                yield line


def _verdict(row: tuple[Any, ...]) -> dict[str, Any] | None:
    """None for a damaged row."""
    plain, settings, texts, session = row[:12], row[12], row[13:16], row[16:22]
    kinds = (schema.Device, schema.Verdict, schema.Measurement)
    try:
        # Through the schema of now, as an import takes it: an earlier version's records lack what came later.
        records = [schema.from_json(kind, json.loads(text or "null")) for kind, text in zip(kinds, texts, strict=True)]
        data = [schema.to_json(record) if record is not None else None for record in records]
        chosen = json.loads(settings or "{}")
        graph = schema.to_json(graphs.read(*row[22:29])) if row[22] is not None else None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    if records[1] is None:
        return None
    values = (
        *plain[:11],
        bool(plain[11]),
        dict(zip(SESSION, session, strict=True)),
        chosen,
        *data,
        graph,
        row[29],
        row[30],
    )
    return {"kind": "verdict"} | dict(zip(VERDICT, values, strict=True))
