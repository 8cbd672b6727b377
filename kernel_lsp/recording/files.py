"""Where recorded runs lie: one JSON file a command, in a folder for each project beside the store's database.

The latest run of a command takes the place of the one before; what other commands showed stays beside it. A file is
written whole or not at all, so any number of processes may read and write.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import tempfile
from pathlib import Path

from kernel_lsp import schema
from kernel_lsp.errors import RecordingNotWritten
from kernel_lsp.recording.records import FORMAT, Run
from kernel_lsp.store import database

MOST_RUNS = 12  # commands of one project that are kept
MOST_BYTES = 32 << 20  # of a file that is read
#: what a project's folder holds
_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def project_of(folder: Path) -> Path:
    """The nearest folder, from ``folder`` upwards, that looks like a project's; itself where there is none."""
    start = Path(os.path.realpath(folder))
    for each in (start, *start.parents):
        if any((each / marker).exists() for marker in _MARKERS):
            return each
    return start


def keep(run: Run, base: Path | None) -> Path | None:
    """Write a run into its project's folder. ``base``: see ``default_base``; None: keep nothing.

    Raises:
        RecordingNotWritten: the system refuses.
    """
    if base is None:
        return None
    folder = folder_of(Path(run.root), base)
    path = folder / f"{_digest(run.command)}.json"
    write(run, path)
    runs = sorted(folder.glob("*.json"), key=_modified, reverse=True)
    for old in runs[MOST_RUNS:]:
        with contextlib.suppress(OSError):
            old.unlink()
    return path


def write(run: Run, path: Path) -> None:
    """Write a run as JSON.

    Raises:
        RecordingNotWritten: the system refuses.
    """
    text = json.dumps(schema.finite(schema.to_json(run)), ensure_ascii=False, indent=1, allow_nan=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(new, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise
    except OSError as error:
        raise RecordingNotWritten(path=str(path), detail=error.strerror or error) from None


def find(file: Path, base: Path | None) -> list[Run]:
    """The runs that may have called classes of a source file, the newest first: of every folder above it."""
    if base is None or not base.is_dir():
        return []
    found: list[Run] = []
    for folder in Path(os.path.realpath(file)).parents:
        for path in sorted(folder_of(folder, base).glob("*.json")):
            run = read(path)
            if run is not None:
                found.append(run)
    return sorted(found, key=lambda run: run.at, reverse=True)


def read(path: Path) -> Run | None:
    """The run in a file; None where it cannot be read, or is of another format. Not to be changed: it is kept."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return _read(path, stat.st_mtime_ns, stat.st_size) if stat.st_size <= MOST_BYTES else None


@functools.lru_cache(maxsize=64)
def _read(path: Path, mtime_ns: int, size: int) -> Run | None:
    try:
        data = json.loads(path.read_text("utf-8"))
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            return None
        run: Run = schema.from_json(Run, data)
        return run
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def default_base() -> Path | None:
    """The folder of all recordings, beside the store; None where the user wants no store."""
    store = database.default_path()
    return store.parent / "recordings" if store is not None else None


def folder_of(root: Path, base: Path) -> Path:
    """The folder for a project's runs."""
    return base / _digest(str(root))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
