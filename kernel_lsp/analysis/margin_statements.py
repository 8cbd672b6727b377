"""The statements at a file's margin, one piece each, so that an edit costs its own piece and not the file.

tree-sitter parses anew whatever follows an edit that adds a line. Statements at the margin do not depend on each
other, though: when an edit and a whole statement on either side of it parse by themselves without an error, and end
where they ended before, the rest of the file is what it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Span = tuple[int, int]  # bytes, from and up to


@dataclass
class Pieces:
    """Where the pieces stood when last looked at, what was found in each, and what was edited since."""

    spans: list[Span]
    found: list[Any]  # an Outline each, its offsets counted from the start of its piece
    edited: tuple[int, int, int] | None = None  # start, end before, end now

    def edit(self, start: int, old_end: int, new_end: int) -> None:
        """Take note of an edit, in the offsets of just before it; several become one that covers them all."""
        if self.edited is None:
            self.edited = (start, old_end, new_end)
            return
        first, before, now = self.edited
        self.edited = (min(first, start), before + max(0, old_end - now), max(now, old_end) + new_end - old_end)


def window(pieces: Pieces, data: bytes) -> tuple[int, int, Span]:
    """The pieces to look at again after the edit (indices, from and up to), and the bytes that they are now.

    Those that the edit touches and one more on either side, from the start of a line to the end of one.
    """
    assert pieces.edited is not None
    start, old_end, new_end = pieces.edited
    moved = new_end - old_end
    spans = pieces.spans
    first = next((i for i, span in enumerate(spans) if span[1] >= start), len(spans)) - 1
    while first > 0 and data[spans[first][0] - 1 : spans[first][0]] != b"\n":
        first -= 1
    first = max(first, 0)
    last = next((i for i in range(len(spans) - 1, -1, -1) if spans[i][0] <= old_end), -1) + 2
    while last < len(spans) and not _ends_line(data, spans[last - 1][1] + moved):
        last += 1
    begin = spans[first][0] if first > 0 else 0
    end = spans[last - 1][1] + moved if last < len(spans) else len(data)
    return first, min(last, len(spans)), (begin, end)


def _ends_line(data: bytes, at: int) -> bool:
    line_end = data.find(b"\n", at)
    return line_end >= 0 and not data[at:line_end].strip()
