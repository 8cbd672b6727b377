"""How long an editor waits for the server, idle and while a job runs, against a bare pygls server in the same run.

    python benchmarks/editor_latency.py [--rounds N] [--results FOLDER]

Prints a table, writes editor_latency.json and editor_latency.md, and exits with 1 when a goal is missed. Needs torch
and triton in the running interpreter, since the jobs are real ones.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from support.lsp_client import Client

OURS = [sys.executable, "-c", "import sys; from kernel_lsp.server import main; sys.exit(main([]))"]
BARE = [
    sys.executable,
    "-c",
    "from pygls.lsp.server import LanguageServer; from lsprotocol import types\n"
    "server = LanguageServer('bare', '1')\n"
    "@server.feature(types.TEXT_DOCUMENT_DID_OPEN)\n"
    "def opened(params): pass\n"
    "@server.feature(types.TEXT_DOCUMENT_CODE_LENS)\n"
    "def lens(params): return []\n"
    "@server.feature(types.TEXT_DOCUMENT_HOVER)\n"
    "def hover(params): return None\n"
    "server.start_io()",
]
CLASS = '''class Net{i}(nn.Module):
    """Number {i} of many."""

    def __init__(self, dim: int = {i} + 8):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = 1e-6

    def scale(self, x):
        y = x * 2 + 1
        for step in range(3):
            y = y + torch.sin(x) * self.eps * step
        return y

    def forward(self, x, residual=None):
        hidden = self.scale(x)
        if residual is not None:
            hidden = hidden + residual
        return torch.relu(hidden) * self.weight


'''
CLASSES = 480
REST_SECONDS = 6.5  # after which a server at rest has let go of what it does not need
REQUEST_SECONDS = 1.05  # between two requests to refresh, as the server sends them at the most


@dataclass
class Figure:
    """One line of the table. ``goal`` is the most it may be; None where it is for comparison only."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    note: str = ""

    @property
    def missed(self) -> bool:
        return self.goal is not None and self.value > self.goal


