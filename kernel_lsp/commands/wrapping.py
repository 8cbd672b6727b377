"""Text for people in lines that fit the terminal. What is piped stays in one line, unless COLUMNS names a width."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import IO

_LEAST = 20  # columns: with fewer nothing is wrapped sensibly
PIPED = 132  # columns of a table that is piped, or a picture


def width_of(stream: IO[str]) -> int | None:
    """The columns that COLUMNS names, else those of the terminal; None where a stream goes elsewhere."""
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named):
        return max(_LEAST, int(named))
    try:
        return max(_LEAST, os.get_terminal_size(stream.fileno()).columns) if stream.isatty() else None
    except (OSError, ValueError):  # a terminal that does not say, or a stream without a file
        return None


def table_width(stream: IO[str]) -> int:
    """The columns of a table that is printed there."""
    return width_of(stream) or PIPED


def filled(text: str, width: int | None, indent: str = "") -> str:
    """``text`` with its lines broken between words, which stay whole. ``indent``: of the lines that come to be."""
    if width is None:
        return text
    lines = text.split("\n")
    wrapped = [
        textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        for line in lines
    ]
    return "\n".join(wrapped)


def say(text: object) -> None:
    """A message of the program on standard error."""
    print(filled(f"kernel-lsp: {text}", width_of(sys.stderr)), file=sys.stderr, flush=True)
