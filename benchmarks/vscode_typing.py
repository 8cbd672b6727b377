"""How long a typed character takes to be seen in VS Code, with a validation running and without kernel-lsp.

    python benchmarks/vscode_typing.py [--results FOLDER]

Two windows of one browser are typed into turn by turn: VS Code as it is, and VS Code with the extension, where a kernel
is being validated all the time. Measured in the page, from the key to the frame that shows the character. Writes
vscode.json and vscode.md, and exits with 1 when a goal is missed. Needs what ``make test-editors`` has installed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from editor_latency import Figure, environment, table

ROOT = Path(__file__).parents[1]
VSIX = ROOT / "vscode-extension" / "kernel-lsp.vsix"
NEEDED = (VSIX, ROOT / ".editors" / "vscode")


def measure() -> dict:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "typing.json"
        command = [ROOT / "tools" / "test-vscode", sys.executable, "typing", output]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        return json.loads(output.read_text())


def figures(found: dict) -> list[Figure]:
    without, with_it = found["without"], found["with"]
    p95 = [statistics.quantiles(times, n=20)[-1] for times in (without, with_it)]
    count = f"{len(with_it)} characters"
    return [
        Figure("typed character p50, without kernel-lsp", statistics.median(without), "ms", None, count),
        Figure("typed character p50, validation running", statistics.median(with_it), "ms", None, count),
        Figure("typed character p95, without kernel-lsp", p95[0], "ms", None, count),
        Figure("typed character p95, validation running", p95[1], "ms", None, count),
        Figure("the same, over without", p95[1] / p95[0], "×", 1.1),
        Figure("extension loaded and activated, to the start of the server", found["activation"], "ms", 200.0),
        Figure("kernel-lsp.vsix", found["bytes"] / 1e6, "MB", 5.0),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    missing = [path.name for path in NEEDED if not path.exists()]
    if missing:
        print(f"Not measured: {' and '.join(missing)} not there. Run make test-editors first, which installs VS Code.")
        return 0
    about = environment()
    found = measure()
    shown = figures(found)
    text = table(shown)
    print(text)
    record = {"environment": about, "figures": [asdict(f) for f in shown], "milliseconds": found}
    (options.results / "vscode.json").write_text(json.dumps(record, ensure_ascii=False) + "\n")
    lines = "\n".join(f"- {name}: {value}" for name, value in about.items())
    head = "# VS Code\n\nIn Chromium, drawn without a GPU, on the machine that validates (`benchmarks/vscode_typing.py`).\n\n"
    (options.results / "vscode.md").write_text(f"{head}{text}\n\n{lines}\n")
    return 1 if any(f.missed for f in shown) else 0


if __name__ == "__main__":
    sys.exit(main())
