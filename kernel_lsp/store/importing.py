"""``kernel-lsp store import``: what ``exporting.py`` wrote, merged into a store.

A file is text that anyone can write, so nothing of it counts as validated on this machine. What is known already (by
its id) stays as it is: the same file twice changes nothing.
"""

from __future__ import annotations

import datetime
import itertools
import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from kernel_lsp import kernel_file, schema
from kernel_lsp.errors import ImportUnreadable, StoreLineDamaged
from kernel_lsp.store import database, exporting, kernels, verdicts
from kernel_lsp.store.graphs import Graph
from kernel_lsp.store.kernels import Kernel
from kernel_lsp.store.sessions import Session
from kernel_lsp.store.targets import Target
from kernel_lsp.store.verdicts import Row

_AT_ONCE = 500  # lines in one transaction: others get their turn in between
_ID = re.compile(r"[\w.+-]{1,64}")
_LONGEST = 16 * 2**20  # bytes of a line
#: what a damaged line raises: no JSON, wrong types, nothing that SQLite can hold
_WRONG = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, ArithmeticError)


@dataclass
class Imported:
    """How many were new and how many known; ``damaged``: the lines that were left out, with the reason."""

    verdicts: int = 0
    kernels: int = 0
    known: int = 0
    damaged: list[StoreLineDamaged] = field(default_factory=list)


def take(path: Path, file: Path) -> Imported:
    """Merge a file. ``path``: of the store.

    Raises:
        StoreUnusable: the store cannot be written; what came before the fault is kept.
        ImportUnreadable: the file cannot be read, or is no export that this version knows.
    """
    done = Imported()
    lines = _lines(file)
    _check_head(file, next(lines, (1, b"")))
    while batch := list(itertools.islice(lines, _AT_ONCE)):
        with database.writing(path) as connection:
            for number, text in batch:
                _take(connection, number, text, file, done)
    return done


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """The numbered lines, from 1. One that is too long comes cut, and is damaged then."""
    try:
        with file.open("rb") as source:
            number = 1
            while text := source.readline(_LONGEST):
                while not text.endswith(b"\n") and (rest := source.readline(_LONGEST)):
                    text = b"\0" + rest[-1:]  # never JSON
                if text.strip():
                    yield number, text
                number += 1
    except OSError as error:
        raise ImportUnreadable(path=str(file), detail=error.strerror or error) from None


def _check_head(file: Path, line: tuple[int, bytes]) -> None:
    try:
        head = json.loads(line[1])
        version = head["format"] if head["kind"] == "kernel-lsp store" else None
    except _WRONG:
        version = None
    if not isinstance(version, int) or version < 1:
        raise ImportUnreadable(path=str(file), detail="its first line is not that of a store's export")
    if version > exporting.FORMAT:
        detail = f"its format is {version}, this kernel-lsp knows {exporting.FORMAT}"
        raise ImportUnreadable(path=str(file), detail=detail)


def _take(connection: sqlite3.Connection, number: int, text: bytes, file: Path, done: Imported) -> None:
    """One line, whole or not at all."""
    connection.execute("savepoint line")
    try:
        data = json.loads(text.decode("utf-8"))
        if data["kind"] == "kernel":
            new = kernels.keep(connection, _kernel(data))
            done.kernels += new
        elif data["kind"] == "verdict":
            new = verdicts.keep(connection, _row(data), here=False)
            done.verdicts += new
        else:
            raise ValueError(f"its kind is {str(data['kind'])[:40]!r}")
        done.known += not new
        connection.execute("release line")
    except _WRONG as error:
        connection.execute("rollback to line")
        connection.execute("release line")
        done.damaged.append(StoreLineDamaged(path=str(file), line=number, detail=_words(error)))


