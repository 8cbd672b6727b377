"""Fixtures of the tests in real editors: a project, a home of its own, and a look at what is left of the processes.

They are not skipped where an editor is missing: they are asked for by ``-m editors``, and then they are to run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.editing import MARK, Home, settled

REPOSITORY = Path(__file__).parents[2]
SAMPLE = REPOSITORY / "samples" / "rms_norm.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """samples/rms_norm.py with small shapes in a project of its own, whose .venv is the environment of these tests."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[tool.kernel-lsp]\ndevice = "interpreter"\n')
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    text = SAMPLE.read_text().replace("8, 1024, 4096", "2, 4, 64").replace("[4096]", "[64]")
    (folder / "rms_norm.py").write_text(text)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Afterwards nothing that the editor started, or that this started in turn, is left."""
    folder = tmp_path / "home"
    programs = tmp_path / "programs"
    folder.mkdir()
    programs.mkdir()
    opened = tmp_path / "opened-in-the-browser"
    browser = programs / "xdg-open"
    browser.write_text(f'#!/bin/sh\necho "$1" >>"{opened}"\n')
    browser.chmod(0o755)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "TMUX", "EMACS", "NVIM"))}
    environment = {
        **own,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), own["PATH"]]),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "OMP_NUM_THREADS": "1",
        MARK: str(folder),
    }
    one = Home(folder, environment, opened)
    yield one
    left = settled(one)
    assert not left, f"still running after the editor was quit: {left}"
