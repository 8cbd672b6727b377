"""Helix in a terminal, with the configuration of docs/editors.md: code action to re-validated on save."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.editors.editing import (
    Home,
    assert_kernel,
    assert_server_ran,
    editor,
    processes,
    settled,
    snippets,
)
from tests.editors.terminal import Terminal, terminal

pytestmark = pytest.mark.editors

ACTION = re.compile("(Generate|Validate|Show validation|Use RMSNormTriton|Open|Cancel|Add) ")


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("program", "browses"), [("hx", True), ("hx-25.01", False)])
def test_helix(program: str, browses: bool, project: Path, home: Home) -> None:
    home.write(".config/helix/languages.toml", snippets("## Helix")[0])
    kernel = project / "kernels" / "rms_norm_triton.py"
    with terminal(home, project, [editor(program), "rms_norm.py"]) as helix:
        helix.until("class RMSNorm")
        to_the_class(helix)
        act(helix, "Generate Triton kernel for RMSNorm")
        helix.until("RMSNormTriton is correct under Triton's interpreter", 60)
        until(helix, lambda: 'status = "ok"' in kernel.read_text())  # the verdict is told before it is written
        assert_kernel(project)
        assert_server_ran(processes(home), project)

        helix.press("Space", "k")
        helix.until("✓ RMSNormTriton · .*torch 2.*Error against float64")
        helix.press("Escape")

        # The maths is changed: stale at once, out of date once it is saved, right again once it is changed back and saved.
        change(helix, "[)] [*] self", ") / self")
        helix.until("RMSNorm, or something it uses, changed")
        command(helix, "write")
        helix.until("RMSNormTriton is out of date", 60)
        change(helix, "[)] / self", ") * self")
        command(helix, "write")
        helix.until("RMSNormTriton is correct", 60)

        act(helix, "Show validation report for RMSNorm")
        if browses:
            until(helix, home.opened.exists)
            assert home.opened.read_text().strip().endswith("/RMSNorm.html")
        else:
            helix.until("Validation report: /.*/RMSNorm.html")
        command(helix, "quit-all!")
        assert not settled(home)


def to_the_class(helix: Terminal) -> None:
    """Onto its name: what a diagnostic says is shown where the cursor is."""
    helix.press("Escape")
    helix.type("7ggww")


def act(helix: Terminal, title: str) -> None:
    """Open the menu of actions, once the server has some, and choose one."""

    def open_menu() -> bool:
        helix.press("Escape", "Space", "a")
        time.sleep(0.5)
        return title in helix.screen()

    until(helix, open_menu)
    menu = [line for line in helix.screen().splitlines() if ACTION.search(line)]
    for _ in range(next(i for i, line in enumerate(menu) if title in line)):
        helix.press("Down")
    helix.press("Enter")


def change(helix: Terminal, before: str, after: str) -> None:
    """Search, change what was found, and go back to the class."""
    helix.type(f"/{before}")
    helix.press("Enter")
    helix.type(f"c{after}")
    to_the_class(helix)


def command(helix: Terminal, text: str) -> None:
    helix.type(f":{text}")
    helix.press("Enter")


def until(helix: Terminal, holds: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s:\n{helix.screen()}"
        time.sleep(0.1)
