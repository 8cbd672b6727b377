r"""Text as an editor counts it: lines end at ``\r\n``, ``\n`` or ``\r`` and nowhere else.

``str.splitlines`` also splits at form feeds, U+0085, U+2028 and others, which no editor does; one such character
and every later position would be off. Offsets and columns are in code points (what ``str`` indexes); editors
count columns in UTF-16 code units unless something else was agreed, so ``column_units`` and ``units_column``
convert between the two.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\n|\r")


class Position(NamedTuple):  # by the thousand in a long file, and quicker to make than a dataclass
    """A place between two characters: 0-based line, and column in code points."""

    line: int
    column: int


class Range(NamedTuple):
    """From ``start`` up to, not including, ``end``."""

    start: Position
    end: Position

    def contains(self, position: Position) -> bool:
        """Whether the position is inside or at either edge (a cursor behind a word still means the word)."""
        return self.start <= position <= self.end


def line_starts(text: str, base: int = 0) -> list[int]:
    """Offset of the first character of every line, each moved by ``base``."""
    if "\r" not in text:  # the common case, four times faster
        starts = [base]
        at = text.find("\n")
        while at >= 0:
            starts.append(base + at + 1)
            at = text.find("\n", at + 1)
        return starts
    return [base, *(base + end.end() for end in _LINE_END.finditer(text))]


def column_units(line: str, column: int, encoding: Encoding) -> int:
    """Code units that the first ``column`` code points of ``line`` take in ``encoding``."""
    head = line[:column]
    if encoding == "utf-32" or head.isascii():
        return len(head)
    if encoding == "utf-8":
        return len(head.encode("utf-8", "surrogatepass"))
    return len(head) + sum(character > "\uffff" for character in head)


def units_column(line: str, units: int, encoding: Encoding) -> int:
    """Code points that the first ``units`` code units of ``line`` make; a unit inside a character rounds down."""
    if encoding == "utf-32" or line.isascii():
        return min(max(units, 0), len(line))
    seen = 0
    for column, character in enumerate(line):
        if encoding == "utf-8":
            width = len(character.encode("utf-8", "surrogatepass"))
        else:
            width = 2 if character > "\uffff" else 1
        if seen + width > units:
            return column
        seen += width
    return len(line)


@dataclass
class Text:
    """A document's text with its line starts; ``replace`` keeps both in step."""

    text: str
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.starts:
            self.starts = line_starts(self.text)

    @property
    def line_count(self) -> int:
        """Lines, an empty last one included."""
        return len(self.starts)

    def line(self, number: int) -> str:
        """The line without its end; empty beyond the last line."""
        if not 0 <= number < len(self.starts):
            return ""
        stop = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : stop].rstrip("\r\n")

    def position(self, offset: int) -> Position:
        """The position of a code point offset."""
        line = bisect_right(self.starts, offset) - 1
        return Position(line, offset - self.starts[line])

    def offset(self, position: Position) -> int:
        """The code point offset of a position; beyond the end of a line or of the text, that end."""
        if position.line >= len(self.starts):
            return len(self.text)
        return self.starts[position.line] + min(position.column, len(self.line(position.line)))

    def from_units(self, line: int, units: int, encoding: Encoding) -> Position:
        """The position that a client means by a line and a count of code units."""
        if line >= len(self.starts):
            return self.position(len(self.text))
        return Position(line, units_column(self.line(line), units, encoding))

    def to_units(self, position: Position, encoding: Encoding) -> tuple[int, int]:
        """Line and count of code units of a position, for a client."""
        return position.line, column_units(self.line(position.line), position.column, encoding)

    def replace(self, start: int, end: int, new: str) -> None:
        r"""Replace the code points from ``start`` up to ``end``.

        Only the lines around the edit are split anew. One line more on either side is included, because an edit
        can join a ``\r`` with a ``\n`` into one line end, or part them.
        """
        first = max(bisect_right(self.starts, start) - 2, 0)
        last = bisect_right(self.starts, end) + 1
        begin = self.starts[first]
        stop = self.starts[last] if last < len(self.starts) else len(self.text)
        middle = self.text[begin:start] + new + self.text[end:stop]
        fresh = line_starts(middle, begin)
        if last < len(self.starts):
            fresh.pop()  # ``middle`` ends with a line end here; the line after it is the first of the tail
            moved = len(new) - (end - start)
            fresh += [at + moved for at in self.starts[last:]]
        self.starts[first:] = fresh
        self.text = self.text[:start] + new + self.text[end:]
