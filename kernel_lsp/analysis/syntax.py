"""Python source as a tree-sitter tree that survives unfinished lines, and is parsed again only where it changed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import tree_sitter
import tree_sitter_python
from tree_sitter import Node, Tree

from .margin_statements import Pieces
from .text import Position, Range, Text

_LANGUAGE = tree_sitter.Language(tree_sitter_python.language())
_LONE_CR = re.compile("\r(?!\n)")


def _for_parser(text: str) -> bytes:
    r"""UTF-8 with a lone ``\r`` as ``\n``: Python ends a line there, the grammar does not. Every length stays."""
    if "\r" in text:
        text = _LONE_CR.sub("\n", text)
    return text.encode("utf-8", "surrogatepass")


class Source:
    """One document: its text and, parsed when first asked for, its tree."""

    def __init__(self, text: str) -> None:
        self.text = Text(text)
        self._data: bytes | None = None
        self._old: Tree | None = None  # the tree before the edits since, moved along with them
        self._tree: Tree | None = None
        self._has_error: bool | None = None  # of the text as it is; None: not known
        self.outline: Any = None  # kept here by outline.outlined and fingerprint.units_of, until the next edit
        self.units: Any = None
        self.pieces: Pieces | None = None  # kept by outline.outline, through edits
        self._ascii: bool | None = None
        self._char_starts: list[int] | None = None
        self._byte_starts: list[int] = []

    @property
    def data(self) -> bytes:
        """The text as the parser sees it; byte offsets in nodes refer to this."""
        if self._data is None:
            self._data = _for_parser(self.text.text)
        return self._data

    @property
    def tree(self) -> Tree:
        """The tree of the text as it is; what did not change is not parsed again."""
        if self._tree is None:
            parser = tree_sitter.Parser(_LANGUAGE)
            self._tree = parser.parse(self.data, self._old) if self._old is not None else parser.parse(self.data)
            self._old = None
            self._has_error = self._tree.root_node.has_error
        return self._tree

    @property
    def has_error(self) -> bool:
        """Whether the parser makes nothing of some of the text. What was found stays when the tree is dropped."""
        if self.pieces is not None and self.pieces.edited is None:
            return False  # pieces are made of text without an error only
        return self.tree.root_node.has_error if self._has_error is None else self._has_error

    def forget_tree(self) -> None:
        """Drop the tree (30 times the text's size) and what is quickly made again from the pieces, which stay.

        The next edit that takes more than its own piece parses the whole once.
        """
        self._tree = self._old = self._data = self.outline = self.units = None

    def replace(self, start: int, end: int, new: str) -> None:
        """Replace the code points from ``start`` up to ``end``; the tree is brought up to date when next needed."""
        before = self.data
        old_text = self.text.text
        self.text.replace(start, end, new)
        tree = self._tree if self._tree is not None else self._old
        self._tree = self._old = self._char_starts = self._data = self._ascii = self.outline = self.units = None
        self._has_error = None
        if _has_lone_cr(old_text) or _has_lone_cr(self.text.text):
            self.pieces = None
            return  # an edit beside a lone \r can change bytes outside itself: parse anew
        start_byte = start if old_text.isascii() else len(old_text[:start].encode("utf-8", "surrogatepass"))
        old_end = start_byte + len(old_text[start:end].encode("utf-8", "surrogatepass"))
        new_end = start_byte + len(new.encode("utf-8", "surrogatepass"))
        if self.pieces is not None:
            self.pieces.edit(start_byte, old_end, new_end)
        if tree is None:
            return
        after = self.data
        tree.edit(
            start_byte, old_end, new_end, _point(before, start_byte), _point(before, old_end), _point(after, new_end)
        )
        self._old = tree

    def offset(self, byte: int) -> int:
        """The code point offset of a byte offset in ``data``."""
        if self._ascii is None:
            self._ascii = self.text.text.isascii()
        if self._ascii:
            return byte
        if self._char_starts is None:
            self._char_starts = self.text.starts
            self._byte_starts = list(_byte_lines(self.text))
        line = bisect_right(self._byte_starts, byte) - 1
        head = self.data[self._byte_starts[line] : byte]
        return self._char_starts[line] + len(head.decode("utf-8", "surrogatepass"))

    def position(self, byte: int) -> Position:
        """Line and column of a byte of the tree."""
        return self.text.position(self.offset(byte))

    def range(self, start_byte: int, end_byte: int) -> Range:
        """Lines and columns between two bytes of the tree."""
        return Range(self.position(start_byte), self.position(end_byte))


def _has_lone_cr(text: str) -> bool:
    return "\r" in text and _LONE_CR.search(text) is not None


def _byte_lines(text: Text) -> Iterator[int]:
    """Byte offset of the start of every line."""
    at = 0
    for number, start in enumerate(text.starts):
        yield at
        stop = text.starts[number + 1] if number + 1 < len(text.starts) else len(text.text)
        line = text.text[start:stop]
        at += len(line) if line.isascii() else len(line.encode("utf-8", "surrogatepass"))


def _point(data: bytes, byte: int) -> tuple[int, int]:
    r"""Row and byte column as tree-sitter counts them: rows end at ``\n`` alone."""
    return data.count(b"\n", 0, byte), byte - (data.rfind(b"\n", 0, byte) + 1)


def parse(data: bytes) -> Tree:
    """The tree of some bytes by themselves."""
    return tree_sitter.Parser(_LANGUAGE).parse(data)


def node_text(node: Node, data: bytes) -> str:
    """The source of ``node``, whose tree was parsed from ``data``; bytes that are not UTF-8 are replaced."""
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def dotted(node: Node | None, data: bytes) -> str | None:
    """``a.b.c`` of a name or a chain of attributes, without the spaces in between; None for anything else."""
    parts: list[str] = []
    while node is not None and node.type == "attribute":
        name = node.child_by_field_name("attribute")
        if name is None:
            return None
        parts.append(node_text(name, data))
        node = node.child_by_field_name("object")
    if node is None or node.type not in ("identifier", "dotted_name"):
        return None
    parts.append("".join(node_text(node, data).split()))
    return ".".join(reversed(parts))
