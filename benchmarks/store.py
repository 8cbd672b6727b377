"""How long a store of 100,000 verdicts takes to answer: a look-up by an editor, the history of a class, a write.

Goals, at the worst of all runs: a look-up under 5 ms, a history under 100 ms, of processor time: on a machine that does
other work beside, the worst time by the clock is that work's. Exits with 1 where one is missed; ``--verdicts N`` makes another size.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel_lsp import __version__, class_schema, kernel_file, schema
from kernel_lsp.store import database, environments, fastest_before, history, kernels, sessions, validations, verdicts
from kernel_lsp.store.info import info
from kernel_lsp.store.kernels import Kernel
from kernel_lsp.store.targets import target_of
from kernel_lsp.store.validations import About, Key, Validation
from kernel_lsp.store.verdicts import Row

RESULTS = Path(__file__).resolve().parent / "results" / "store.md"
CLASSES = 500
LARGE = 0  # the class with a tenth of all verdicts, on many kernels
OFTEN = 1  # one with another tenth, all on one kernel: the oldest of them is the only one with the versions of now
RUNS = 200
DEVICE = schema.Device("NVIDIA H100 80GB HBM3", "cuda", "9.0", torch="2.13.0", triton="3.7.0", driver="580.1")
GOALS = {
    "look-up": 5.0,
    "look-up, of before": 5.0,
    "look-up, validated often": 5.0,
    "look-up, nothing there": 5.0,
    "history of one class, 20 rows": 100.0,
    "history, 1,000 rows": 100.0,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--verdicts", type=int, default=100_000)
    count = parser.parse_args().verdicts
    with tempfile.TemporaryDirectory() as folder:
        root, path = Path(folder), Path(folder) / "store.sqlite"
        began = time.perf_counter()
        fill(path, root, count)
        print(f"{count:,} verdicts made in {time.perf_counter() - began:.0f} s, {info(path).bytes / 2**20:.0f} MiB")
        lines = [
            f"| {name} | {ms:.2f} | {worst:.2f} | {busy:.2f} |" for name, ms, worst, busy in measured(path, root, count)
        ]
    missed = [line for line in lines if float(line.split("|")[4]) > GOALS.get(line.split("|")[1].strip(), 1e9)]
    machine = f"{os.cpu_count()} cores, {platform.processor() or platform.machine()}"
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, kernel-lsp {__version__}"
    head = f"{count:,} verdicts on {CLASSES} classes, version {database.VERSION} of the store; {versions}; {machine}, load {os.getloadavg()[0]:.1f}. {RUNS} runs."
    text = "\n".join(
        [
            f"# The store\n\n{head}\n",
            "| what | median ms | worst ms | worst ms on the processor |",
            "| --- | ---: | ---: | ---: |",
            *lines,
            "",
        ]
    )
    print(text)
    if count == 100_000:
        RESULTS.write_text(text, "utf-8")
    return 1 if missed else 0


def fill(path: Path, root: Path, count: int) -> None:
    """Rows as validations write them, with 24 checks each."""
    with database.writing(path) as connection:
        for i in range(count):
            which = i % 10 if i % 10 in (LARGE, OFTEN) else i % CLASSES
            row = row_of(root, which, i)
            if i % 50 == 0 or i == OFTEN:
                kernels.keep(connection, Kernel(row.body, source(-1 if which == OFTEN else i), "synthesizer"))
            verdicts.keep(connection, row, here=True)
    environments.keep_devices(["python"], [schema.to_json(DEVICE)], path)


def row_of(root: Path, which: int, i: int) -> Row:
    checks = [schema.Check(f"check {n}", True, "what was seen, in about as many words as there are") for n in range(24)]
    verdict = schema.Verdict("ok", mode="gpu", checks=checks, error=1e-7, eager_error=2e-7, limits=["races"])
    return Row(
        sessions.current(),
        target_of(root / "pkg" / f"file_{which}.py", root, "Norm", fingerprint(which, i)),
        *(kernel_file.body_hash(source(-1 if which == OFTEN else i)), DEVICE.name, DEVICE.driver),
        # Every other verdict is from before an upgrade.
        *("2.11.0" if i % 2 and i != OFTEN else DEVICE.torch, DEVICE.triton),
        verdict=verdict,
        reached_at=f"{2025 if i == OFTEN else 2026}-{1 + i % 12:02}-{1 + i % 28:02}T{i % 24:02}:{i % 60:02}:{i % 59:02}+00:00",
        measurement=measurement(),
        ran_on=DEVICE,
        settings={"seconds": 300.0},
    )


def source(i: int) -> str:
    return f"# kernel {i // 50}\n" + "    x = tl.load(x_ptr + offsets, mask=offsets < n)\n" * 40


def fingerprint(which: int, i: int) -> str:
    return f"sha256:{which}-{0 if which == OFTEN else i // 5000}"


def measurement() -> schema.Measurement:
    timing = schema.Timing(100.0, 99.0, 101.0, 50)
    shape = schema.ShapeMeasurement([class_schema.TensorSpec("x", [8, 1024, 4096], "float32")], timing, timing, timing)
    return schema.Measurement([shape], DEVICE)


def measured(path: Path, root: Path, count: int) -> list[tuple[str, float, float, float]]:
    body = kernel_file.body_hash(source(0))
    newest = kernel_file.body_hash(source(1))
    often = kernel_file.body_hash(source(-1))
    first = fingerprint(LARGE, 0)
    found = Validation(schema.Verdict("ok"), measurement(), DEVICE, sessions.now())
    about = About(target_of(root / "pkg" / "file_0.py", root, "Norm", ""))
    key = Key(first, body, DEVICE.name, DEVICE.torch, DEVICE.triton, __version__, DEVICE.driver)
    other = [dataclasses.replace(DEVICE, torch="2.14.0")]
    environments.keep_devices(["other"], [schema.to_json(device) for device in other], path)

    rival = (fingerprint(OFTEN, 0), DEVICE.name, "trust", verdicts.inputs_text(measurement().shapes[0]))
    assert fastest_before.fastest(*rival, [newest], path)

    def look_up(command: str, of: str = first, body: str = newest) -> None:
        known = validations.look_up([command], "auto", of, body, "trust", path)
        assert bool(known.valid) == (command == "python") and bool(known.before) == (command == "other")

    def of_class(last: int) -> None:
        seen = history.of_class(path, root / "pkg" / "file_0.py", root, "Norm", last)
        assert len(seen.entries) == last

    work: dict[str, Callable[[], Any]] = {
        "look-up": lambda: look_up("python"),
        "look-up, of before": lambda: look_up("other"),
        "look-up, validated often": lambda: look_up("python", fingerprint(OFTEN, 0), often),
        "look-up, nothing there": lambda: validations.look_up(["python"], "auto", "sha256:none", body, "trust", path),
        "history of one class, 20 rows": lambda: of_class(20),
        "history, 1,000 rows": lambda: of_class(min(1000, count // 10)),
        "the fastest kernel before": lambda: fastest_before.fastest(*rival, [newest], path),
        "classes of the project": lambda: history.classes_under(path, root, root),
        "write": lambda: validations.keep(key, found, path, about),
        "info": lambda: info(path),
    }
    return [(name, *timed(one)) for name, one in work.items()]


def timed(one: Callable[[], Any], runs: int = RUNS) -> tuple[float, float, float]:
    """Median and worst by the clock, and the worst on the processor, in milliseconds."""
    times, busy = [], []
    for _ in range(runs):
        began, used = time.perf_counter(), time.thread_time()
        one()
        busy.append((time.thread_time() - used) * 1e3)
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times), max(times), max(busy)


if __name__ == "__main__":
    sys.exit(main())
