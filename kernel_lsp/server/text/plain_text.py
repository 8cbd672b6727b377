"""The hover for clients that show plain text (Emacs without markdown-mode): the same words without Markdown's marks."""

from __future__ import annotations

import re
from urllib.parse import unquote

_LINK = re.compile(r"\[[^\]]*\]\((?:file://)?([^)\s]+)\)")
_MARKS = re.compile(r"\*\*|`")
_RULE = re.compile(r"^\|(?: *:?-+:? *\|)+$")


def plain_text(markdown: str) -> str:
    """Bold and code without their marks, a link as the path it leads to, a table in columns."""
    lines: list[str] = []
    table: list[list[str]] = []
    for line in [*markdown.split("\n"), ""]:
        words = _MARKS.sub("", _LINK.sub(lambda link: unquote(link.group(1)), line))
        if line.startswith("|"):
            if not _RULE.match(line):
                table.append([cell.strip() for cell in words.strip("|").split("|")])
            continue
        lines += _columns(table)
        table = []
        lines.append(words)
    return "\n".join(lines).rstrip("\n")


def _columns(table: list[list[str]]) -> list[str]:
    """The first column to the left, the others, which are figures, to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=False)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        )
        for row in table
    ]
