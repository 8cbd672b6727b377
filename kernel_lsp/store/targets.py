"""Which class a verdict is about: its file in a project, its name, and its fingerprint as it was then."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """A class as it was. Everything but the fingerprint is empty where version 1 of the store kept it.

    Attributes:
        file: relative to the project's folder, with ``/``.
        root: the project's folder; empty for what was imported from another machine.
        project: the name of that folder, which is all that an export tells of it.
    """

    fingerprint: str
    class_name: str = ""
    file: str = ""
    root: str = ""
    project: str = ""


def target_of(path: Path, root: Path | None, class_name: str, fingerprint: str) -> Target:
    """The target of a class in a source file. Without a project the file's own folder stands for it."""
    absolute = Path(os.path.abspath(path))
    folder = absolute.parent
    if root is not None and absolute.is_relative_to(os.path.abspath(root)):
        folder = Path(os.path.abspath(root))
    return Target(fingerprint, class_name, absolute.relative_to(folder).as_posix(), folder.as_posix(), folder.name)


def keep(connection: sqlite3.Connection, target: Target) -> int:
    """The row of a target, made if it is not there yet."""
    row = (target.fingerprint, target.class_name, target.file, target.root, target.project)
    columns = "fingerprint, class, file, root, project"
    where = "fingerprint = ? and class = ? and file = ? and root = ? and project = ?"
    found = connection.execute(f"select id from targets where {where}", row).fetchone()
    if found is None:
        made = connection.execute(f"insert into targets ({columns}) values (?, ?, ?, ?, ?)", row)
        return int(made.lastrowid or 0)
    return int(found[0])


def of_fingerprint(connection: sqlite3.Connection, fingerprint: str) -> list[int]:
    """The rows of every class with this fingerprint: a copy of a class counts as the class."""
    return [row[0] for row in connection.execute("select id from targets where fingerprint = ?", (fingerprint,))]


def of_class(
    connection: sqlite3.Connection, path: Path, root: Path | None, class_name: str, fingerprint: str = ""
) -> list[int]:
    """The rows of a class in a file, whatever it was like, in every project folder that the file may have been kept under.

    What was imported counts where project, file and class have the same names; what version 1 kept, where it has one
    of the fingerprints that the others have, or ``fingerprint``.
    """
    here = target_of(path, root, class_name, "")
    absolute = Path(os.path.abspath(path))
    places = [(folder.as_posix(), absolute.relative_to(folder).as_posix()) for folder in absolute.parents]
    rows: list[tuple[int, str]] = []
    for folder, file in places:
        query = "select id, fingerprint from targets where file = ? and class = ? and root = ?"
        rows += connection.execute(query, (file, class_name, folder)).fetchall()
    query = "select id, fingerprint from targets where file = ? and class = ? and root = '' and project = ?"
    rows += connection.execute(query, (here.file, class_name, here.project)).fetchall()
    ids = [row[0] for row in rows]
    for one in {fingerprint, *(row[1] for row in rows)} - {""}:
        query = "select id from targets where fingerprint = ? and file = ''"
        ids += [row[0] for row in connection.execute(query, (one,))]
    return ids


def classes_under(connection: sqlite3.Connection, path: Path, root: Path | None) -> list[tuple[str, str]]:
    """The (file, class) pairs at or under a path that the store knows; the file as an absolute path."""
    absolute = Path(os.path.abspath(path))
    folder = Path(os.path.abspath(root)) if root is not None else (absolute.parent if path.is_file() else absolute)
    found = set()
    query = "select distinct class, file, root, project from targets where file != ''"
    for class_name, file, kept_root, project in connection.execute(query):
        if not kept_root and project != folder.name:
            continue
        place = Path(kept_root or folder, file)
        if place == absolute or place.is_relative_to(absolute):
            found.add((str(place), class_name))
    return sorted(found)