class Document:
    """The long file, open in a client."""

    def __init__(self, client: Client, path: Path) -> None:
        self.client, self.text, self.version = client, path.read_text(), 1
        self.uri = path.as_uri()
        item = {"uri": self.uri, "languageId": "python", "version": 1, "text": self.text}
        client.notify("textDocument/didOpen", {"textDocument": item})
        self.lines = [i for i, line in enumerate(self.text.split("\n")) if line.startswith("class Net")]

    def ask(self, method: str, **more: Any) -> Any:
        return self.client.request(f"textDocument/{method}", {"textDocument": {"uri": self.uri}, **more})

    def code_action(self) -> Any:
        place = {"line": random.choice(self.lines), "character": 7}
        return self.ask("codeAction", range={"start": place, "end": place}, context={"diagnostics": []})

    def hover(self) -> Any:
        return self.ask("hover", position={"line": random.choice(self.lines), "character": 7})

    def lens(self) -> Any:
        return self.ask("codeLens")

    def type(self, line: int, text: str) -> None:
        """Insert text at the start of a line."""
        self.version += 1
        place = {"line": line, "character": 0}
        change = {"range": {"start": place, "end": place}, "text": text}
        document = {"uri": self.uri, "version": self.version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def erase(self, line: int) -> None:
        self.version += 1
        area = {"start": {"line": line, "character": 0}, "end": {"line": line + 1, "character": 0}}
        change = {"range": area, "text": ""}
        document = {"uri": self.uri, "version": self.version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def command(self, name: str, **more: Any) -> Any:
        argument = {"uri": self.uri, "className": "Net7", "version": self.version, **more}
        return self.client.request(
            "workspace/executeCommand", {"command": f"kernelLsp.{name}", "arguments": [argument]}
        )


def p95(call: Callable[[], Any], count: int, before: Callable[[], Any] = lambda: None) -> float:
    """The 95th percentile of a call's milliseconds."""
    times = []
    for _ in range(count):
        before()
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.quantiles(times, n=20)[-1]


def change_to_lens(document: Document, count: int, keep_busy: Callable[[], None]) -> tuple[float, float]:
    """The 95th percentiles, in milliseconds: a class is typed → the lenses show it; → the client is told to refresh.

    Of changes that are further from any request to refresh, also one about a job, than two of them have to be.
    ``keep_busy`` is called before each: the job before may be over.
    """
    shown, told = [], []
    for i in range(count):
        document.client.forget_notes()
        keep_busy()
        while document.client.wait_for("workspace/codeLens/refresh", REQUEST_SECONDS) is not None:
            pass  # the next request would have to wait for this one
        line = random.choice(document.lines)
        began = time.perf_counter()
        document.type(line, f"class Typed{i}(nn.Module): pass\n")
        names = [lens["command"]["arguments"][0].get("className") for lens in document.lens()]
        shown.append((time.perf_counter() - began) * 1e3)
        assert f"Typed{i}" in names
        moment = document.client.wait_for("workspace/codeLens/refresh", 5)
        assert moment is not None, "no refresh came"
        told.append((moment - began) * 1e3)
        document.erase(line)
        document.lens()
        document.client.wait_for("workspace/codeLens/refresh", 5)
    return statistics.quantiles(shown, n=20)[-1], statistics.quantiles(told, n=20)[-1]


def startup(folder: Path, rounds: int) -> list[Figure]:
    """From the start of the process to the answer to initialize, in turns; and memory with the long file open."""
    seconds: dict[str, list[float]] = {"ours": [], "bare": []}
    memory = {"ours": 0.0, "bare": 0.0}
    for turn in range(rounds + 1):
        for name, command in (("bare", BARE), ("ours", OURS)):
            client = Client(command, folder)
            document = Document(client, folder / "many.py")
            document.lens()
            if turn:  # the first turn warms the disk
                seconds[name].append(client.startup)
            if turn == rounds:
                time.sleep(REST_SECONDS)
                memory[name] = psutil.Process(client.process.pid).memory_info().rss / 2**20
            client.exit()
    ours, bare = statistics.median(seconds["ours"]), statistics.median(seconds["bare"])
    mine, its = memory["ours"], memory["bare"]
    return [
        Figure("start → initialize answered", ours * 1e3, "ms", None, f"bare pygls {bare * 1e3:.0f} ms"),
        Figure("the same, over bare pygls", ours / bare, "×", 1.3),
        Figure("resident memory, file open, at rest", mine, "MiB", None, f"bare pygls {its:.0f} MiB"),
        Figure("the same, over bare pygls", mine / its, "×", 1.3),
    ]


def latencies(document: Document, when: str, count: int, keep_busy: Callable[[], None]) -> list[Figure]:
    figures = [
        Figure(f"code action p95, {when}", p95(document.code_action, count, keep_busy), "ms", 20),
        Figure(f"hover p95, {when}", p95(document.hover, count, keep_busy), "ms", 20),
        Figure(
            f"code lens p95, {when}", p95(document.lens, count, keep_busy), "ms", 20, f"{len(document.lens())} lenses"
        ),
    ]
    shown, told = change_to_lens(document, max(count // 2, 5), keep_busy)
    figures.append(Figure(f"change → lens answered p95, {when}", shown, "ms", 100))
    figures.append(Figure(f"change → lens refresh sent p95, {when}", told, "ms", 100))
    return figures


def debug(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = document.command("debugInformation")
    return found


def wait_until_at_work(document: Document) -> list[psutil.Process]:
    """Start a job unless one runs, and wait until a candidate is being validated; the worker and all below it."""
    document.client.forget_notes()
    deadline = time.monotonic() + 180
    if not debug(document)["jobs"]:
        document.command("generate", overwrite=True)
    while time.monotonic() < deadline:
        try:
            _, message = document.client.notes.get(timeout=30)
        except queue.Empty:
            break
        value = message["params"].get("value", {}) if message["method"] == "$/progress" else {}
        if value.get("percentage", 0) >= 25:
            workers = [psutil.Process(pid) for pid in debug(document)["workerPids"]]
            return [p for w in workers for p in [w, *w.children(recursive=True)]]
        if value.get("kind") == "end":
            document.command("generate", overwrite=True)
    raise RuntimeError("no candidate was ever validated")


def cancel(document: Document) -> float:
    """Seconds from the cancel command to a worker that does nothing: no job, and no processor time used."""
    workers = [psutil.Process(pid) for pid in debug(document)["workerPids"]]
    began = time.perf_counter()
    document.command("cancel")
    idle_since, used = None, -1.0
    while time.perf_counter() - began < 10:
        now = time.perf_counter()
        spent = processor_seconds(workers)
        if debug(document)["jobs"] or spent - used > 0.005 or used < 0:
            idle_since = None
        elif idle_since is None:
            idle_since = now
        elif now - idle_since > 0.3:  # and it stays so
            return idle_since - began
        used = spent
        time.sleep(0.03)
    return time.perf_counter() - began


def processor_seconds(workers: list[psutil.Process]) -> float:
    """What the living processes of the workers have used so far."""
    total = 0.0
    for worker in workers:
        try:
            for process in [worker, *worker.children(recursive=True)]:
                times = process.cpu_times()
                total += times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return total


def run(rounds: int, count: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pyproject.toml").write_text("")
        head = "import torch\nfrom torch import nn\n\n\ndef get_inputs_Net7():\n    return [torch.randn(64, 15)]\n\n\n"
        path = folder / "many.py"
        path.write_text(head + "".join(CLASS.format(i=i) for i in range(CLASSES)))
        assert path.read_text().count("\n") >= 10_000
        figures = startup(folder, rounds)

        client = Client(OURS, folder)
        document = Document(client, path)
        document.lens()
        figures += latencies(document, "idle", count, lambda: None)

        def keep_busy() -> None:
            if not debug(document)["jobs"]:
                document.command("generate", overwrite=True)

        keep_busy()
        wait_until_at_work(document)
        figures += latencies(document, "job running", count, keep_busy)
        wait_until_at_work(document)
        figures.append(Figure("cancel → worker idle", cancel(document), "s", 1))
        family = [psutil.Process(client.process.pid), *wait_until_at_work(document)]
        figures.append(Figure("exit with a job running", client.exit(), "s", 2))
        time.sleep(0.1)
        left = [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
        figures.append(Figure("processes left after exit", len(left), "", 0))
    return figures


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def environment() -> dict[str, str]:
    packages = ("pygls", "lsprotocol", "tree-sitter", "tree-sitter-python", "torch", "triton")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": f"{cpu()}, {os.cpu_count()} cores",
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def table(figures: list[Figure]) -> str:
    lines = ["| figure | value | goal | |", "| --- | ---: | ---: | --- |"]
    for f in figures:
        digits = 2 if f.unit in ("×", "s") else 0 if f.unit in ("", "MiB") else 1
        goal = "" if f.goal is None else f"≤ {f.goal:g} {f.unit}".rstrip()
        verdict = "missed" if f.missed else f.note
        lines.append(f"| {f.name} | {f.value:.{digits}f} {f.unit} | {goal} | {verdict} |".replace("  ", " "))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="starts of each server (default 5)")
    parser.add_argument("--count", type=int, default=100, help="requests of each kind (default 100)")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    random.seed(1)
    about = environment()
    figures = run(options.rounds, options.count)
    text = table(figures)
    print(text)
    options.results.mkdir(exist_ok=True)
    record = {"environment": about, "figures": [asdict(f) for f in figures]}
    (options.results / "editor_latency.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    lines = "\n".join(f"- {name}: {value}" for name, value in about.items())
    page = f"# Editor latency\n\nA file of 10,000 lines with {CLASSES} module classes (`benchmarks/editor_latency.py`).\n\n"
    (options.results / "editor_latency.md").write_text(f"{page}{text}\n\n{lines}\n")
    return 1 if any(f.missed for f in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
