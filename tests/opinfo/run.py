"""PyTorch's operator database against the synthesizer: ``python -m tests.opinfo.run`` writes benchmarks/results/opinfo.md.

``--most`` samples of each operator (all by default), ``--only`` some operators, ``--jobs`` processes side by side.
``--rows`` keeps what each sample gave as JSON lines; a run with the same file goes on where the one before it ended, and its
table has all that the file holds. ``--again`` names operators of the file to run again.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from .database import operators
from .record import Name, Record

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "benchmarks" / "results" / "opinfo.md"


class Process:
    """One ``tests.opinfo.process``, started anew when a sample kills it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, name: str, variant: str, most: int) -> list[dict[str, Any]]:
        """What each sample of one operator gave."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.opinfo.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=ROOT,
                env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(ROOT)),
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        asked = {"name": name, "variant": variant, "most": most}
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        rows: list[dict[str, Any]] = []
        for line in process.stdout:
            row = json.loads(line)
            if row.get("over"):
                return rows
            rows.append(row)
        status = process.wait()
        self._process = None
        return [
            *rows,
            {**asked, "index": -1, "kind": "crash", "detail": f"the process ended with {status}", "inputs": ""},
        ]

    def end(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait(120)


def validated(names: list[Name], most: int, jobs: int, record: Record) -> None:
    """Put what each sample of the operators ``names``, (name, variant) each, gives into ``record``."""
    waiting: queue.SimpleQueue[Name] = queue.SimpleQueue()
    for one in names:
        waiting.put(one)

    def work() -> None:
        process = Process()
        while True:
            try:
                name, variant = waiting.get_nowait()
            except queue.Empty:
                break
            record.add((name, variant), process.ask(name, variant, most))
        process.end()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=10**6)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--table", type=Path, default=TABLE)
    given = parser.parse_args()
    only, again = (set(filter(None, text.split(","))) for text in (given.only, given.again))
    known = list(operators())
    record = Record(given.rows, again)
    validated(
        [one for one in known if one not in record.rows and (not only or one[0] in only)],
        given.most,
        given.jobs,
        record,
    )
    rows = [row for one in known for row in record.rows.get(one, [])]
    from .table import text

    given.table.parent.mkdir(exist_ok=True)
    given.table.write_text(text(rows, given.most))
    bad = [row for row in rows if row["kind"] in ("wrong", "crash", "envelope")]
    for row in bad:
        print(f"{row['kind']}: {row['name']} {row['variant']} #{row['index']} {row['inputs']}: {row['detail']}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
