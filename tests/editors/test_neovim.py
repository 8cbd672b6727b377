"""Neovim, headless, with the configuration of docs/editors.md: code action to re-validated on save."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.editors.editing import Home, assert_kernel, assert_server_ran, editor, run, snippets, steps, version

FLOW = Path(__file__).with_name("neovim_flow.lua")
ERROR, INFORMATION, HINT = 1, 3, 4

pytestmark = pytest.mark.editors


@pytest.mark.timeout(240)
@pytest.mark.parametrize("which", ["newest", "0.10", "this Debian's"])
def test_neovim(which: str, project: Path, home: Home) -> None:
    program = {"newest": editor("nvim"), "0.10": editor("nvim-0.10")}.get(which) or shutil.which("nvim")
    assert program is not None, "`make test-terminal-editors` installs Debian's Neovim"
    number = tuple(map(int, re.findall(r"\d+", version(program))[:2]))
    heading = "### Neovim 0.11 and newer" if number >= (0, 11) else "### Neovim before 0.11"
    home.write(".config/nvim/init.lua", "\n".join(snippets(heading)))

    command = [program, "--headless", "-i", "NONE", "rms_norm.py", "-c", f"luafile {FLOW}"]
    browses = number >= (0, 10)
    output, processes = run(
        home,
        command,
        project,
        200,
        SEEN=str(home.folder / "seen"),
        OPENED=str(home.opened),
        LENSES="yes" if number < (0, 11) or number >= (0, 12) else "no",
        BROWSES="yes" if browses else "no",
    )
    seen = steps(home, output)

    assert [step for step, _ in seen if step.startswith("kernel-")] == [
        "kernel-valid",
        "kernel-stale",
        "kernel-wrong",
        "kernel-valid",
    ]
    first, stale, wrong, again = (value for step, value in seen if step.startswith("kernel-"))
    assert (first["severity"], first["line"], first["column"]) == (INFORMATION, 6, 6)
    for message in (first["message"], again["message"]):
        assert message.startswith("RMSNormTriton is correct under Triton's interpreter")
    assert stale["severity"] == HINT and wrong["severity"] == ERROR
    assert_hover(value_of(seen, "hover"))
    assert any(line.startswith("from kernels import rms_norm_triton") for line in value_of(seen, "text"))
    assert not re.search(r"^E\d+|[Ee]rror|deprecated|Traceback", value_of(seen, "messages"), re.MULTILINE)
    assert_kernel(project)
    assert_server_ran(processes, project)
    if browses:
        assert home.opened.read_text().strip().endswith("/RMSNorm.html")


def value_of(seen: list[tuple[str, Any]], wanted: str) -> Any:
    return next(value for step, value in seen if step == wanted)


def assert_hover(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert "RMSNormTriton** is correct" in text and "Error against float64" in text
    assert "torch 2." in text and "rms_norm_triton.py" in text
