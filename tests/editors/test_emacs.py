"""Emacs in batch, with eglot and with lsp-mode, and with the configuration of docs/editors.md: code action to re-validated on save."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.editors.editing import (
    Home,
    assert_kernel,
    assert_server_ran,
    editor,
    run,
    snippets,
    steps,
    version,
)

HERE = Path(__file__).parent

pytestmark = pytest.mark.editors


@pytest.mark.timeout(240)
@pytest.mark.parametrize("which", ["newest", "this Debian's"])
def test_eglot(which: str, project: Path, home: Home) -> None:
    program = editor("emacs") if which == "newest" else debians_emacs()
    browses = int(re.findall(r"\d+", version(program))[0]) >= 30
    seen, processes = session(program, "### eglot", "eglot_flow.el", project, home, BROWSES="yes" if browses else "no")

    verdicts = [(step, value) for step, value in seen if step.startswith("kernel-")]
    assert [step for step, _ in verdicts] == ["kernel-valid", "kernel-stale", "kernel-outdated", "kernel-valid"]
    first, _, outdated, again = (value for _, value in verdicts)
    assert first["type"] == "eglot-note" and first["line"] == 7
    for verdict in (first, again):
        assert "RMSNormTriton is correct under Triton's interpreter" in verdict["text"]
    assert outdated["type"] == "eglot-warning"
    found = dict(seen)
    hover = found["hover"]
    if which == "newest":
        assert "**" not in hover  # there is no markdown-mode, and so Emacs says that it shows plain text
    assert "✓ RMSNormTriton · " in hover.replace("**", "") and "torch 2." in hover
    assert "from kernels import rms_norm_triton" in found["text"]
    assert not re.search(r"error|warning|Traceback", found["messages"], re.IGNORECASE), found["messages"]
    assert_kernel(project)
    assert_server_ran(processes, project)
    if browses:
        assert home.opened.read_text().strip().endswith("/RMSNorm.html")


@pytest.mark.timeout(240)
def test_lsp_mode(project: Path, home: Home) -> None:
    seen, processes = session(debians_emacs(), "### lsp-mode", "lsp_mode_flow.el", project, home)
    assert [step for step, _ in seen if step != "messages"] == ["kernel-valid", "kernel-outdated", "kernel-valid"]
    assert_kernel(project)
    assert_server_ran(processes, project)


def debians_emacs() -> str:
    program = shutil.which("emacs")
    assert program is not None, "`make test-terminal-editors` installs Debian's Emacs"
    return program


def session(
    program: str, heading: str, flow: str, project: Path, home: Home, **variables: str
) -> tuple[list[tuple[str, Any]], dict[int, str]]:
    """Emacs with the snippet under a heading as its init file: what the session wrote down, and what ran meanwhile."""
    configuration = home.write(".emacs.d/init.el", snippets(heading)[0])
    packages = ["--eval", "(package-initialize)"]
    command = [program, "--batch", *packages, "-l", str(configuration), "-L", str(HERE), "-l", str(HERE / flow)]
    variables = {"SEEN": str(home.folder / "seen"), "OPENED": str(home.opened), **variables}
    output, processes = run(home, command, project, 200, **variables)
    return steps(home, output), processes
