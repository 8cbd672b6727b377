"""Replacements in a source by the places of its syntax tree; the rest stays as it is, comments and layout included."""

from __future__ import annotations

import ast

Place = tuple[int, int]


class Edits:
    """A source that parses, and what is to stand in the place of some of its nodes.

    Attributes:
        tree: of the source.
    """

    def __init__(self, source: str) -> None:
        """Parse ``source``.

        Raises:
            SyntaxError, ValueError: it does not parse.
        """
        self.tree = ast.parse(source)
        self._data = source.encode()  # the tree counts bytes
        self._lines = [0]
        for line in self._data.split(b"\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._changes: dict[Place, str] = {}

    def place(self, node: ast.AST) -> Place:
        """Where a statement or expression begins and ends."""
        line, column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self.start(node), self._lines[line - 1] + column

    def lines(self, node: ast.AST) -> Place:
        """The place up to the end of its last line, with a comment that stands there."""
        begin, end = self.place(node)
        stop = self._data.find(b"\n", end)
        return begin, stop if stop >= 0 else len(self._data)

    def start(self, node: ast.AST) -> int:
        """The byte at which a node begins."""
        return self._lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined, no-any-return]

    def replace(self, place: Place, text: str) -> None:
        """A change inside another one is lost with what it stood in."""
        self._changes[place] = text

    def rename(self, node: ast.FunctionDef | ast.ClassDef, name: str) -> None:
        """Another name where a function or class is defined."""
        word = b"class" if isinstance(node, ast.ClassDef) else b"def"
        at = self._data.index(node.name.encode(), self._data.index(word, self.start(node)) + len(word))
        self.replace((at, at + len(node.name.encode())), name)

    def text(self, place: Place | None = None) -> str:
        """What stands there after the changes; without a place, the whole source."""
        begin, end = place or (0, len(self._data))
        parts, at = [], begin
        for start, stop in sorted(self._changes, key=lambda change: (change[0], -change[1])):
            if start >= at and stop <= end:
                parts += [self._data[at:start].decode(), self._changes[start, stop]]
                at = stop
        return "".join([*parts, self._data[at:end].decode()])
