"""How long a saved change takes to become a verdict in an editor, with a warm worker under Triton's interpreter.

    python benchmarks/change_to_verdict.py [--only NAMES] [--rounds N]

Takes each module of samples/ with its kernel in samples/kernels/, opens it in a client, validates it once, then saves a change
of the class and waits for the new verdict. Prints a table, and writes change-to-verdict.md. Goal: 3 s.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.server.lsp_client import Client  # noqa: E402

DONE = {"kernel-valid", "kernel-wrong", "kernel-failed"}


async def measured(sample: Path, rounds: int, folder: Path) -> tuple[list[float], str]:
    """Seconds from each change to its verdict, and the last verdict's code."""
    (folder / "pyproject.toml").write_text("")
    shutil.copytree(sample.parent, folder / "samples")
    path = folder / "samples" / sample.name
    text = path.read_text()
    os.environ["KERNEL_LSP_STORE"] = str(folder / "store.sqlite")
    client, times = Client(), []
    try:
        await client.start(folder)
        uri = client.open(path)
        for round in range(rounds + 1):  # the first warms the worker up, and does not count
            before = client.diagnostics.get(uri, [])
            changed = text.replace("    def forward(", f"    step = {round}\n\n    def forward(", 1)
            began = time.perf_counter()
            path.write_text(changed)
            client.change(uri, round + 2, changed)
            client.save(uri)

            def verdict(before: object = before) -> bool:
                return client.diagnostics.get(uri, []) is not before and bool(DONE & set(client.codes(uri)))

            await client.until(lambda: set(client.codes(uri)) == {"kernel-stale"}, 10)
            await client.until(verdict, 120)
            if round:
                times.append(time.perf_counter() - began)
        return times, client.codes(uri)[0]
    finally:
        await client.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of files in samples/, with commas between them")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ["TRITON_INTERPRET"] = "1"
    load = os.getloadavg()[0]
    lines, missed = [], 0
    kernels = "".join(path.read_text() for path in (ROOT / "samples/kernels").glob("*.py"))
    for sample in sorted((ROOT / "samples").glob("*.py")):
        chosen = not options.only or sample.stem in options.only.split(",")
        if not chosen or f'source = "samples/{sample.name}::' not in kernels:
            continue
        with tempfile.TemporaryDirectory() as folder:
            times, code = asyncio.run(measured(sample, options.rounds, Path(folder)))
        missed += statistics.median(times) > 3
        lines.append(f"| {sample.stem} | {code} | {statistics.median(times):.1f} | {max(times):.1f} |")
        print(lines[-1], flush=True)
    machine = f"{os.cpu_count()} CPUs, load average before it began {load:.1f}, Python {platform.python_version()}"
    versions = f"torch {version('torch')}, triton {version('triton')}, {datetime.now(UTC):%Y-%m-%d}"
    table = "\n".join(["| sample | result | median, s | worst, s |", "| --- | --- | --: | --: |", *lines])
    (ROOT / "benchmarks/results/change-to-verdict.md").write_text(
        "# From a saved change to a verdict in an editor\n\n"
        f"{options.rounds} changes of each class, Triton interpreter, {machine}, {versions}. "
        f"Written by benchmarks/change_to_verdict.py.\n\n{table}\n"
    )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
