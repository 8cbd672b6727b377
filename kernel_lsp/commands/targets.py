"""What an argument of the command line names: a file, a folder, or a class in a file."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from kernel_lsp.errors import PathMissing

_ONE_COLON = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_][\w.]*)")


def split(target: str) -> tuple[Path, str]:
    """The path and the class of ``FILE::CLASS``; the class is "" for a file or a folder.

    Raises:
        PathMissing: there is no such file or folder; with what was probably meant.
    """
    if os.path.exists(target):
        return Path(target), ""
    name, separator, class_name = target.rpartition("::")
    if separator and os.path.exists(name):
        return Path(name), class_name
    if separator:
        existing(name, f"::{class_name}")
    return existing(target), ""


def existing(name: str, rest: str = "") -> Path:
    """The path that an argument names. ``rest``: what follows the path in the argument.

    Raises:
        PathMissing: there is none; with what was probably meant.
    """
    path = Path(name)
    if path.exists():
        return path
    raise path_missing(name, rest)


def path_missing(name: str, rest: str = "") -> PathMissing:
    """The error for a path that is not there, with what was probably meant. ``rest``: what follows it in the argument."""
    meant = _class_meant(name) if not rest else ""
    near = meant or _near(Path(name))
    hint = f"; did you mean {near}{'' if meant else rest}?" if near else "."
    return PathMissing(path=name, hint=hint)


def _class_meant(name: str) -> str:
    """``FILE::CLASS`` for ``blocks.py:Mish`` and ``pkg.blocks.Mish``, where there is such a file; else ""."""
    found = _ONE_COLON.fullmatch(name)
    if found is not None and os.path.isfile(found["path"]):
        return f"{found['path']}::{found['name']}"
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        return ""
    for count in range(len(parts), 0, -1):
        file = Path(*parts[:count]).with_suffix(".py")
        if file.is_file():
            rest = ".".join(parts[count:])
            return f"{file}::{rest}" if rest else str(file)
    return ""


def _near(path: Path) -> str:
    """The path with the nearest name in the deepest folder of it that exists; "" where none is near."""
    missing = path
    while not os.path.lexists(missing.parent):
        missing = missing.parent
    try:
        there = os.listdir(missing.parent)
    except OSError:
        return ""
    near = difflib.get_close_matches(missing.name, there, n=1)
    return str(missing.parent / near[0]) if near else ""
