"""Git repositories of the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Run git, with nothing of this machine's configuration."""
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    command = ["git", "-c", "protocol.file.allow=always", "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> None:
    """Commit everything; the repository is made where there is none."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "as it is")


def branch_off(folder: Path, changed: Path, files: int) -> None:
    """Commit everything to ``main``; on the branch ``other`` the FACTOR in ``changed`` is 3.0, and there are more files."""
    commit(folder)
    git(folder, "checkout", "-qb", "other")
    changed.write_text("FACTOR = 3.0\n")
    for number in range(files):
        (folder / f"more_{number}.py").write_text(f"X = {number}\n")
    commit(folder)
    git(folder, "checkout", "-q", "main")
