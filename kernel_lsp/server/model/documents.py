"""The open documents, and files as the workspace has them: open text first, then the disk.

The text is our own and not pygls' ``TextDocument``, which splits lines at form feeds, U+2028 and others and then
applies edits in the wrong place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import to_fs_path

from kernel_lsp.analysis import (
    ModuleClass,
    Position,
    Range,
    Source,
    fingerprint_of,
    module_classes_of,
    read_file,
    syntax_error,
)
from kernel_lsp.analysis.text import Encoding
from kernel_lsp.errors import ClassNotFound

from .time_stamps import settled

KERNEL_OPENING = "# /// kernel-lsp"  # kernel_file.OPENING, without importing what kernel_file needs


@dataclass
class Document:
    """One open document."""

    uri: str
    path: Path
    version: int | None
    source: Source
    encoding: Encoding
    _classes: tuple[int, list[ModuleClass]] | None = None  # with the generation of the workspace they hold for
    lenses: tuple[Any, list[dict[str, Any]]] | None = None  # kept by lens.lenses, with what they hold for
    _fingerprints: dict[str, tuple[int, str | None]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text with the edits so far."""
        return self.source.text.text

    @property
    def is_kernel_file(self) -> bool:
        """Whether it begins as a generated file does, wherever it lies."""
        return self.text.removeprefix("\ufeff").startswith(KERNEL_OPENING)

    @property
    def unparsed(self) -> bool:
        """Whether the text does not parse: then functions that it has may not be seen."""
        return self.source.has_error and syntax_error(self.text, self.path) is not None

    def forget(self) -> None:
        """Drop what is quickly made again."""
        self.lenses = None
        self.source.forget_tree()

    def source_of_kernel(self) -> Path:
        """The source file of the class that a kernel file is for.

        Raises:
            NotAKernelFile: the text has no header that can be read.
            SourceMissing: the source that it names is not there.
        """
        from kernel_lsp import kernel_file

        return kernel_file.find_source(self.path, kernel_file.parse(self.text, self.path))

    def position(self, place: types.Position) -> Position:
        """A client's position in code points."""
        return self.source.text.from_units(place.line, place.character, self.encoding)

    def wire_position(self, place: Position) -> dict[str, int]:
        """A position as it goes over the wire."""
        line, character = self.source.text.to_units(place, self.encoding)
        return {"line": line, "character": character}

    def wire_range(self, area: Range) -> dict[str, dict[str, int]]:
        """A range as JSON data, with columns in the client's encoding."""
        return {"start": self.wire_position(area.start), "end": self.wire_position(area.end)}

    def lsp_range(self, area: Range) -> types.Range:
        """A range as lsprotocol's type, with columns in the client's encoding."""
        start, end = self.wire_position(area.start), self.wire_position(area.end)
        return types.Range(types.Position(**start), types.Position(**end))

    def line_range(self, line: int) -> Range:
        """A line (0-based) from its first character that is no space to its end."""
        text = self.source.text.line(line)
        begin = len(text) - len(text.lstrip())
        return Range(Position(line, begin), Position(line, max(len(text), begin)))


def apply_changes(document: Document, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
    """Apply the changes of one didChange notification, in their order."""
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            text = document.source.text
            start = text.offset(document.position(change.range.start))
            end = text.offset(document.position(change.range.end))
            document.source.replace(min(start, end), max(start, end), change.text)
        else:
            document.source = Source(change.text)


class Documents:
    """The open documents by URI. ``generation`` counts every change that an answer could depend on."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self.generation = 0
        self._by_uri: dict[str, Document] = {}
        self._by_path: dict[Path, Document] = {}
        self._disk: dict[Path, tuple[tuple[int, int], str]] = {}
        self._elsewhere: dict[tuple[Path, str], tuple[int, str | None]] = {}  # fingerprints in files, open or not

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._by_uri.values()))

    def get(self, uri: str) -> Document | None:
        """The open document, None where it is not open."""
        return self._by_uri.get(uri)

    def open(self, item: types.TextDocumentItem) -> Document:
        """Hold a document from now on, in place of one with the same URI."""
        path = Path(to_fs_path(item.uri) or item.uri)
        document = Document(item.uri, path, item.version, Source(item.text), self.encoding)
        self._by_uri[item.uri] = self._by_path[path] = document
        self.generation += 1
        return document

    def change(self, params: types.DidChangeTextDocumentParams) -> Document | None:
        """Apply the edits in their order; None for a document that is not open."""
        document = self._by_uri.get(params.text_document.uri)
        if document is None:
            return None
        apply_changes(document, params.content_changes)
        document.version = params.text_document.version
        self.generation += 1
        return document

    def close(self, uri: str) -> None:
        """Let a document go; files are read from the disk again."""
        document = self._by_uri.pop(uri, None)
        if document is not None:
            self._by_path.pop(document.path, None)
            self.generation += 1

    def touch(self) -> None:
        """Something on disk changed."""
        self.generation += 1

    def read(self, path: Path) -> str | None:
        """A file's text as the workspace has it; None where there is none."""
        document = self._by_path.get(path)
        if document is not None:
            return document.text
        try:
            stat = os.stat(path)
        except (OSError, ValueError):
            self._disk.pop(path, None)
            return None
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._disk.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        text = read_file(path)
        if text is not None:
            if len(self._disk) > 500:
                self._disk.clear()
            if settled(stat.st_mtime_ns):
                self._disk[path] = (stamp, text)
        return text

    def classes(self, document: Document) -> list[ModuleClass]:
        """The module classes of a document as it is now. A kernel file has none: its class is the product."""
        if document._classes is None or document._classes[0] != self.generation:
            found = [] if document.is_kernel_file else module_classes_of(document.source, document.path, self.read)
            if document._classes is None:
                document.source.forget_tree()  # an edit is looked at by itself; the whole is parsed again where that is not enough
            document._classes = (self.generation, found)
        return document._classes[1]

    def fingerprint(self, document: Document, class_name: str) -> str | None:
        """The fingerprint of a class as it is now; None while a syntax error hides it."""
        known = document._fingerprints.get(class_name)
        if known is not None and known[0] == self.generation:
            return known[1]
        try:
            found: str | None = fingerprint_of(document.source, document.path, class_name, self.read)
        except ClassNotFound:
            found = None
        document._fingerprints[class_name] = (self.generation, found)
        return found

    def fingerprint_at(self, path: Path, class_name: str) -> str | None:
        """The fingerprint of a class in a file that need not be open; None where it cannot be read."""
        known = self._elsewhere.get((path, class_name))
        if known is not None and known[0] == self.generation:
            return known[1]
        text, found = self.read(path), None
        if text is not None:
            with contextlib.suppress(ClassNotFound):
                found = fingerprint_of(Source(text), path, class_name, self.read)
        self._elsewhere[(path, class_name)] = (self.generation, found)
        return found
