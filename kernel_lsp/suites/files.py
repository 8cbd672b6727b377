"""Which Python files of a folder hold a user's modules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kernel_lsp import kernel_file

SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "build", "dist"}


def python_files(folder: Path) -> Iterator[Path]:
    """The Python files under a folder, in order; no kernel files, hidden or installed ones."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED_FOLDERS
            and not name.startswith(".")
            and not os.path.exists(os.path.join(parent, name, "pyvenv.cfg"))
        )
        for name in sorted(files):
            file = Path(parent) / name
            if name.endswith(".py") and not kernel_file.looks_like(file):
                yield file
