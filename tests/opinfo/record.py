"""What samples gave, an operator a line of a JSON lines file, so that a run can go on where another ended."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

#: (name, variant) of an operator
Name = tuple[str, str]


class Record:
    """``rows`` of each operator that was run; kept in ``path`` too, if there is one.

    ``again``: names of operators whose rows in the file are left out, to be run again. A line that was not written to its
    end is left out as well.
    """

    def __init__(self, path: Path | None, again: frozenset[str] | set[str] = frozenset()) -> None:
        self.rows: dict[Name, list[dict[str, Any]]] = {}
        self._path, self._lock = path, threading.Lock()
        if path is not None and path.exists():
            lines = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
            for name, variant, rows in map(json.loads, lines):
                if name not in again:
                    self.rows[name, variant] = rows
            path.write_text("".join(_line(one, rows) for one, rows in self.rows.items()))

    def add(self, one: Name, rows: list[dict[str, Any]]) -> None:
        with self._lock:
            self.rows[one] = rows
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(_line(one, rows))


def _line(one: Name, rows: list[dict[str, Any]]) -> str:
    return json.dumps([*one, rows]) + "\n"
