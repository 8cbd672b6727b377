"""What the tests in real editors share: the documentation's snippets, the editors, and their processes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from kernel_lsp import kernel_file

REPOSITORY = Path(__file__).parents[2]
MARK = "KERNEL_LSP_TEST_HOME"  # in the environment of every process that a test's editor starts, directly or not
SETTLE_SECONDS = 10.0


@dataclass(frozen=True)
class Home:
    """A home folder, the environment to run an editor in, and the file with what was opened in the browser."""

    folder: Path
    environment: dict[str, str]
    opened: Path

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def snippets(heading: str, page: str = "docs/editors.md") -> list[str]:
    """The fenced blocks under a heading, as they are written, up to the next heading of the same or a higher rank."""
    text = (REPOSITORY / page).read_text()
    rank = len(heading) - len(heading.lstrip("#"))
    fences = re.compile(r"^```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    blank = fences.sub(lambda block: re.sub(r"[^\n]", " ", block.group()), text)  # a comment in a block is no heading
    begin = re.search(rf"^{re.escape(heading)}$", blank, re.MULTILINE)
    assert begin is not None, f"{page} has no heading “{heading}”"
    end = re.compile(rf"^#{{1,{rank}}} ", re.MULTILINE).search(blank, begin.end())
    found = fences.findall(text[begin.end() : end.start() if end else len(text)])
    assert found, f"{page} has no snippet under “{heading}”"
    return list(found)


def editor(name: str) -> str:
    """The program, out of .editors/bin if it is there, else off PATH."""
    unpacked = REPOSITORY / ".editors" / "bin" / name
    found = str(unpacked) if unpacked.exists() else shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not here. `make test-terminal-editors` installs it.")
    return found


def version(program: str) -> str:
    """The first line of what --version says."""
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def processes(home: Home) -> dict[int, str]:
    """What runs in the environment of a test, by process id."""
    found = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(home.folder) and process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = " ".join(process.cmdline())
        except psutil.Error:
            continue
    return found


def settled(home: Home) -> dict[int, str]:
    """What still runs once there was time to end; it is ended, so that it disturbs no other test."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (left := processes(home)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in left:
        try:
            psutil.Process(pid).kill()
        except psutil.Error:
            continue
    return left


def run(home: Home, command: list[str], folder: Path, seconds: float, **variables: str) -> tuple[str, dict[int, str]]:
    """Run an editor to its end: what it printed, and every process seen meanwhile."""
    output = home.folder / "output"
    seen: dict[int, str] = {}
    with open(output, "w") as file:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**home.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < deadline:
            seen |= processes(home)
            time.sleep(0.2)
        if process.poll() is None:
            process.kill()
            process.wait()
            pytest.fail(f"{command[0]} did not end within {seconds} s:\n{output.read_text()}")
    return output.read_text(), seen


def steps(home: Home, output: str) -> list[tuple[str, Any]]:
    """What a session's driver wrote down, in its order; fails with what it printed where it failed."""
    path = home.folder / "seen"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found = [(line["step"], line["value"]) for line in lines]
    for step, value in found:
        if step == "error":
            pytest.fail(f"{value}\nbefore: {found}\nprinted: {output}")
    assert found, output
    return found


def assert_server_ran(seen: dict[int, str], project: Path) -> None:
    """Assert it, with its worker in the interpreter of the configuration; the look at what is left can see both."""
    commands = list(seen.values())
    python = str(project / ".venv" / "bin" / "python")
    assert any("kernel-lsp serve" in command for command in commands), commands
    assert any("kernel_lsp/worker" in command and command.startswith(python) for command in commands), commands


def assert_kernel(project: Path) -> None:
    """The kernel file is there, and is one."""
    parsed = kernel_file.parse((project / "kernels" / "rms_norm_triton.py").read_text())
    assert parsed.class_name == "RMSNorm"
    assert parsed.claim is not None and parsed.claim.verdict.status == "ok"
