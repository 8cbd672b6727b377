"""Neovim, headless, with the configuration of docs/editors.md: code action to re-validated on save, and a regression."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp import kernel_file
from tests.editors.editing import Home, assert_kernel, assert_server_ran, editor, run, snippets, steps, version
from tests.server.lsp_client import MODULE
from tests.server.test_regressed import FASTER, regressed

FLOW = Path(__file__).with_name("neovim_flow.lua")
REGRESSED = Path(__file__).with_name("neovim_regressed.lua")
WARNING, HINT = 2, 4

pytestmark = pytest.mark.editors


@pytest.mark.timeout(240)
@pytest.mark.parametrize("which", ["newest", "0.10", "this Debian's"])
def test_neovim(which: str, project: Path, home: Home) -> None:
    program, number = neovim(which, home)
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
        "kernel-outdated",
        "kernel-valid",
    ]
    first, stale, outdated, again = (value for step, value in seen if step.startswith("kernel-"))
    assert (first["severity"], first["line"], first["column"]) == (HINT, 6, 6)
    for message in (first["message"], again["message"]):
        assert message.startswith("RMSNormTriton is correct under Triton's interpreter")
    assert stale["severity"] == HINT and outdated["severity"] == WARNING
    assert_hover(value_of(seen, "hover"))
    assert any(line.startswith("from kernels import rms_norm_triton") for line in value_of(seen, "text"))
    assert not re.search(r"^E\d+|[Ee]rror|deprecated|Traceback", value_of(seen, "messages"), re.MULTILINE)
    assert_kernel(project)
    assert_server_ran(processes, project)
    if browses:
        assert home.opened.read_text().strip().endswith("/RMSNorm.html")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("which", ["newest", "0.10", "this Debian's"])
def test_a_regression_is_looked_at_and_taken_back(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """What a GPU would have found is planted in the store; the server, its worker and the validation are real."""
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    home: Home = request.getfixturevalue("home")  # takes over the environment
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text('[tool.kernel-lsp]\ndevice = "interpreter"\n')
    (project / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    (project / "double.py").write_text(MODULE)
    kernel = regressed(project / "double.py")
    program, number = neovim(which, home)
    command = [program, "--headless", "-i", "NONE", "double.py", "-c", f"luafile {REGRESSED}"]
    output, processes = run(
        home,
        command,
        project,
        200,
        SEEN=str(home.folder / "seen"),
        LENSES="yes" if number < (0, 11) or number >= (0, 12) else "no",
        SHOWS="yes" if number >= (0, 10) else "no",
    )
    seen = steps(home, output)
    assert [step for step, _ in seen if step.startswith("kernel-")] == ["kernel-regressed", "kernel-valid"]
    slower, restored = (value for step, value in seen if step.startswith("kernel-"))
    assert slower["severity"] == WARNING and "Slower than the kernel of 2026-01-09" in slower["message"]
    assert restored["message"].startswith("DoubleTriton is correct under Triton's interpreter")
    difference = value_of(seen, "difference")
    assert difference[0].startswith("Slower than the kernel of 2026-01-09: 10.8 µs instead of 10.0 µs")
    assert "--- double_triton.py\tfaster, of 2026-01-09, 10.0 µs" in difference
    assert any(line.startswith("-    tl.store(") for line in difference) and "+    pass" in difference
    if number >= (0, 10):
        assert value_of(seen, "filetype") == "diff"
    assert kernel_file.read(kernel).body == FASTER
    assert not re.search(r"^E\d+|[Ee]rror|deprecated|Traceback", value_of(seen, "messages"), re.MULTILINE)
    assert_server_ran(processes, project)


def neovim(which: str, home: Home) -> tuple[str, tuple[int, ...]]:
    """A Neovim and its version, with the configuration that the documentation has for it."""
    program = {"newest": editor("nvim"), "0.10": editor("nvim-0.10")}.get(which) or shutil.which("nvim")
    assert program is not None, "`make test-terminal-editors` installs Debian's Neovim"
    number = tuple(map(int, re.findall(r"\d+", version(program))[:2]))
    heading = "### Neovim 0.11 and newer" if number >= (0, 11) else "### Neovim before 0.11"
    home.write(".config/nvim/init.lua", "\n".join(snippets(heading)))
    return program, number


def value_of(seen: list[tuple[str, Any]], wanted: str) -> Any:
    return next(value for step, value in seen if step == wanted)


def assert_hover(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert "RMSNormTriton** · " in text and "Error against float64" in text
    assert "torch 2." in text and "rms_norm_triton.py" in text