def _words(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON ({error.msg} at column {error.colno})"
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return " ".join(str(error).split())[:160] or type(error).__name__


def _kernel(data: dict[str, Any]) -> Kernel:
    kernel = Kernel(*(_text(data, name) for name in exporting.KERNEL))
    if kernel_file.body_hash(kernel.source) != kernel.body:
        raise ValueError("the kernel's text does not have the hash that stands beside it")
    return kernel


def _row(data: dict[str, Any]) -> Row:
    session = data["session"]
    process = session["process"]
    if not isinstance(process, int) or isinstance(process, bool) or not isinstance(data["thorough"], bool):
        raise TypeError("a number or a flag is none")
    verdict = schema.from_json(schema.Verdict, _table(data["verdict"]))
    _check_verdict(verdict)
    texts = {name: _text(session, name) for name in exporting.SESSION if name != "process"}
    return Row(
        Session(**texts | {"id": _id(texts["id"])}, process=process),
        _target(data),
        body=_text(data, "body"),
        device=_text(data, "device"),
        driver=_text(data, "driver"),
        torch=_text(data, "torch"),
        triton=_text(data, "triton"),
        verdict=verdict,
        reached_at=_moment(_text(data, "reached_at")),
        thorough=data["thorough"],
        measurement=schema.from_json(schema.Measurement, _table(data["measurement"], missing=True)),
        ran_on=schema.from_json(schema.Device, _table(data["ran_on"], missing=True)),
        settings=_table(data["settings"]),
        bounds=_bounds(data),
        precision=_text({"precision": "strict"} | data, "precision"),
        graph=_graph(data.get("graph")),
        id=_id(_text(data, "id")),
    )


def _target(data: dict[str, Any]) -> Target:
    fingerprint, class_name, file, project = (_text(data, n) for n in ("fingerprint", "class", "file", "project"))
    return Target(fingerprint, class_name, file, "", project)


def _graph(data: Any) -> Graph | None:
    """None where the export has none, as those of version 2 of the store."""
    if data is None:
        return None
    graph: Graph = schema.from_json(Graph, _table(data))
    counts = graph.ops.values()
    texts = (graph.graph, graph.bounds, *graph.forward, *graph.state, *graph.ops, *(spec.name for spec in graph.inputs))
    sizes = (size for spec in graph.inputs for size in spec.shape)
    if not all(isinstance(text, str) for text in (*texts, *(spec.dtype for spec in graph.inputs))):
        raise TypeError("a name in its graph is no text")
    if not all(isinstance(number, int) for number in (*counts, *sizes, graph.pinned)):
        raise TypeError("a number in its graph is none")
    return graph


def _bounds(data: dict[str, Any]) -> str:
    """Exports of version 3 of the store have it among the settings alone, or with the graph."""
    graph = data.get("graph") or {}
    return _text({"bounds": "trust"} | graph | data["settings"] | data, "bounds")


def _check_verdict(verdict: schema.Verdict) -> None:
    """What is counted, compared or drawn later has the type that it should have."""
    if verdict.status not in get_args(schema.Status) or not isinstance(verdict.mode, str):
        raise ValueError("its verdict has no status that is known here")
    if not all(isinstance(value, (int, float)) or value is None for value in (verdict.error, verdict.eager_error)):
        raise TypeError("an error is no number")
    if not all(isinstance(check.passed, bool) and isinstance(check.name, str) for check in verdict.checks):
        raise TypeError("a check has not passed or failed")


def _table(value: Any, missing: bool = False) -> Any:
    if not isinstance(value, dict) and not (missing and value is None):
        raise TypeError("a record is none")
    return value


def _text(data: dict[str, Any], name: str) -> str:
    if not isinstance(data[name], str):
        raise TypeError(f"{name} is no text")
    return str(data[name])


def _id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ValueError("an id is none")
    return text


def _moment(text: str) -> str:
    """In the one form in which moments are compared as text."""
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("its time has no time zone")
    return moment.astimezone(datetime.UTC).isoformat(timespec="seconds")
