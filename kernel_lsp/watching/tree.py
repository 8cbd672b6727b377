"""The folders and Python files under some paths, as they are at one moment."""

from __future__ import annotations

import os
import stat as modes
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kernel_lsp.suites.files import SKIPPED_FOLDERS

MOST_FOLDERS = 10_000  # somebody's whole home folder must not use up the system's watches

Identity = tuple[int, int]  # of a folder: device and inode, whatever its path
Stamp = tuple[int, int, int, int]  # changes whenever a file's content does, also where a tool sets back its time


@dataclass(frozen=True)
class Folder:
    """A folder to watch. ``only``: the names in it that matter; None: all Python files and folders, skipped ones aside."""

    identity: Identity
    only: frozenset[str] | None = None


@dataclass
class Tree:
    """What ``look`` found.

    Attributes:
        folders: what has to be watched to learn of the next change.
        files: the Python files and pyproject.toml under the roots; a folder with two paths counts once.
        further: the files beside the roots that were asked for, as far as they exist.
        left_out: the first folder that was left out, because there are too many.
    """

    folders: dict[Path, Folder] = field(default_factory=dict)
    files: dict[Path, Stamp] = field(default_factory=dict)
    further: dict[Path, Stamp] = field(default_factory=dict)
    left_out: Path | None = None

    def changed_since(self, before: Tree) -> set[Path]:
        """The files that are new, gone or have another stamp."""
        old, new = before.files | before.further, self.files | self.further
        return {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}


def is_file_of_interest(name: str) -> bool:
    """Whether a change of a file of that name may change a verdict: Python, or the project's settings."""
    return name.endswith(".py") or name == "pyproject.toml"


def is_skipped(name: str) -> bool:
    """Whether a folder of this name is passed over: hidden ones, caches, installed packages."""
    return name.startswith(".") or name in SKIPPED_FOLDERS


def stamp(path: Path | str) -> Stamp | None:
    """The stamp of a file; None where there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return _stamp(found)


def look(roots: Iterable[Path], further: Iterable[Path] = (), most: int = MOST_FOLDERS) -> Tree:
    """Everything under the roots (absolute paths), the shallowest folders first, and the state of the ``further`` files.

    Links to folders are followed, each folder is entered once. Virtual environments are passed over.
    """
    tree = Tree()
    roots = list(dict.fromkeys(roots))
    links: list[Path] = []  # files that are links: what they lead to lies elsewhere
    for path, entries in _walk(roots, tree, most):
        for entry in entries:
            if is_file_of_interest(entry.name):
                file = path / entry.name
                found = stamp(file)
                if found is not None:
                    tree.files[file] = found
                if entry.is_symlink():
                    links.append(file)
    for root in roots:
        found = stamp(root) if root not in tree.folders else None
        if found is not None and root.is_file():
            tree.files[root] = found
            links.append(root)
        for folder in root.parents:
            _add(tree, folder, folder_child(folder, root))
    for file in further:
        if file not in tree.files:
            found = stamp(file)
            if found is not None:
                tree.further[file] = found
            _add_anchor(tree, file)
    for file in links:
        _add_anchor(tree, Path(os.path.realpath(file)))
    return tree


def folder_child(folder: Path, path: Path) -> str:
    """The name in ``folder`` on the way to ``path``."""
    return path.relative_to(folder).parts[0]


def _walk(roots: list[Path], tree: Tree, most: int) -> Iterator[tuple[Path, list[os.DirEntry[str]]]]:
    """Each folder with its entries, the folders behind links last, so that a folder goes by its own path."""
    seen: set[Identity] = set()
    todo, linked = deque(roots), deque[Path]()
    while todo or linked:
        path = todo.popleft() if todo else linked.popleft()
        try:
            found = os.stat(path)
            if not modes.S_ISDIR(found.st_mode) or (found.st_dev, found.st_ino) in seen:
                continue
            with os.scandir(path) as listed:
                entries = list(listed)
        except OSError:  # gone meanwhile, or not ours to read
            continue
        if path not in roots and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        if len(seen) >= most:
            tree.left_out = path
            return
        seen.add((found.st_dev, found.st_ino))
        tree.folders[path] = Folder((found.st_dev, found.st_ino))
        yield path, [entry for entry in entries if not _is_folder(entry)]
        for entry in entries:
            if _is_folder(entry) and not is_skipped(entry.name):
                (linked if entry.is_symlink() else todo).append(path / entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _add_anchor(tree: Tree, path: Path) -> None:
    """Watch the nearest folder above a path that is there, for the next name on the way."""
    for folder in path.parents:
        if folder.is_dir():
            _add(tree, folder, folder_child(folder, path))
            return


def _add(tree: Tree, folder: Path, name: str) -> None:
    known = tree.folders.get(folder)
    if known is not None:
        if known.only is not None:
            tree.folders[folder] = Folder(known.identity, known.only | {name})
        return
    try:
        found = os.stat(folder)
    except OSError:
        return
    tree.folders[folder] = Folder((found.st_dev, found.st_ino), frozenset({name}))


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
