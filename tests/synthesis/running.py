"""Cases in a process of their own under Triton's interpreter (interpret.py), and what is wrong with what comes of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.synthesis.cases import CASES


def start() -> subprocess.Popen[str]:
    """The process, for any number of cases; ``end`` ends it."""
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("interpret.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
    )


def end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)


def run(process: subprocess.Popen[str], name: str, folder: Path, **more: Any) -> dict[str, Any]:
    """The outcome of a case, whose kernel file goes to ``folder``; ``more`` as interpret.py has it."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps({"case": name, "folder": str(folder), **more}) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def fault(name: str, outcome: dict[str, Any], *, default: bool = True) -> str:
    """What is not as the case has it, "" where all is. ``default``: it is the case's default, which leaves to torch and launches what the case says."""
    case = CASES[name]
    if "problem" in outcome:
        return outcome["trace"]
    if not all(outcome["inside"]):
        return "the kernel's own envelope refuses the sizes it was made for"
    if not max(outcome["errors"]) <= case.tolerance:
        return f"errors {outcome['errors']}, {case.tolerance} at the most"
    if not default:
        return ""
    lowered, of = (int(word) for word in outcome["note"].split(" ops")[0].split(" of "))
    if of - lowered != case.kept:
        return f"{outcome['note']}: {case.kept} were to be kept"
    if case.kernels not in (None, outcome["kernels"]):
        return f"{outcome['kernels']} kernels, not {case.kernels}:\n{outcome['source']}"
    return ""
