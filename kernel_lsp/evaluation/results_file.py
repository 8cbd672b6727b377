"""A results file: JSON lines, a header and then one record a line, which survives whatever ends the program.

Each line is written by one call and flushed to the disk, so that a crash costs at most the line it interrupts. Such half a
line is cut away before the next is written, and not earlier. A last line that lacks its end alone is kept.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from kernel_lsp import schema
from kernel_lsp.errors import (
    NotAResultsFile,
    ResultsInUse,
    ResultsMissing,
    ResultsNotWritten,
    ResultsOfAnotherVersion,
)
from kernel_lsp.evaluation.records import FORMAT, INTERRUPTED, Record

HEADER = "kernel-lsp-eval"  # the header's first key; its value is the format
_BEGINNING = b'{"' + HEADER.encode() + b'"'


@dataclass
class Contents:
    """What a results file holds. ``whole``: its length in bytes without half a line at the end, ``cut``: that half's."""

    header: dict[str, Any] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    whole: int = 0
    damaged: list[int] = field(default_factory=list)  # lines that are no records, counted from 1
    cut: int = 0
    ended: bool = True  # whether the last line that is kept has its newline
    path: str = ""


def read(path: Path) -> Contents:
    """A results file's contents; an empty one, or one that only began, holds nothing.

    Raises:
        ResultsMissing: there is no such file.
        NotAResultsFile, ResultsOfAnotherVersion: it is something else.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ResultsMissing(path=str(path)) from None
    except OSError as error:
        raise NotAResultsFile(path=str(path), detail=error.strerror or error) from None
    return parse(data, str(path))


def parse(data: bytes, path: str) -> Contents:
    """The contents of a results file's bytes; ``path`` is for the messages.

    Raises:
        UserError: as ``read``.
    """
    *lines, rest = data.split(b"\n")
    ended = not _is_whole(rest, header=not lines)
    if not ended:
        lines, rest = [*lines, rest], b""
    if not lines:
        begun = rest[: len(_BEGINNING)]
        if not _BEGINNING.startswith(begun):  # not cut off in its header: something of the user's
            raise NotAResultsFile(path=path, detail="its first line is no header of one")
        return Contents(path=path)
    contents = Contents(_header(lines[0], path), whole=len(data) - len(rest), cut=len(rest), ended=ended, path=path)
    for number, line in enumerate(lines[1:], 2):
        try:
            contents.records.append(Record.from_json(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError):
            contents.damaged.append(number)
    return contents


def _is_whole(line: bytes, *, header: bool) -> bool:
    """Whether a last line without its newline is a record, or a header, nevertheless."""
    try:
        data = json.loads(line)
        if header:
            return isinstance(data, dict) and HEADER in data
        Record.from_json(data)
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return True


def _header(line: bytes, path: str) -> dict[str, Any]:
    try:
        header = json.loads(line)
        found = header[HEADER]
    except (ValueError, TypeError, KeyError):
        raise NotAResultsFile(path=path, detail="its first line is no header of one") from None
    if found != FORMAT:
        raise ResultsOfAnotherVersion(path=path, found=found, known=FORMAT)
    return dict(header)


def merged(records: Iterable[Record]) -> dict[tuple[str, str, str], Record]:
    """One record for each problem and mode: the latest, but never one of an interruption where there is another."""
    latest: dict[tuple[str, str, str], Record] = {}
    for record in records:
        other = latest.get(record.key)
        if other is None or _rank(record) >= _rank(other):
            latest[record.key] = record
    return latest


def _rank(record: Record) -> tuple[bool, str]:
    return record.status != INTERRUPTED, record.at  # ISO 8601 in UTC sorts as it happened


class ResultsFile:
    """A results file that this process alone writes, from ``with`` to its end.

    Entering raises:
        ResultsInUse: another process writes it.
        ResultsNotWritten: it cannot be written.
        NotAResultsFile, ResultsOfAnotherVersion: something else is there, which stays as it is.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        self.contents = Contents()
        self._header = {HEADER: FORMAT} | header
        self._fd = -1
        self._bare = False  # made here, and nothing but the header in it
        self._cut = False  # half a line is still at the end

    def __enter__(self) -> ResultsFile:
        try:
            # A folder that is not there is not made: it may be a typing error, of which hours would hang.
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise ResultsNotWritten(path=str(self.path), detail=error.strerror or error) from None
        try:
            self._lock()
            self.contents = parse(_all(self._fd), str(self.path))
            if not self.contents.whole:
                os.ftruncate(self._fd, 0)
                self.contents.header = dict(self._header)
                self._write(self._header)
                self._bare = True
            elif not self.contents.ended:
                self._write_line(b"\n")
                self.contents.ended, self.contents.whole = True, self.contents.whole + 1
            self._cut = bool(self.contents.cut)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bare:  # nothing came of it: no file is left behind
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._close()

    def append(self, record: Record) -> None:
        """Write a record; it is on the disk on return.

        Raises:
            ResultsNotWritten: the system refuses; the file then holds nothing of it.
        """
        if self._cut:
            self._truncate(self.contents.whole)
            self._cut = False
        self._write(record.to_json())
        self._bare = False

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise ResultsInUse(path=str(self.path)) from None
            # A network file system without locks: better written without one than not at all.

    def _write(self, data: dict[str, Any]) -> None:
        text = json.dumps(schema.finite(data), ensure_ascii=False, allow_nan=False)
        self._write_line(text.encode("utf-8", "replace") + b"\n")

    def _truncate(self, length: int) -> None:
        try:
            os.ftruncate(self._fd, length)
        except OSError as error:
            raise ResultsNotWritten(path=str(self.path), detail=error.strerror or error) from None

    def _write_line(self, line: bytes) -> None:
        before = os.fstat(self._fd).st_size
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, before)
            raise ResultsNotWritten(path=str(self.path), detail=error.strerror or error) from None

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _all(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)
