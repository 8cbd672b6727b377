"""What an argument of the command line names: a file, a folder, or a class in a file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from kernel_lsp import nearest
from kernel_lsp.analysis import (
    ModuleClass,
    Source,
    fingerprint,
    imported_with_inputs,
    module_classes,
    not_found,
    read_file,
)
from kernel_lsp.analysis.parts import holders
from kernel_lsp.errors import ClassNotFound, ClassNotNamed, PathMissing
from kernel_lsp.settings import load

_ONE_COLON = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_][\w.]*)")


def parts(target: str) -> tuple[str, str]:
    """The path and the class of ``FILE::CLASS``, whether or not they are there; the class is "" for a file or a folder."""
    name, separator, class_name = target.rpartition("::")
    return (name, class_name) if separator and not os.path.exists(target) else (target, "")


def split(target: str) -> tuple[Path, str]:
    """The same of a path that is there.

    Raises:
        PathMissing: there is no such file or folder; with what was probably meant.
    """
    name, class_name = parts(target)
    return existing(name, f"::{class_name}" if class_name else ""), class_name


def one_class(target: str) -> tuple[Path, str]:
    """The same of a class. Of a file it is the only one, or the only one with example inputs.

    Raises:
        PathMissing: there is no such file or folder; with what was probably meant.
        ClassNotNamed: a folder is named, or a file that leaves open which class is meant.
    """
    path, class_name = split(target)
    if class_name and not path.is_dir():
        return path, class_name
    text = read_file(path) if path.is_file() else None
    found = module_classes(text or "", path)
    if len(meant := _meant(text or "", path, found)) == 1:
        return path, meant[0]
    raise ClassNotNamed(path=target, example=f"{path}::{found[0].name}" if found else "model.py::RMSNorm")


def _meant(text: str, path: Path, found: Sequence[ModuleClass]) -> list[str]:
    """The classes of a file that it may be about: all if there is one, else those with inputs that are no part of another."""
    absolute = Path(os.path.abspath(path))
    imported = imported_with_inputs(text)
    if len(found) + len(imported) < 2:
        return [*(one.name for one in found), *imported]
    settings = load(absolute)[0]
    with_inputs = [one.name for one in found if one.inputs or settings.inputs_for(absolute, one.name) is not None]
    names = [*with_inputs, *imported]
    holders_of = holders(Source(text), names, found)
    return names if len(names) < 2 else [name for name in names if not holders_of[name]]


#: suffixes of files that Python runs; it also runs others, so one counts as no Python where it has no class either
_PYTHON = ("", ".py", ".pyw")
_MOST_BYTES = 10_000_000  # of a file that is read to find out: weights are larger


def is_not_python(path: Path) -> bool:
    """Whether a file that is there is of another kind: by its suffix, and there is no module class in it."""
    if path.suffix in _PYTHON or not path.is_file():
        return False
    text = read_file(path) if path.stat().st_size < _MOST_BYTES else None
    return text is None or not (module_classes(text, path) or imported_with_inputs(text))


def require_class(path: Path, class_name: str) -> None:
    """See that a file that can be read has the class, or imports it.

    Raises:
        ClassNotNamed: a folder is named.
        SyntaxInvalid, ClassNotFound: it does not; with the syntax error that hides it, or the nearest name.
    """
    if path.is_dir():
        raise ClassNotNamed(path=f"{path}::{class_name}", example="model.py::RMSNorm")
    text = read_file(path)
    if text is None:
        return
    try:
        fingerprint(text, path, class_name)
    except ClassNotFound:
        raise not_found(text, path, class_name) from None


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
    return PathMissing(path=name, hint=nearest.did_you_mean(near and near + ("" if meant else rest)) or ".")


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
    near = nearest.nearest(missing.name, there)
    return str(missing.parent / near) if near else ""
